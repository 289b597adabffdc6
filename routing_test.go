package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/plugin"
	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/reconnect/rdkafka"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// lines is a host that keeps the log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Enabled(slog.Level) bool { return true }

func (l *lines) Print(_ slog.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// instanceOf makes an instance of a section, with the real client.
func instanceOf(t *testing.T, section map[string]string) (*plugin.Instance, *lines) {
	t.Helper()
	cfg, err := config.Decode(config.GetterFunc(func(name string) string { return section[name] }), librdkafka{})
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	in, err := plugin.New(plugin.Options{
		Config: cfg, Open: rdkafka.Opener(clientOptions(cfg)), Relay: flblog.NewRelay(log, "test"), Name: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in, log
}

// records reads n records of some topics, each as topic, partition, time, key, headers and value.
func records(t *testing.T, addr string, n int, topics ...string) []string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topics...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out []string
	for len(out) < n && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			text := fmt.Sprintf("%s/%d at %d key %s", r.Topic, r.Partition, r.Timestamp.UnixMilli(), r.Key)
			for _, h := range r.Headers {
				text += fmt.Sprintf(" %s=%s", h.Key, h.Value)
			}
			out = append(out, text+" "+string(r.Value))
		})
	}
	slices.Sort(out)
	return out
}

// A section that uses all of the routing, from the bytes of a chunk to what a consumer reads.
// The record with a partition that is not there arrives all the same, and holds up nobody.
func TestRouting_FromChunkToConsumer(t *testing.T) {
	b, err := broker.New(broker.Options{Topics: map[string]int{"app.shop": 3, "rest": 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	in, log := instanceOf(t, map[string]string{
		"brokers": b.Addrs()[0], "topics": "rest", "topic_template": "app.$k['ns']", "message_key_template": "$TAG[1]:$k['list'][0]",
		"partition_field": "p", "message_timestamp": "event", "headers": "source=fluent-bit, sev=$METADATA['sev']", "headers_key": "$k['h']",
		"tag_key": "tag", "metadata_key": "meta",
	})
	var chunk []byte
	add := func(sec uint32, metadata, body func([]byte) []byte) {
		chunk = chunktest.Array(chunktest.Array(chunk, 2), 2)
		chunk = body(metadata(chunktest.Time(chunk, sec, 5e8)))
	}
	none := func(b []byte) []byte { return chunktest.Map(b, 0) }
	severity := func(b []byte) []byte { return chunktest.Uint(chunktest.Str(chunktest.Map(b, 1), "sev"), 9) }
	pod := func(partition uint64) func(b []byte) []byte {
		return func(b []byte) []byte {
			b = chunktest.Map(chunktest.Str(chunktest.Map(b, 2), "k"), 3)
			b = chunktest.Str(chunktest.Str(b, "ns"), "shop")
			b = chunktest.Str(chunktest.Array(chunktest.Str(b, "list"), 1), "one")
			b = chunktest.Str(chunktest.Str(chunktest.Map(chunktest.Str(b, "h"), 1), "team"), "a")
			return chunktest.Uint(chunktest.Str(b, "p"), partition)
		}
	}
	add(1700000001, severity, pod(2))
	add(1700000002, none, func(b []byte) []byte { return chunktest.Uint(chunktest.Str(chunktest.Map(b, 1), "n"), 1) })
	add(1700000003, none, pod(77))
	if got := in.Flush(chunk, "kube.var", true); got != plugin.OK {
		t.Fatalf("flush: %v; log\n%s", got, log)
	}
	got := records(t, b.Addrs()[0], 3, "app.shop", "rest")
	const k = `"k":{"ns":"shop","list":["one"],"h":{"team":"a"}}`
	want := []string{
		`app.shop/2 at 1700000001500 key var:one source=fluent-bit sev=9 team=a {"@timestamp":1700000001.5,"tag":"kube.var","meta":{"sev":9},` + k + `,"p":2}`,
		`app.shop/? at 1700000003500 key var:one source=fluent-bit team=a {"@timestamp":1700000003.5,"tag":"kube.var",` + k + `,"p":77}`,
		`rest/0 at 1700000002500 key  source=fluent-bit {"@timestamp":1700000002.5,"tag":"kube.var","n":1}`,
	}
	for i, r := range got {
		if strings.Contains(r, `"p":77`) { // where the partitioner wanted it
			got[i] = "app.shop/?" + r[len("app.shop/?"):]
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	in.Close() // brings the last lines to the host
	for _, line := range []string{"records name a partition that their topic has not", "records lack a field of topic_template"} {
		if strings.Count(log.String(), line) != 1 {
			t.Errorf("no line %q in\n%s", line, log)
		}
	}
}

package plugin

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/reconnect"
)

// described is a batch in words, one message a line: topic, partition, timestamp, key, headers, value.
func described(b *reconnect.Batch) string {
	var out strings.Builder
	for i, m := range b.Messages {
		key := "no key"
		if m.KeyLen != reconnect.NoKey {
			key = fmt.Sprintf("key %q", b.Data[m.KeyOff:m.KeyOff+m.KeyLen])
		}
		fmt.Fprintf(&out, "%s/%d at %d, %s,", b.Topics[m.Topic], m.Partition, m.Timestamp, key)
		for name, value := range b.Headers(i) {
			fmt.Fprintf(&out, " %s=%s", name, value)
		}
		fmt.Fprintf(&out, " %s\n", b.Data[m.ValOff:m.ValOff+m.ValLen])
	}
	return out.String()
}

// podChunk is three records: of a pod, of the node, and one with a partition that is none.
func podChunk() []byte {
	b := header(1700000000)
	b = chunktest.Map(b, 2)
	b = chunktest.Map(chunktest.Str(b, "kubernetes"), 2)
	b = chunktest.Str(chunktest.Str(b, "ns"), "shop")
	b = chunktest.Map(chunktest.Str(b, "labels"), 1)
	b = chunktest.Str(chunktest.Str(b, "app"), "orders")
	b = chunktest.Uint(chunktest.Str(b, "p"), 3)
	b = append(b, record("node")...)
	b = chunktest.Map(append(b, header(1700086400)...), 1)
	return chunktest.Str(chunktest.Str(b, "p"), "x")
}

func TestEncode_Routing(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings settings
		want     []string
		faults   faults
	}{
		{"as the built-in", nil, []string{
			`fluent-bit/-1 at 0, no key, {"@timestamp":1700000000.0,"kubernetes":{"ns":"shop","labels":{"app":"orders"}},"p":3}`,
			`fluent-bit/-1 at 0, no key, {"@timestamp":1700000000.0,"seq":"node"}`,
			`fluent-bit/-1 at 0, no key, {"@timestamp":1700086400.0,"p":"x"}`,
		}, faults{}},
		{"templates", settings{
			"topics": "rest", "topic_template": "$TAG[1].$kubernetes['ns'].%F", "message_key": "k", "message_key_template": "$kubernetes['labels']['app']",
			"partition_field": "p", "message_timestamp": "event", "tag_key": "tag", "timestamp_key": "t",
		}, []string{
			`var.shop.2023-11-14/3 at 1700000000000, key "orders", {"t":1700000000.0,"tag":"kube.var","kubernetes":{"ns":"shop","labels":{"app":"orders"}},"p":3}`,
			`rest/-1 at 1700000000000, key "k", {"t":1700000000.0,"tag":"kube.var","seq":"node"}`,
			`rest/-1 at 1700086400000, key "k", {"t":1700086400.0,"tag":"kube.var","p":"x"}`,
		}, faults{topicGaps: 2, keyGaps: 2, badPartitions: 1}},
		{"accessors and headers", settings{
			"topics": "rest,shop", "topic_key": "$kubernetes['ns']", "message_key_field": "$kubernetes['labels']['app']",
			"headers": "source=fluent-bit, tag=$TAG, p=$p", "headers_key": "$kubernetes['labels']",
		}, []string{
			`shop/-1 at 0, key "orders", source=fluent-bit tag=kube.var p=3 app=orders {"@timestamp":1700000000.0,"kubernetes":{"ns":"shop","labels":{"app":"orders"}},"p":3}`,
			`rest/-1 at 0, no key, source=fluent-bit tag=kube.var {"@timestamp":1700000000.0,"seq":"node"}`,
			`rest/-1 at 0, no key, source=fluent-bit tag=kube.var p=x {"@timestamp":1700086400.0,"p":"x"}`,
		}, faults{}},
		{"dynamic accessor", settings{"topic_key": "$p", "dynamic_topic": "on", "max_dynamic_topics": "1"}, []string{
			`3/-1 at 0, no key, {"@timestamp":1700000000.0,"kubernetes":{"ns":"shop","labels":{"app":"orders"}},"p":3}`,
			`fluent-bit/-1 at 0, no key, {"@timestamp":1700000000.0,"seq":"node"}`,
			`fluent-bit/-1 at 0, no key, {"@timestamp":1700086400.0,"p":"x"}`,
		}, faults{refusedTopics: 1, refusedTopic: "x", refusedLimit: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := newEncoder(decode(t, tt.settings), nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a chunk that comes back gives the same messages
				got := described(e.encode(podChunk(), "kube.var", time.Now()))
				if want := strings.Join(tt.want, "\n") + "\n"; got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
				if f := e.faults; fmt.Sprintf("%+v", f) != fmt.Sprintf("%+v", tt.faults) {
					t.Errorf("faults %+v; want %+v", f, tt.faults)
				}
			}
		})
	}
}

// Routing and formats do not depend on each other: what the value holds is the format's affair,
// and topic, key, partition, timestamp and headers come from the record that it was made of.
func TestEncode_RoutingWithFormats(t *testing.T) {
	// The first record has metadata and a namespace.
	b := chunktest.Time(chunktest.Array(chunktest.Array(nil, 2), 2), 1700000000, 0)
	b = chunktest.Uint(chunktest.Str(chunktest.Map(b, 1), "sev"), 9)
	b = chunktest.Str(chunktest.Str(chunktest.Map(b, 2), "ns"), "shop")
	b = chunktest.Str(chunktest.Str(b, "log"), "ready")
	b = chunktest.Map(append(b, header(1700000001)...), 1)
	b = chunktest.Str(chunktest.Str(b, "log"), "idle")
	for _, tt := range []struct {
		name     string
		settings settings
		want     []string
	}{
		{"json without time", settings{"add_timestamp": "off", "tag_key": "@timestamp", "metadata_key": "meta"}, []string{
			`fluent-bit/-1 at 0, no key, {"@timestamp":"kube.var","meta":{"sev":9},"ns":"shop","log":"ready"}`,
			`fluent-bit/-1 at 0, no key, {"@timestamp":"kube.var","log":"idle"}`,
		}},
		{"json without time and without metadata", settings{"add_timestamp": "off", "metadata_key": "meta", "message_key": "k"}, []string{
			`fluent-bit/-1 at 0, key "k", {"meta":{"sev":9},"ns":"shop","log":"ready"}`,
			`fluent-bit/-1 at 0, key "k", {"log":"idle"}`,
		}},
		{"msgpack", settings{"format": "msgpack", "add_timestamp": "off", "tag_key": "tag", "metadata_key": "meta", "topic_key": "$ns", "dynamic_topic": "on"}, []string{
			"shop/-1 at 0, no key, \x84\xa3tag\xa8kube.var\xa4meta\x81\xa3sev\x09\xa2ns\xa4shop\xa3log\xa5ready",
			"fluent-bit/-1 at 0, no key, \x82\xa3tag\xa8kube.var\xa3log\xa4idle",
		}},
		{"gelf", settings{"format": "gelf", "gelf_short_message_key": "log", "headers": "tag=$TAG, ns=$ns", "headers_key": "$METADATA"}, []string{
			`fluent-bit/-1 at 0, no key, tag=kube.var ns=shop sev=9 {"version":"1.1", "_ns":"shop", "short_message":"ready", "timestamp":1700000000.000}`,
			`fluent-bit/-1 at 0, no key, tag=kube.var {"version":"1.1", "short_message":"idle", "timestamp":1700000001.000}`,
		}},
		{"raw", settings{
			"format": "raw", "raw_log_key": "log", "topics": "rest", "topic_template": "$ns.%Y", "message_key_template": "$TAG[1]:$log",
			"partition_field": "$METADATA['sev']", "message_timestamp": "event",
		}, []string{
			`shop.2023/9 at 1700000000000, key "var:ready", ready`,
			`rest/-1 at 1700000001000, key "var:idle", idle`,
		}},
		{"avro", settings{
			"format": "avro", "schema_str": `{"type":"map","values":"string"}`, "schema_id": "258", "topic_template": "$TAG", "headers": "ns=$ns",
		}, []string{
			"kube.var/-1 at 0, no key, ns=shop \x00\x00\x00\x01\x02\x04\x04ns\x08shop\x06log\x0aready\x00",
			"kube.var/-1 at 0, no key, \x00\x00\x00\x01\x02\x02\x06log\x08idle\x00",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := decode(t, tt.settings)
			schemas, err := newSchemas(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, err := newEncoder(c, schemas)
			if err != nil || !e.ready() {
				t.Fatal(err)
			}
			for _, tag := range []string{"another", "kube.var"} { // the second chunk has its own tag
				got := described(e.encode(b, tag, time.Now()))
				if want := strings.Join(tt.want, "\n") + "\n"; tag == "kube.var" && got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
			}
		})
	}
}

// A record that its format can't express leaves nothing of its own in the batch: neither topic
// nor headers, and no partition that is told to be none.
func TestEncode_UnencodableIsNotRouted(t *testing.T) {
	e, err := newEncoder(decode(t, settings{
		"format": "raw", "raw_log_key": "seq", "topic_template": "$p", "partition_field": "p", "headers": "p=$p",
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := e.encode(podChunk(), "tag", time.Now())
	if got, want := described(b), "fluent-bit/-1 at 0, no key, node\n"; got != want || len(b.Topics) != 1 {
		t.Errorf("got %s, topics %q; want %s", got, b.Topics, want)
	}
	if f := e.faults; f.unencodable != 2 || f.topicGaps != 1 || f.badPartitions != 0 {
		t.Errorf("faults %+v", f)
	}
}

// A time before 1970 or none at all never becomes "now" by itself: such a record has the time
// of the flush.
func TestEncode_EventTimeOfARecordWithoutTime(t *testing.T) {
	e, err := newEncoder(decode(t, settings{"message_timestamp": "event"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1800000000123)
	entry := chunktest.Str(chunktest.Str(chunktest.Map(append([]byte{0x92}, 0xc0), 1), "seq"), "1")
	if got := e.encode(entry, "tag", now).Messages; len(got) != 1 || got[0].Timestamp != now.UnixMilli() {
		t.Errorf("%+v; want the time of the flush", got)
	}
}

// The end of a body that is as predicted is found by writing it. Whatever the bytes are, the messages and the faults are
// those of an encoder that asks the walker for the end.
func TestEncode_PredictedBodies(t *testing.T) {
	for i, s := range []settings{nil, {"message_timestamp": "event", "tag_key": "t", "topic_key": "p", "dynamic_topic": "on"}, {"json_invalid_utf8": "refuse"}} {
		var predicting, asking *encoder
		for _, e := range []**encoder{&predicting, &asking} {
			var err error
			if *e, err = newEncoder(decode(t, s), nil); err != nil {
				t.Fatal(err)
			}
		}
		asking.predictor = nil
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		clean := slices.Concat(podChunk(), records(1, 3), podChunk()[:60], records(4, 2))
		for range 20_000 {
			in := slices.Concat(records(1, 2), podChunk(), podChunk(), records(3, 3))
			if rng.IntN(3) == 0 {
				in = slices.Clone(clean)
			}
			for range rng.IntN(4) {
				in[rng.IntN(len(in))] = byte(rng.IntN(256))
			}
			in = in[: len(in)-rng.IntN(2)*rng.IntN(len(in)) : len(in)]
			now := time.Unix(1800000000, 0)
			got, want := described(predicting.encode(in, "kube.var", now)), described(asking.encode(in, "kube.var", now))
			if got != want {
				t.Fatalf("%x:\n%swant\n%s", in, got, want)
			}
			if !reflect.DeepEqual(predicting.faults, asking.faults) {
				t.Fatalf("%x: %+v, want %+v", in, predicting.faults, asking.faults)
			}
		}
	}
}

// The faults of the records reach the log, each kind once.
func TestEncode_FaultsAreTold(t *testing.T) {
	inBubble(t, settings{"topic_template": "$kubernetes['ns']", "message_key_template": "$kubernetes['ns']", "partition_field": "p"}, func(b *bench) {
		b.flush(podChunk(), true, OK)
		for _, line := range []string{
			"records lack a field of topic_template and went to the default topic",
			"records lack a field of message_key_template and got message_key or no key", "records name something that is no partition",
		} {
			if n := b.host.count(line); n != 1 {
				t.Errorf("%q: %d lines, want 1", line, n)
			}
		}
	})
}

func BenchmarkEncode_Routing(b *testing.B) {
	e, err := newEncoder(decode(b, settings{
		"topic_template": "app.$seq.%Y", "message_key_template": "$TAG:$seq", "headers": "source=fluent-bit, tag=$TAG",
		"message_timestamp": "event", "tag_key": "tag", "max_dynamic_topics": "2000",
	}), nil)
	if err != nil {
		b.Fatal(err)
	}
	chunk := records(1, 1000)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	now := time.Now()
	for b.Loop() {
		if len(e.encode(chunk, "kube.var.log", now).Messages) != 1000 {
			b.Fatal("records are missing")
		}
	}
}

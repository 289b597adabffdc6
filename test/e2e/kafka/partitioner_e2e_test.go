//go:build e2e

package kafka

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/rdkafka"
)

// javaPartitions has the Java client produce a record for each key and returns where each went.
func javaPartitions(t *testing.T, c *Cluster, topic string, keys [][]byte) []int32 {
	t.Helper()
	var in strings.Builder
	for _, key := range keys {
		in.WriteString(hex.EncodeToString(key) + "\n")
	}
	cmd := exec.CommandContext(within(t), c.dist.java.path, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
		"-cp", c.dist.classPath(), "testdata/Partitions.java", strings.Join(c.Brokers(), ","), topic)
	cmd.Stdin = strings.NewReader(in.String())
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("running the Java client: %v; %s", outputError(err, problems.Bytes()), javaHint)
	}
	var partitions []int32
	for line := range strings.Lines(out.String()) {
		var p int32
		if _, err := fmt.Sscan(line, &p); err != nil {
			t.Fatalf("reading %q of the Java client: %v", line, err)
		}
		partitions = append(partitions, p)
	}
	if len(partitions) != len(keys) {
		t.Fatalf("the Java client told of %d records, want %d", len(partitions), len(keys))
	}
	return partitions
}

// ourPartitions does the same with this module's client and partitioner murmur2_random.
func ourPartitions(t *testing.T, c *Cluster, topic string, keys [][]byte) map[string]int32 {
	t.Helper()
	client, err := rdkafka.Open(rdkafka.Options{Properties: []rdkafka.Property{
		{Name: "bootstrap.servers", Value: strings.Join(c.Brokers(), ",")}, {Name: "partitioner", Value: "murmur2_random"},
	}}, 1, func(reconnect.Notice) {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(5 * time.Second) }()
	b := &reconnect.Batch{Topics: []string{topic}}
	for _, key := range keys {
		off := int32(len(b.Data))
		b.Data = append(b.Data, key...)
		b.Messages = append(b.Messages, reconnect.Message{
			Partition: reconnect.PartitionAny, KeyOff: off, KeyLen: int32(len(key)), ValOff: off, ValLen: int32(len(key)),
		})
	}
	d := client.Produce(b)
	select {
	case <-d.Done():
	case <-within(t).Done():
	}
	if d.Acked() != len(keys) {
		t.Fatalf("acknowledged %d of %d, failures %+v", d.Acked(), len(keys), d.Failures())
	}
	return readPartitions(t, c, topic, len(keys))
}

// readPartitions tells for each key of a topic of n records in which partition it is.
func readPartitions(t *testing.T, c *Cluster, topic string, n int) map[string]int32 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found := map[string]int32{}
	for len(found) < n && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { found[string(r.Key)] = r.Partition })
	}
	if len(found) != n {
		t.Fatalf("read %d records of %s, want %d", len(found), topic, n)
	}
	return found
}

// Whoever moves from a Java producer to this one must find each key where it was.
func TestPartitioner_SameAsTheJavaClient(t *testing.T) {
	const partitions = 13
	c := newCluster(t, Options{})
	timed(t, "start", func() error { return startReady(t, c) })
	for _, topic := range []string{"java", "ours"} {
		if err := c.CreateTopic(within(t), topic, partitions, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%d/", i) // no two alike, of any length, any bytes
		for range rng.IntN(30) {
			keys[i] = append(keys[i], byte(rng.IntN(256)))
		}
	}
	var java []int32
	timed(t, "the Java client", func() error { java = javaPartitions(t, c, "java", keys); return nil })
	var ours map[string]int32
	timed(t, "our client", func() error { ours = ourPartitions(t, c, "ours", keys); return nil })
	met := map[int32]bool{}
	for i, key := range keys {
		met[java[i]] = true
		if ours[string(key)] != java[i] {
			t.Errorf("key %x is in partition %d; Java puts it into %d", key, ours[string(key)], java[i])
		}
	}
	if len(met) != partitions {
		t.Errorf("the keys fall into %d of %d partitions", len(met), partitions)
	}
}

package rdkafka

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// keyed is a batch of messages with the given keys, and their number as value.
func keyed(topic string, keys []string) *reconnect.Batch {
	b := &reconnect.Batch{Topics: []string{topic}}
	for i, key := range keys {
		off := len(b.Data)
		b.Data = append(b.Data, key...)
		b.Data = strconv.AppendInt(b.Data, int64(i), 10)
		b.Messages = append(b.Messages, reconnect.Message{
			Partition: reconnect.PartitionAny, KeyOff: int32(off), KeyLen: int32(len(key)),
			ValOff: int32(off + len(key)), ValLen: int32(len(b.Data) - off - len(key)),
		})
	}
	return b
}

// javaHashes are what Utils.murmur2 of Kafka's Java client gives, as that client's own tests have it.
var javaHashes = map[string]int32{
	"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
	"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
}

// With murmur2_random a key goes to the partition where a Java client puts it. The end-to-end
// tests ask the Java client itself.
func TestPartitioner_Murmur2IsJavas(t *testing.T) {
	const partitions = 37
	b := newBroker(t, broker.Options{Topics: map[string]int{"alpha": partitions}})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen, Property{"partitioner", "murmur2_random"})
	want := map[string]int32{}
	var keys []string
	add := func(key string, partition int32) {
		want[key] = partition
		keys = append(keys, key)
	}
	for key, hash := range javaHashes {
		add(key, (hash&0x7fffffff)%partitions)
	}
	java := kgo.StickyKeyPartitioner(nil).ForTopic("alpha") // the Java client's, by its documentation
	for i := range 1000 {
		key := fmt.Sprintf("%0*dé\x00\xff", i%17, i) // of any length, and more than ASCII
		add(key, int32(java.Partition(&kgo.Record{Key: []byte(key)}, partitions)))
	}
	d := r.Produce(keyed("alpha", keys))
	wait(t, d, 10*time.Second)
	if d.Acked() != len(keys) {
		t.Fatalf("acked %d of %d, failures %+v", d.Acked(), len(keys), d.Failures())
	}
	for _, record := range read(t, b.Addrs()[0], "alpha", len(keys)) {
		if record.Partition != want[string(record.Key)] {
			t.Errorf("key %q is in partition %d; Java puts it into %d", record.Key, record.Partition, want[string(record.Key)])
		}
	}
}

// What a message says of itself arrives: partition, timestamp. A partition that the topic has
// not comes back with a code of its own, whether or not the topic was known before.
func TestProduce_PartitionAndTimestamp(t *testing.T) {
	b := newBroker(t, broker.Options{Topics: map[string]int{"alpha": 3}})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	for range 2 {
		batch := numbered("alpha", 1, 3)
		batch.Messages[0].Partition, batch.Messages[0].Timestamp = 2, 1700000000123
		batch.Messages[1].Partition = 3
		d := r.Produce(batch)
		wait(t, d, 5*time.Second)
		if f := d.Failures(); d.Acked() != 2 || len(f) != 1 || f[0].Index != 1 || f[0].Code != -190 || f[0].Status != reconnect.NotPersisted {
			t.Fatalf("acked %d, failures %+v", d.Acked(), f)
		}
		if left := d.Left(); len(left.Messages) != 1 || left.Messages[0].Partition != 3 {
			t.Errorf("left %+v", left)
		}
	}
	found := 0
	for _, record := range read(t, b.Addrs()[0], "alpha", 4) {
		if string(record.Value) == `{"seq":1}` {
			found++
			if record.Partition != 2 || record.Timestamp.UnixMilli() != 1700000000123 {
				t.Errorf("partition %d, timestamp %d", record.Partition, record.Timestamp.UnixMilli())
			}
		}
	}
	if found != 2 {
		t.Errorf("%d of 2 records are there", found)
	}
}

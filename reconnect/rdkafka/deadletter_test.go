package rdkafka

import (
	"bytes"
	"testing"
	"time"

	"out_kafka_reconnect/plugin/deadletter"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// A record that the client refuses arrives as a letter, from its failure to its headers.
func TestDeadLetter_ArrivesInItsTopic(t *testing.T) {
	const limit = 100000
	b := newBroker(t, broker.Options{Topics: map[string]int{"alpha": 1, "dead": 1}})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen, Property{"message.max.bytes", "100000"})
	value := bytes.Repeat([]byte("x"), 2*limit)
	batch := &reconnect.Batch{Topics: []string{"alpha"}, Data: append([]byte("key"), value...)}
	batch.Messages = []reconnect.Message{
		{Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValOff: 3, ValLen: 10},
		{Partition: reconnect.PartitionAny, KeyLen: 3, ValOff: 3, ValLen: int32(len(value)), Timestamp: 1700000000123},
	}
	d := r.Produce(batch)
	left := leftOf(t, d, batch)
	if len(left.Messages) != 1 {
		t.Fatalf("%d left", len(left.Messages))
	}
	letter := deadletter.FromBatch(left, 0, d.Failures()[0])
	letter.Tag, letter.Time = "app.log", time.Unix(1800000000, 0)
	small := deadletter.Letter{Kind: deadletter.Undecodable, Time: letter.Time, Value: []byte{0xc1}}
	// The limit of the client that produces it: what is cut must fit.
	topic := deadletter.Topic{Name: "dead", MaxBytes: limit}
	dead := r.Produce(topic.Batch([]deadletter.Letter{letter, small}))
	wait(t, dead, 5*time.Second)
	if dead.Acked() != 2 {
		t.Fatalf("failures %+v", dead.Failures())
	}
	records := read(t, b.Addrs()[0], "dead", 2)
	got := records[0]
	if string(got.Key) != "key" || len(got.Value) < limit-1000 || !bytes.HasPrefix(value, got.Value) {
		t.Errorf("key %q, %d bytes of the value", got.Key, len(got.Value))
	}
	want := map[string]string{
		deadletter.HeaderKind: "too_large", deadletter.HeaderCode: "10", deadletter.HeaderReason: Text(10),
		deadletter.HeaderTopic: "alpha", deadletter.HeaderTag: "app.log", deadletter.HeaderTime: "2027-01-15T08:00:00Z",
		deadletter.HeaderEventTime: "2023-11-14T22:13:20.123Z", deadletter.HeaderTruncated: "true", deadletter.HeaderSize: "200000",
	}
	if len(got.Headers) != len(want) {
		t.Errorf("%d headers", len(got.Headers))
	}
	for _, h := range got.Headers {
		if want[h.Key] != string(h.Value) {
			t.Errorf("%s: %q, want %q", h.Key, h.Value, want[h.Key])
		}
	}
	if got := records[1]; got.Key != nil || string(got.Value) != "\xc1" {
		t.Errorf("key %q, value %q", got.Key, got.Value)
	}
}

package rdkafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// unbounded is what lifts the limits of the client's queue, as the plugin does.
var unbounded = []Property{{"queue.buffering.max.messages", "0"}, {"queue.buffering.max.kbytes", "2147483647"}}

// Messages that are alike go to librdkafka together, and others one by one. Whatever mix a batch has, each
// topic gets its own in their order, and what is refused in the middle of a run costs nothing but itself.
func TestProduce_RunsOfAllKinds(t *testing.T) {
	b := newBroker(t, broker.Options{Topics: map[string]int{"alpha": 1, "beta": 1}})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen, append(unbounded, Property{"message.max.bytes", "2000"})...)
	batch := numbered("alpha", 0, 1000)
	batch.Topics = append(batch.Topics, "beta")
	large := int32(len(batch.Data))
	batch.Data = append(batch.Data, strings.Repeat("x", 3000)...)
	header := int32(len(batch.Data))
	batch.Data = reconnect.AppendHeader(batch.Data, "name", []byte("value"))
	var alpha, beta []string
	refused := 0
	for i := range batch.Messages {
		m := &batch.Messages[i]
		value := fmt.Sprintf(`{"seq":%d}`, i)
		switch {
		case i%300 == 299: // too large
			m.ValOff, m.ValLen = large, 3000
			refused++
			continue
		case i%97 == 96:
			m.HdrOff, m.HdrLen = header, int32(len(batch.Data))-header
		case i%89 == 88:
			m.Timestamp = 1_700_000_000_000
		case i%83 == 82:
			m.Partition = 0
		case i%7 == 6:
			m.Topic = 1
			beta = append(beta, value)
			continue
		}
		alpha = append(alpha, value)
	}
	d := r.Produce(batch)
	wait(t, d, 10*time.Second)
	if d.Acked() != 1000-refused || len(d.Failures()) != refused || refused != 3 {
		t.Fatalf("acked %d, %d failures, %d were to be refused", d.Acked(), len(d.Failures()), refused)
	}
	for i, f := range d.Failures() {
		if f.Index != 300*i+299 || !f.Refused {
			t.Errorf("failure %+v", f)
		}
	}
	for topic, want := range map[string][]string{"alpha": alpha, "beta": beta} {
		var got []string
		for _, record := range read(t, b.Addrs()[0], topic, len(want)) {
			got = append(got, string(record.Value))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: the records are not those of the batch, or not in its order", topic)
		}
	}
}

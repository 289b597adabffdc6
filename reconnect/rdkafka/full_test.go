package rdkafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// A queue with a limit, of number or of size, takes the first messages of a batch and leaves the others out.
// What is left out and produced again after each report is there once, in its order.
func TestFull_LeavesTheLastOnesOut(t *testing.T) {
	for _, limit := range []Property{{"queue.buffering.max.messages", "10"}, {"queue.buffering.max.kbytes", "1"}} {
		b := newBroker(t, broker.Options{Topics: map[string]int{"alpha": 1}})
		r := openRig(t, b.Addrs()[0], fsm.ConnOpen, limit, Property{"linger.ms", "0"})
		batch := numbered("alpha", 0, 300)
		times := 0
		for end := time.Now().Add(20 * time.Second); len(batch.Messages) > 0; times++ {
			d := r.Produce(batch)
			wait(t, d, 10*time.Second)
			if taken := len(batch.Messages) - d.LeftOut(); d.Acked() != taken || len(d.Failures()) != 0 || time.Now().After(end) {
				t.Fatalf("%v: acked %d of %d taken, %d failures", limit, d.Acked(), taken, len(d.Failures()))
			}
			batch.Messages = batch.Messages[len(batch.Messages)-d.LeftOut():]
		}
		var want, got []string
		for i, record := range read(t, b.Addrs()[0], "alpha", 300) {
			want, got = append(want, fmt.Sprintf(`{"seq":%d}`, i)), append(got, string(record.Value))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || times < 3 {
			t.Errorf("%v: after %d times the records are not those of the batch, or not in its order: %v", limit, times, got)
		}
	}
}

package rdkafka

import (
	"slices"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// acks counts the notices of acknowledgements, and of those the ones behind the last table without a broker.
func (r *rig) acks() (all, late int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.notices {
		switch {
		case n.Kind == reconnect.NoticeAcked:
			all++
			late++
		case n.Kind == reconnect.NoticeBrokers && !slices.ContainsFunc(n.Brokers, func(b reconnect.Broker) bool { return b.Up > 0 }):
			late = 0
		}
	}
	return all, late
}

// Of the first acknowledgements of a chunk Go hears only from time to time. When the broker is lost meanwhile, they are
// told before the loss: an acknowledgement behind it would mean that a broker is back.
func TestNotices_AcknowledgementsBeforeTheLossOfTheirBroker(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen, Property{"queue.buffering.max.ms", "0"})
	wait(t, r.Produce(numbered("alpha", 0, 1)), 5*time.Second)
	// A chunk that does not end soon, as one of its topics does not exist.
	half := func(first int) {
		batch := numbered("alpha", first, 2)
		batch.Topics = append(batch.Topics, "absent")
		batch.Messages[1].Topic = 1
		r.Produce(batch)
	}
	before, _ := r.acks()
	half(1)
	r.until(5*time.Second, "the first acknowledgement", func() bool { all, _ := r.acks(); return all > before })
	half(3)
	r.until(5*time.Second, "the second record is written", func() bool { return b.Topics()["alpha"][0] == 3 })
	time.Sleep(15 * time.Millisecond) // its acknowledgement has come, and Go was told of one just now
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	r.until(5*time.Second, "the broker is lost", func() bool { return r.sum(up) == 0 })
	r.until(5*time.Second, "the second acknowledgement", func() bool { all, _ := r.acks(); return all > before+1 })
	if _, late := r.acks(); late > 0 {
		t.Errorf("%d notices of acknowledgements come after the loss", late)
	}
}

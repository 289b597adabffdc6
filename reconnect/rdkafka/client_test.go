package rdkafka

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a client of the given broker with everything it has told.
type rig struct {
	*Client
	t *testing.T

	mu      sync.Mutex
	notices []reconnect.Notice
	brokers []reconnect.Broker
	epoch   uint64
}

func newBroker(t *testing.T, o broker.Options) *broker.Broker {
	t.Helper()
	if o.Topics == nil {
		o.Topics = map[string]int{"alpha": 1}
	}
	b, err := broker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// open makes a client with the settings that the plugin uses, and some more.
func openRig(t *testing.T, bootstrap string, gate fsm.ConnGate, more ...Property) *rig {
	t.Helper()
	r := &rig{t: t}
	props := append([]Property{
		{"bootstrap.servers", bootstrap},
		{"enable.idempotence", "true"},
		{"message.timeout.ms", "0"},
		{"socket.timeout.ms", "10000"},
		{"reconnect.backoff.ms", "100"},
		{"reconnect.backoff.max.ms", "250"},
		{"broker.address.ttl", "0"},
		{"enable.metrics.push", "false"},
	}, more...)
	c, err := open(Options{Properties: props}, 7, r.take, gate)
	if err != nil {
		t.Fatal(err)
	}
	r.Client = c
	t.Cleanup(func() { _ = c.Close(2 * time.Second) })
	return r
}

func (r *rig) take(n reconnect.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, n)
	if n.Kind == reconnect.NoticeBrokers {
		r.brokers, r.epoch = n.Brokers, n.Epoch
	}
}

// sum adds one figure over all addresses.
func (r *rig) sum(f func(reconnect.Broker) int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, b := range r.brokers {
		n += f(b)
	}
	return n
}

func up(b reconnect.Broker) int       { return b.Up }
func attempts(b reconnect.Broker) int { return int(b.Attempts) }
func failures(b reconnect.Broker) int { return int(b.Failures) }
func ups(b reconnect.Broker) int      { return int(b.Ups) }

// until polls a condition and prints what the client knew when it never came true.
func (r *rig) until(within time.Duration, what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Fatalf("%s: not within %v; addresses %+v", what, within, r.brokers)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *rig) untilUp() {
	r.t.Helper()
	r.until(5*time.Second, "broker up", func() bool { return r.sum(up) > 0 })
}

// numbered is a batch of n messages with the numbers from first on as values.
func numbered(topic string, first, n int) *reconnect.Batch {
	b := &reconnect.Batch{Topics: []string{topic}}
	for i := range n {
		off := len(b.Data)
		b.Data = fmt.Appendf(b.Data, `{"seq":%d}`, first+i)
		b.Messages = append(b.Messages, reconnect.Message{
			Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValOff: int32(off), ValLen: int32(len(b.Data) - off),
		})
	}
	return b
}

func wait(t *testing.T, d *reconnect.Delivery, within time.Duration) {
	t.Helper()
	select {
	case <-d.Done():
	case <-time.After(within):
		t.Fatalf("delivery did not settle within %v", within)
	}
}

// read returns the first n records of a topic.
func read(t *testing.T, addr, topic string, n int) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out []*kgo.Record
	for len(out) < n && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { out = append(out, r) })
	}
	if len(out) != n {
		t.Fatalf("read %d records of %s, want %d", len(out), topic, n)
	}
	return out
}

// end returns how many records a one-partition topic holds.
func end(b *broker.Broker, topic string) int64 { return b.Topics()[topic][0] }

func TestClient_ProducesWhatTheBatchSays(t *testing.T) {
	b := newBroker(t, broker.Options{Topics: map[string]int{"alpha": 2, "beta": 1}})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	d := r.Produce(&reconnect.Batch{
		Topics: []string{"alpha", "beta"},
		Data:   []byte("key1value1value2"),
		Messages: []reconnect.Message{
			{Topic: 0, Partition: 1, KeyOff: 0, KeyLen: 4, ValOff: 4, ValLen: 6, Timestamp: 1700000000123},
			{Topic: 1, Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValOff: 10, ValLen: 6},
			{Topic: 1, Partition: reconnect.PartitionAny, KeyLen: 0, ValOff: 0, ValLen: 0},
		},
	})
	wait(t, d, 5*time.Second)
	if d.Acked() != 3 || len(d.Failures()) != 0 {
		t.Fatalf("acked %d, failures %+v", d.Acked(), d.Failures())
	}
	a := read(t, b.Addrs()[0], "alpha", 1)[0]
	if string(a.Key) != "key1" || string(a.Value) != "value1" || a.Partition != 1 || a.Timestamp.UnixMilli() != 1700000000123 {
		t.Errorf("alpha: %q %q %d %v", a.Key, a.Value, a.Partition, a.Timestamp)
	}
	rs := read(t, b.Addrs()[0], "beta", 2)
	if rs[0].Key != nil || string(rs[0].Value) != "value2" || time.Since(rs[0].Timestamp) > time.Minute {
		t.Errorf("beta 0: key %v value %q at %v", rs[0].Key, rs[0].Value, rs[0].Timestamp)
	}
	if rs[1].Key == nil || len(rs[1].Key) != 0 || len(rs[1].Value) != 0 {
		t.Errorf("beta 1: key %v value %v, want an empty key, not null", rs[1].Key, rs[1].Value)
	}
}

func TestClient_GateShutConnectsNowhere(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnShut)
	d := r.Produce(numbered("alpha", 1, 100))
	time.Sleep(1500 * time.Millisecond) // long enough for the client's own timers to try
	if n := b.Stats().Connects; n != 0 || r.sum(attempts) != 0 || r.sum(failures) != 0 {
		t.Fatalf("%d connects through a shut gate, table %+v", n, r.brokers)
	}
	for _, n := range r.notices {
		if n.Kind == reconnect.NoticeError {
			t.Errorf("a refusal was reported as an error: %+v", n)
		}
	}
	r.SetGate(fsm.ConnOpen)
	wait(t, d, 2*time.Second)
	if d.Acked() != 100 {
		t.Fatalf("acked %d", d.Acked())
	}
}

func TestClient_SweepAllowsOneAttemptForEachAddress(t *testing.T) {
	var dead []*broker.CountingListener
	list := ""
	for range 3 {
		l, err := broker.NewCountingListener(0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		dead = append(dead, l)
		list += l.Addr() + ","
	}
	r := openRig(t, list, fsm.ConnShut)
	r.Produce(numbered("alpha", 1, 10))
	for sweep := 1; sweep <= 3; sweep++ {
		r.SetGate(fsm.ConnSweep)
		r.until(3*time.Second, "every address tried", func() bool { return r.sum(failures) == 3*sweep })
		time.Sleep(300 * time.Millisecond) // a second attempt would come after 100 to 250 ms
		r.SetGate(fsm.ConnShut)
		for i, l := range dead {
			if n := len(l.Connects()); n != sweep {
				t.Fatalf("sweep %d: address %d saw %d connects", sweep, i, n)
			}
		}
	}
}

// The wake is a side effect of storing credentials, so it is pinned here: without it an
// allowed attempt starts up to a second late.
func TestClient_OpeningWakesTheBrokerThreads(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	r.untilUp()
	slow := 0
	for range 5 {
		r.SetGate(fsm.ConnShut)
		r.ShutSockets()
		r.until(time.Second, "down", func() bool { return r.sum(up) == 0 })
		d := r.Produce(numbered("alpha", 1, 1))
		time.Sleep(300 * time.Millisecond) // the handle is refused by now and sleeps a second
		start := time.Now()
		r.SetGate(fsm.ConnOpen)
		wait(t, d, 3*time.Second)
		if time.Since(start) > 400*time.Millisecond {
			slow++
		}
	}
	if slow > 2 {
		t.Errorf("%d of 5 openings took longer than 400 ms: the wake has no effect", slow)
	}
}

// A client without records wants a connection by a timer of a second only, unless it is asked
// for something: what waits elsewhere would wait that long after every outage.
func TestClient_SweepOfAnIdleClientConnectsAtOnce(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	wait(t, r.Produce(numbered("alpha", 1, 1)), 5*time.Second)
	slow := 0
	for i := range 6 {
		b.Stop()
		r.SetGate(fsm.ConnShut)
		r.until(time.Second, "down", func() bool { return r.sum(up) == 0 })
		time.Sleep(time.Duration(200+150*i) * time.Millisecond) // the timer is anywhere
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		before := r.sum(ups)
		start := time.Now()
		r.SetGate(fsm.ConnSweep)
		r.until(5*time.Second, "connected", func() bool { return r.sum(ups) > before })
		if time.Since(start) > 150*time.Millisecond {
			slow++
		}
		r.SetGate(fsm.ConnOpen)
		wait(t, r.Produce(numbered("alpha", 1, 1)), 5*time.Second)
	}
	if slow > 3 {
		t.Errorf("%d of 6 sweeps took longer than 150 ms: asking has no effect", slow)
	}
}

func TestClient_ShutSocketsOfAFrozenBrokerDoublesNothing(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	wait(t, r.Produce(numbered("alpha", 1, 10)), 5*time.Second)
	for round := range 3 {
		if err := b.Freeze(); err != nil {
			t.Fatal(err)
		}
		d := r.Produce(numbered("alpha", 100*round, 100))
		time.Sleep(100 * time.Millisecond) // in flight, unanswered
		r.SetGate(fsm.ConnShut)
		if r.ShutSockets() == 0 {
			t.Fatal("no socket was shut")
		}
		r.until(500*time.Millisecond, "down after the shutdown", func() bool { return r.sum(up) == 0 })
		if err := b.Thaw(); err != nil {
			t.Fatal(err)
		}
		r.SetGate(fsm.ConnOpen)
		wait(t, d, 5*time.Second)
		if d.Acked() != 100 {
			t.Fatalf("acked %d, failures %+v", d.Acked(), d.Failures())
		}
	}
	if n := end(b, "alpha"); n != 310 {
		t.Fatalf("the topic holds %d records, want 310", n)
	}
}

func TestClient_HoldDelaysOneAddress(t *testing.T) {
	l, err := broker.NewCountingListener(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	r := openRig(t, l.Addr(), fsm.ConnOpen)
	r.until(3*time.Second, "an attempt", func() bool { return r.sum(failures) > 0 })
	r.Hold(l.Addr(), time.Hour)
	time.Sleep(50 * time.Millisecond)
	before := len(l.Connects())
	time.Sleep(1200 * time.Millisecond)
	if n := len(l.Connects()); n != before {
		t.Fatalf("%d attempts at a held address", n-before)
	}
	r.SetGate(fsm.ConnOpen)
	r.until(time.Second, "an attempt after the gate opened anew", func() bool { return len(l.Connects()) > before })
}

func TestClient_Heartbeat(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	r.untilUp()
	if trouble, err := r.Heartbeat(3 * time.Second); err != nil || trouble != "" {
		t.Fatalf("%q, %v", trouble, err)
	}
	r.Produce(numbered("missing", 1, 1))
	r.until(5*time.Second, "the trouble with a topic", func() bool {
		trouble, err := r.Heartbeat(3 * time.Second)
		return err == nil && strings.Contains(trouble, "topic missing: ")
	})
	if err := b.Freeze(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := r.Heartbeat(300 * time.Millisecond); err == nil {
		t.Error("a frozen broker answered")
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("the heartbeat took %v", d)
	}
}

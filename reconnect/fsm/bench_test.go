package fsm

import (
	"testing"
	"time"
)

// BenchmarkStep measures steps that change nothing but the facts, which is what a healthy
// client sends all the time.
func BenchmarkStep(b *testing.B) {
	up := Event{Kind: BrokersChanged, ClientGen: 1, Epoch: 1, Up: 3}
	for _, bm := range []struct {
		name  string
		event Event
	}{
		{"chunk", Event{Kind: ChunkArrived, Outstanding: 5}},
		{"acked", Event{Kind: Acked, ClientGen: 1, Outstanding: 3}},
		{"brokers", up},
		{"stale", Event{Kind: Acked, ClientGen: 7}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			m, _ := New(DefaultConfig(), 0)
			m.Step(up)
			e := bm.event
			b.ReportAllocs()
			for b.Loop() {
				e.At += time.Microsecond
				m.Step(e)
			}
			if m.State() != Up {
				b.Fatalf("ended in %s", m.State())
			}
		})
	}
}

func TestStep_DoesNotAllocate(t *testing.T) {
	m, _ := New(DefaultConfig(), 0)
	e := Event{ClientGen: 1, Epoch: 1, Up: 1, Outstanding: 1}
	for _, k := range []EventKind{BrokersChanged, ChunkArrived, Acked, Reported, ErrorSeen, DeadlineReached} {
		e.Kind = k
		if n := testing.AllocsPerRun(100, func() { m.Step(e) }); n != 0 {
			t.Errorf("%s: %v allocations", k, n)
		}
	}
	// A whole outage does not allocate either: the actions are kept in one slice.
	n := testing.AllocsPerRun(100, func() {
		e := Event{Kind: BrokersChanged, At: m.now, ClientGen: 1, Epoch: m.epoch, Failed: 1, Class: ClassNetwork}
		m.Step(e)
		m.Step(Event{Kind: DeadlineReached, At: m.deadline})
		e.At, e.Epoch, e.Up = m.now, m.epoch, 1
		m.Step(e)
		e.Kind = Acked
		m.Step(e)
	})
	if n != 0 || m.Outage() < 100 {
		t.Errorf("%v allocations in an outage, %d outages", n, m.Outage())
	}
}

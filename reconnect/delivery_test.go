package reconnect

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestDelivery_Then(t *testing.T) {
	start := time.Now()
	d := NewDelivery()
	var order []string
	d.Then(func() {
		select {
		case <-d.Done():
			t.Error("Done before Then")
		default:
		}
		order = append(order, "first")
	})
	d.Then(func() { order = append(order, "second") })
	d.Settle(2, []Failure{{Index: 1}})
	if made, settled := d.MadeAt(), d.SettledAt(); made.Before(start) || settled.Before(made) || settled.After(time.Now()) {
		t.Errorf("made at %s, settled at %s", made, settled)
	}
	d.Then(func() { order = append(order, "late") })
	if len(order) != 3 || order[0] != "first" || order[2] != "late" {
		t.Errorf("called %v", order)
	}
	if d.Acked() != 2 || len(d.Failures()) != 1 {
		t.Errorf("acked %d, failures %v", d.Acked(), d.Failures())
	}
}

// Settling and registering race: each function is called exactly once.
func TestDelivery_ThenRaces(t *testing.T) {
	for range 2000 {
		d := NewDelivery()
		var calls atomic.Int32
		var wg sync.WaitGroup
		wg.Go(func() { d.Settle(1, nil) })
		wg.Go(func() { d.Then(func() { calls.Add(int32(d.Acked())) }) })
		d.Then(func() { calls.Add(int32(d.Acked())) })
		wg.Wait()
		if calls.Load() != 2 {
			t.Fatalf("%d calls, want 2", calls.Load())
		}
	}
}

func TestOutstanding_TellsWhenNothingIsLeft(t *testing.T) {
	o := outstanding{none: make(chan struct{}, 1)}
	o.add(3)
	o.remove(1)
	if len(o.none) != 0 {
		t.Error("told too early")
	}
	o.remove(2)
	o.add(1)
	o.remove(1) // the token is there already: nobody waits
	if len(o.none) != 1 || o.count() != 0 {
		t.Errorf("tokens %d, count %d", len(o.none), o.count())
	}
}

// A flush may hold a view whose client is being given up: nothing is handed over and
// nothing is counted.
func TestProduce_ClientGivenUpSinceTheView(t *testing.T) {
	s := &Supervisor{chunks: make(chan struct{}, 1), outstanding: outstanding{none: make(chan struct{}, 1)}}
	s.view.Store(&view{admit: true, client: &handle{closed: true}})
	if _, err := s.Produce(&Batch{Messages: make([]Message, 3)}); !errors.Is(err, ErrAllBrokersDown) {
		t.Errorf("Produce: %v", err)
	}
	if s.Outstanding() != 0 || s.refusals.Load() != 1 || len(s.chunks) != 0 {
		t.Errorf("%d outstanding, %d refused, %d tokens", s.Outstanding(), s.refusals.Load(), len(s.chunks))
	}
}

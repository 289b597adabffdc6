package reconnect

import (
	"errors"
	"sync"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

var (
	// ErrAllBrokersDown tells that no broker can be reached; nothing was handed over.
	ErrAllBrokersDown = errors.New("reconnect: all brokers are down")
	// ErrDraining tells that the supervisor is being closed; nothing was handed over.
	ErrDraining = errors.New("reconnect: draining")
)

// view is what flushes see of the supervisor. It is immutable; the loop replaces it as a
// whole, so that a flush can't combine the gate of one moment with the client of another.
type view struct {
	state fsm.State
	// admit is the machine's flush gate, and that a client is there.
	admit  bool
	client *handle
	// refused is closed when waiting flushes are to give up, opened when flushes are admitted.
	refused, opened chan struct{}
}

// Admit tells whether a flush may hand records over now. It takes no lock and a few
// nanoseconds; a refusal is counted.
func (s *Supervisor) Admit() bool {
	if s.view.Load().admit {
		return true
	}
	s.refusals.Add(1)
	return false
}

// Admitted tells what Admit would, without counting, and gives a channel that is closed
// when batches are taken (again); after Close it stays open for good.
func (s *Supervisor) Admitted() (bool, <-chan struct{}) {
	v := s.view.Load()
	return v.admit, v.opened
}

// State returns the state of the machine as of its last step.
func (s *Supervisor) State() fsm.State { return s.view.Load().state }

// Refused returns a channel that is closed when waiting for a delivery has become
// pointless for now: all brokers are down, or the supervisor is closed. A flush that
// takes it, then calls Produce, and then waits for either, misses nothing: while flushes
// are refused the channel is closed already, and once they are admitted again there is a
// new one.
func (s *Supervisor) Refused() <-chan struct{} { return s.view.Load().refused }

// Outstanding is the number of messages handed over in deliveries that have not settled.
func (s *Supervisor) Outstanding() int { return s.outstanding.count() }

// Produce hands a batch to the current client. It returns at once; the error is
// ErrAllBrokersDown or ErrDraining, and then nothing was handed over.
func (s *Supervisor) Produce(b *Batch) (*Delivery, error) {
	v := s.view.Load()
	if !v.admit {
		return nil, s.refuse(v)
	}
	n := len(b.Messages)
	s.outstanding.add(n) // before the client has it, so that a drain can't overlook it
	d := v.client.produce(b)
	if d == nil { // the client was given up since the view was taken
		s.outstanding.remove(n)
		return nil, s.refuse(s.view.Load())
	}
	n = taken(d, n, &s.outstanding)
	d.Then(func() { s.outstanding.remove(n) })
	signal(s.chunks)
	return d, nil
}

func (s *Supervisor) refuse(v *view) error {
	s.refusals.Add(1)
	if v.state == fsm.Draining || v.state == fsm.Closed {
		return ErrDraining
	}
	return ErrAllBrokersDown
}

// handle is a client of one generation. It keeps Produce and Close apart: flushes may
// hold a view with a client that the loop is giving up.
type handle struct {
	Client
	gen int

	waiting outstanding // what it has not reported

	mu     sync.RWMutex // held for reading while a batch is handed over, which is short
	closed bool         // guarded by mu
}

func newHandle(c Client, gen int) *handle {
	return &handle{Client: c, gen: gen, waiting: outstanding{none: make(chan struct{}, 1)}}
}

// produce hands a batch over, or returns nil if the client is closed.
func (h *handle) produce(b *Batch) *Delivery {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return nil
	}
	n := len(b.Messages)
	h.waiting.add(n)
	d := h.Produce(b)
	n = taken(d, n, &h.waiting)
	d.Then(func() { h.waiting.remove(n) })
	return d
}

// taken removes what a client has left out of n messages, and returns the number of the rest.
func taken(d *Delivery, n int, o *outstanding) int {
	if left := d.LeftOut(); left > 0 {
		o.remove(left)
		n -= left
	}
	return n
}

// retire waits until everything that the client has taken is reported, as long as one
// report follows the other within idle, or until hurry is closed, and closes the client.
func (h *handle) retire(idle, timeout time.Duration, hurry <-chan struct{}) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for stuck := false; !stuck && h.waiting.count() > 0; {
		left := h.waiting.count()
		t := time.NewTimer(idle)
		select {
		case <-h.waiting.none: // or there was nothing once before: a token stays
		case <-hurry:
			stuck = true
		case <-t.C:
			stuck = h.waiting.count() == left
		}
		t.Stop()
	}
	return h.Close(timeout)
}

// close waits for batches that are being handed over and closes the client.
func (h *handle) close(timeout time.Duration) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	return h.Close(timeout)
}

package reconnect

import (
	"sync"
	"sync/atomic"
)

// Delivery is one batch in the hands of a client. It settles once, when every message
// of the batch has been reported that the client has taken.
type Delivery struct {
	done     chan struct{}
	acked    int
	failures []Failure
	left     *Batch
	leftOut  int

	mu      sync.Mutex // held for a few instructions only
	settled bool       // guarded by mu
	then    []func()   // guarded by mu
}

// NewDelivery returns an open delivery; clients make it in Produce.
func NewDelivery() *Delivery {
	return &Delivery{done: make(chan struct{})}
}

// LeaveOut notes that the client has not taken the last n messages of the batch, because its queue is
// full: they are no part of the delivery. The client calls it before Produce returns.
func (d *Delivery) LeaveOut(n int) { d.leftOut = n }

// LeftOut is how many messages at the end of the batch were not taken. It does not change after
// Produce. There is room again when the client has reported something.
func (d *Delivery) LeftOut() int { return d.leftOut }

// Settle closes the delivery: acked messages were acknowledged, failures lists the rest by
// index and left holds them (Batch.Left). It is called once, by the client.
func (d *Delivery) Settle(acked int, failures []Failure, left *Batch) {
	d.acked, d.failures, d.left = acked, failures, left
	d.mu.Lock()
	d.settled = true
	then := d.then
	d.then = nil
	d.mu.Unlock()
	for _, f := range then {
		f()
	}
	close(d.done)
}

// Then has f called once when the delivery settles, just before Done is closed, on the
// goroutine of the client; at once if it has settled already. Acked, Failures and Left are
// valid in f; f must not block.
func (d *Delivery) Then(f func()) {
	d.mu.Lock()
	settled := d.settled
	if !settled {
		d.then = append(d.then, f)
	}
	d.mu.Unlock()
	if settled {
		f()
	}
}

// Done is closed when the delivery has settled.
func (d *Delivery) Done() <-chan struct{} { return d.done }

// Acked is the number of acknowledged messages; valid after Done.
func (d *Delivery) Acked() int { return d.acked }

// Failures lists the messages that were not acknowledged, by index; valid after Done.
func (d *Delivery) Failures() []Failure { return d.failures }

// Left is a batch of exactly the messages that were not acknowledged, in the order of
// Failures: Left().Messages[i] belongs to Failures()[i]. It is nil when there are none, lies
// in memory of its own and may be produced as it is; valid after Done.
func (d *Delivery) Left() *Batch { return d.left }

// outstanding counts the messages that were handed over and are in no settled delivery.
// It is exact at every moment, which the client's own count is not as seen from here:
// that one is read before it is received.
type outstanding struct {
	n atomic.Int64
	// none gets a token when the count has fallen to zero. It holds one, so that nobody
	// who settles a delivery ever waits.
	none chan struct{}
}

func (o *outstanding) add(n int) { o.n.Add(int64(n)) }

func (o *outstanding) remove(n int) {
	if o.n.Add(-int64(n)) == 0 {
		signal(o.none)
	}
}

func (o *outstanding) count() int { return int(o.n.Load()) }

// signal puts a token into a channel that holds one, unless it is there already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

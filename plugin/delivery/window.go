package delivery

import "time"

const (
	// drip is how often a part goes out in any case: what is in the client's hands may wait
	// for a partition without a leader, and the rest is not to wait with it.
	drip = time.Second
	// quick is how soon an answer must come for the window to grow, slow how late for it to
	// shrink.
	quick = 500 * time.Millisecond
	slow  = time.Second
)

// window bounds what the pump has in the client's hands after an outage. A connection that
// has just come back first shows by one part that it carries anything at all; then the window
// grows with each quick answer, to no bound within some round trips. A slow link keeps it
// narrow: what waits is not poured into the buffers of the network, where it would stand in
// front of the first record, and be written twice if the agent ended.
type window struct {
	// size is in bytes; 0 is no bound.
	size int64
	// out is the bytes in the client's hands that the pump gave it, last when it did so last.
	out  int64
	last time.Time
}

// narrow begins anew with one part.
func (w *window) narrow() { w.size = 1 }

// narrowed tells whether there is a bound.
func (w *window) narrowed() bool { return w.size > 0 }

// full tells when the next part may go out, if it may not now.
func (w *window) full(now time.Time) time.Time {
	if w.size == 0 || w.out < w.size {
		return time.Time{}
	}
	if at := w.last.Add(drip); now.Before(at) {
		return at
	}
	return time.Time{}
}

// lend notes that the client gets the part from the pump.
func (w *window) lend(p *part, now time.Time) {
	p.sent, w.last = now, now
	w.out += p.size
}

// takeBack notes that the client has the part no longer.
func (w *window) takeBack(p *part) {
	if p.sent.IsZero() {
		return
	}
	w.out -= p.size
	p.sent = time.Time{}
}

// drained ends the bound when the pump has nothing left, here or in the client's hands.
func (w *window) drained() {
	if w.out == 0 {
		w.size = 0
	}
}

// answered adapts the window to how long the answer to a part took.
func (w *window) answered(p *part, now time.Time, limit int64) {
	if w.size == 0 || p.sent.IsZero() {
		return
	}
	switch took := now.Sub(p.sent); {
	case took < quick:
		w.size = 2 * max(w.size, w.out)
	case took > slow:
		w.size = max(w.size/2, 1)
	}
	if w.size > limit {
		w.size = 0
	}
}

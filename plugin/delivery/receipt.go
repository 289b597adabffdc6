package delivery

import (
	"container/list"
	"slices"
	"strings"
	"sync"
	"time"
)

// Receipt is the account of one chunk: how many of its messages have come to their end, and
// how. Messages are named by their index in the batch that the chunk encodes to, which is
// the same at every attempt. Its courier keeps it; a flush only asks.
type Receipt struct {
	courier *Courier
	tag     string
	posted  time.Time
	done    chan struct{}

	// Guarded by the courier's mu until done is closed.
	number   uint64 // place in the order; 0 without one
	held     bool   // must not go out before what stands in front of it in a line
	messages int
	open     int                // messages and unusable entries that have not come to their end
	pieces   bool               // some of it was handed over apart from the rest, as the client's queue was full
	avoided  bool               // counted as avoided duplicates
	owned    bool               // Fluent Bit has been told OK: the bytes are here or nowhere
	forgone  []int              // open messages whose bytes were given up, to be supplied again; ascending
	waiting  int                // open messages that wait for an operator, forgone ones included
	stuck    map[*part]struct{} // what of them waits here
	lent     []*part            // in the client's hands
	unusable int                // entries without a message that are accounted for too
	rejected []int              // messages that became dead letters
	told     map[int]struct{}   // messages that were told of as rejected, ever
	blocked  chan struct{}
	closed   bool // blocked is closed

	entry *list.Element // where it lies in the ledger, nil if it does not; guarded by the ledger's mu

	recording sync.Mutex // held while the journal writes
	record    record     // guarded by recording
}

// newReceipt makes the receipt of a chunk.
func newReceipt(c *Courier, tag string, messages, unusable int) *Receipt {
	return &Receipt{
		courier: c, tag: strings.Clone(tag), posted: time.Now(),
		done: make(chan struct{}), blocked: make(chan struct{}),
		messages: messages, open: messages + unusable, unusable: unusable,
	}
}

// Done is closed when every message has come to its end.
func (r *Receipt) Done() <-chan struct{} { return r.done }

// Held tells whether the chunk waits for one that came before it and is not in yet.
func (r *Receipt) Held() bool {
	r.courier.mu.Lock()
	defer r.courier.mu.Unlock()
	return r.held
}

// Blocked returns a channel that is closed when all that is left waits for an operator: a
// topic is unknown, or closed to us.
func (r *Receipt) Blocked() <-chan struct{} {
	r.courier.mu.Lock()
	defer r.courier.mu.Unlock()
	return r.blocked
}

// Complete tells whether every message has come to its end.
func (r *Receipt) Complete() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Short tells whether the chunk is needed again: some messages can't be sent without it.
func (r *Receipt) Short() bool {
	r.courier.mu.Lock()
	defer r.courier.mu.Unlock()
	return len(r.forgone) > 0
}

// Posted is when the chunk was handed over first.
func (r *Receipt) Posted() time.Time { return r.posted }

// Messages is how many messages the chunk has.
func (r *Receipt) Messages() int { return r.messages }

// Open lists the messages that have not come to their end, ascending, if some have and some
// have not; nil if not, and where it is not known of all of them.
func (r *Receipt) Open() []int { return r.courier.openOf(r)[0] }

// partly tells whether some of the chunk has come to its end and some has not; the courier's mu
// is held.
func (r *Receipt) partly() bool { return 0 < r.open && r.open < r.messages+r.unusable }

// openBut does what Open does, given the messages that wait elsewhere than with a topic in
// trouble. Dead letters of which one is not safe yet count as messages that wait: they will be
// refused again. The courier's mu is held.
func (r *Receipt) openBut(elsewhere []int) []int {
	list := slices.Concat(elsewhere, r.forgone)
	for _, p := range r.lent {
		list = append(list, p.standsFor()...)
	}
	for p := range r.stuck {
		list = append(list, p.standsFor()...)
	}
	if setAside := r.open - len(list); setAside > 0 {
		if r.unusable > 0 { // which ones is not known
			return nil
		}
		list = append(list, r.rejected...)
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) < r.open {
		return nil // what is left out would be lost
	}
	return list
}

// Unusable names n entries of the chunk that have no message, to be accounted for.
func (r *Receipt) Unusable(n int) Rejected { return Rejected{Tag: r.tag, receipt: r, count: n} }

// settle counts n messages as ended; the courier's mu is held.
func (r *Receipt) settle(n int) {
	if n == 0 {
		return
	}
	r.open -= n
	r.courier.openMessages -= n
	if r.open == 0 {
		close(r.done)
		r.courier.completed(r)
	}
	r.wait(0)
}

// forgo notes messages whose bytes are given up, to be supplied again; the courier's mu is held.
func (r *Receipt) forgo(index []int) {
	r.forgone = append(r.forgone, index...)
	slices.Sort(r.forgone)
	r.rejected = slices.DeleteFunc(r.rejected, func(i int) bool { return slices.Contains(index, i) })
	r.wait(len(index))
}

// tell notes messages that are told of as rejected, and returns for each whether it was before;
// the courier's mu is held.
func (r *Receipt) tell(index []int) (again []bool) {
	if r.told == nil {
		r.told = make(map[int]struct{}, len(index))
	}
	again = make([]bool, len(index))
	for i, x := range index {
		_, again[i] = r.told[x]
		r.told[x] = struct{}{}
	}
	return again
}

// wait counts n more messages as waiting for an operator; the courier's mu is held.
func (r *Receipt) wait(n int) {
	r.waiting += n
	switch blocked := r.waiting > 0 && r.waiting == r.open; {
	case blocked && !r.closed:
		close(r.blocked)
		r.closed = true
		if r.partly() {
			r.courier.blocked = append(r.courier.blocked, r)
		}
	case !blocked && r.closed:
		r.blocked = make(chan struct{})
		r.closed = false
	}
}

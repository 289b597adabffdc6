package delivery

import (
	"slices"
	"time"
)

// Memo is what must be known of a receipt when the process has ended and the chunk comes
// back: that it was delivered, or which of its messages were not.
type Memo struct {
	// ID is a number that no other memo of the ledger has; it is not 0.
	ID      uint64
	Key     Key
	Glimpse Glimpse
	// Since is when the receipt was put into the ledger.
	Since time.Time
	// Messages is how many the chunk has; Open are the indexes of those that have not come
	// to their end, ascending.
	Messages int
	Open     []int
}

// Journal keeps memos where they outlive the process. Its methods may take as long as a
// write to the page cache does. For one ID they are called one after the other.
type Journal interface {
	// Note keeps a memo; it replaces one of the same ID.
	Note(Memo)
	// Drop forgets a memo.
	Drop(id uint64)
}

// record is what the ledger knows of the memo of a receipt.
type record struct {
	id    uint64
	in    Journal   // nil: not noted
	open  int       // how many messages it says to be open
	since time.Time // as it says
}

// Restore has receipts noted in a journal from now on, and puts the memos that an earlier
// process has left in it into the ledger, which is empty, as receipts of the courier. Those
// that have expired are dropped.
func (l *Ledger) Restore(c *Courier, j Journal, memos []Memo) {
	memos = slices.SortedFunc(slices.Values(memos), func(a, b Memo) int { return a.Since.Compare(b.Since) })
	l.mu.Lock()
	l.journal = j
	now := time.Now()
	for _, m := range memos {
		l.lastID = max(l.lastID, m.ID)
		r := c.Recall(m.Messages, m.Open)
		r.record = record{m.ID, j, len(m.Open), m.Since}
		if m.Since.After(now) { // the clock was set back
			m.Since = now
		}
		l.add(kept{m.Key, m.Glimpse, r, m.Since})
	}
	forgotten := l.trim(now)
	l.mu.Unlock()
	l.dropAll(forgotten)
}

// Completed is to be called when a receipt has come to its end. If it lies in the ledger it
// is noted, as the next process is to know it.
func (l *Ledger) Completed(r *Receipt) {
	if l.Len() == 0 { // the usual case; Put looks again
		return
	}
	l.noting(r, func(n *noting) { n.note(nil) })
}

// Blocked is to be called when all that is left of a receipt waits for an operator. That may
// take days, so what is open of a receipt in the ledger is noted, as the next process need not
// send the rest again.
func (l *Ledger) Blocked(r *Receipt) {
	if l.Len() == 0 { // Put looks again
		return
	}
	l.noting(r, func(n *noting) {
		if open := r.blockedBy(n.known()); open != nil {
			n.note(open)
		}
	})
}

// receipts lists those in the ledger; mu is held.
func (l *Ledger) receipts() []*Receipt {
	rs := make([]*Receipt, 0, l.byAge.Len())
	for e := l.byAge.Front(); e != nil; e = e.Next() {
		rs = append(rs, e.Value.(kept).receipt)
	}
	return rs
}

// noting is the only one that writes a memo of a receipt at the moment.
type noting struct {
	kept
	journal Journal
	stale   time.Duration
}

// noting calls f for a receipt that lies in the ledger, without mu. Collected comes after that,
// as the receipt can't be taken before.
func (l *Ledger) noting(r *Receipt, f func(*noting)) {
	l.mu.Lock()
	if l.journal == nil || r.entry == nil {
		l.mu.Unlock()
		return
	}
	n := &noting{r.entry.Value.(kept), l.journal, l.ttl / 4}
	r.recording.Lock()
	defer r.recording.Unlock()
	if r.record.id == 0 {
		l.lastID++
		r.record.id = l.lastID
	}
	l.mu.Unlock()
	f(n)
}

// known is how many messages the receipt's memo says to be open; 0 if there is none, or it is so
// old that it might expire although the chunk comes back again and again.
func (n *noting) known() int {
	if rec := &n.receipt.record; rec.in != nil && n.since.Sub(rec.since) < n.stale {
		return rec.open
	}
	return 0
}

// note writes the memo.
func (n *noting) note(open []int) {
	r := n.receipt
	n.journal.Note(Memo{r.record.id, n.key, n.glimpse, n.since, r.messages, open})
	r.record = record{r.record.id, n.journal, len(open), n.since}
}

// Collected is to be called before Fluent Bit is told OK for the chunk of a receipt that was
// taken from the ledger. Afterwards would be too late: with equal bytes the next chunk would
// pass for this one after a crash in between.
func (l *Ledger) Collected(r *Receipt) {
	r.recording.Lock()
	defer r.recording.Unlock()
	if r.record.in != nil {
		r.record.in.Drop(r.record.id)
		r.record.in = nil
	}
}

// dropAll forgets receipts that are not in the ledger any longer.
func (l *Ledger) dropAll(rs []*Receipt) {
	for _, r := range rs {
		l.Collected(r)
		r.courier.giveUp(r)
	}
}

// NoteOpen notes the receipts of which some messages have come to their end and some have
// not, when nobody takes or puts any more. It returns how many those are.
func (l *Ledger) NoteOpen(c *Courier) (noted int) {
	l.mu.Lock()
	j := l.journal
	rs := l.receipts()
	l.mu.Unlock()
	if j == nil {
		return 0
	}
	for i, open := range c.openOf(rs...) {
		if open != nil {
			l.noting(rs[i], func(n *noting) { n.note(open) })
			noted++
		}
	}
	return noted
}

// Recall makes the receipt of a chunk of which an earlier process knew what is open: complete, or
// short of that.
func (c *Courier) Recall(messages int, open []int) *Receipt {
	r := newReceipt(c, "", messages, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.open = len(open)
	if r.open == 0 {
		close(r.done)
		return r
	}
	c.receipts++
	c.openMessages += r.open
	r.forgone = slices.Clone(open)
	r.wait(r.open)
	return r
}

// giveUp ends what a receipt is short of: the chunk that has it is not expected any more.
func (c *Courier) giveUp(r *Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(r.forgone)
	r.forgone = nil
	r.wait(-n)
	r.settle(n)
}

// blockedBy lists the open messages of a receipt if all of them wait for an operator, some others
// have come to their end, and they are not as many as known.
func (r *Receipt) blockedBy(known int) []int {
	r.courier.mu.Lock()
	defer r.courier.mu.Unlock()
	if !r.closed || !r.partly() || r.open == known {
		return nil
	}
	return r.openBut(nil)
}

// openOf does for receipts what Receipt.Open does for one.
func (c *Courier) openOf(rs ...*Receipt) [][]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var elsewhere map[*Receipt][]int
	open := make([][]int, len(rs))
	for i, r := range rs {
		if !r.partly() {
			continue
		}
		if !r.closed && elsewhere == nil { // of a blocked one nothing waits elsewhere
			elsewhere = c.waitElsewhere()
		}
		open[i] = r.openBut(elsewhere[r])
	}
	return open
}

// waitElsewhere lists the messages of chunks that wait here, but not for an operator, by
// their index in the chunk; mu is held.
func (c *Courier) waitElsewhere() map[*Receipt][]int {
	lists := [][]*part{c.returned, c.ready, c.delayed}
	for _, b := range c.barred {
		lists = append(lists, b.parts)
	}
	waiting := map[*Receipt][]int{}
	for _, p := range slices.Concat(lists...) {
		if p.letters == nil {
			waiting[p.receipt] = append(waiting[p.receipt], p.chunkIndexes()...)
		}
	}
	return waiting
}

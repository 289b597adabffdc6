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
	id uint64
	in Journal // nil: not noted
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
		r := c.recall(m)
		r.record = record{m.ID, j}
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
	l.mu.Lock()
	if l.journal == nil || r.entry == nil {
		l.mu.Unlock()
		return
	}
	l.note(r.entry.Value.(kept), nil)
}

// receipts lists those in the ledger; mu is held.
func (l *Ledger) receipts() []*Receipt {
	rs := make([]*Receipt, 0, l.byAge.Len())
	for e := l.byAge.Front(); e != nil; e = e.Next() {
		rs = append(rs, e.Value.(kept).receipt)
	}
	return rs
}

// note notes a receipt that lies in the ledger and unlocks mu, which is held: the memo is
// written without it. Collected comes after that, as the receipt can't be taken before.
func (l *Ledger) note(k kept, open []int) {
	r, j := k.receipt, l.journal
	r.recording.Lock()
	defer r.recording.Unlock()
	if r.record.id == 0 {
		l.lastID++
		r.record.id = l.lastID
	}
	l.mu.Unlock()
	j.Note(Memo{r.record.id, k.key, k.glimpse, k.since, r.messages, open})
	r.record.in = j
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
	for i, open := range c.openOf(rs) {
		if n := len(open); n > 0 && n < rs[i].messages {
			l.mu.Lock()
			l.note(rs[i].entry.Value.(kept), open)
			noted++
		}
	}
	return noted
}

// recall makes the receipt of a memo: complete, or short of what is open.
func (c *Courier) recall(m Memo) *Receipt {
	r := newReceipt(c, "", m.Messages, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.open = len(m.Open)
	if r.open == 0 {
		close(r.done)
		return r
	}
	c.receipts++
	c.openMessages += r.open
	r.forgone = slices.Clone(m.Open)
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

// openOf lists for receipts the messages that wait here, by their index in the chunk, or nil
// where that is not all that is open. Dead letters of which one is not safe yet count as
// messages that wait: they will be refused again.
func (c *Courier) openOf(rs []*Receipt) [][]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	lists := [][]*part{c.returned, c.ready, c.delayed}
	for _, b := range c.barred {
		lists = append(lists, b.parts)
	}
	for _, t := range c.troubled {
		lists = append(lists, t.parts)
	}
	waiting := map[*Receipt][]int{}
	for _, p := range slices.Concat(lists...) {
		if p.letters == nil {
			waiting[p.receipt] = append(waiting[p.receipt], p.chunkIndexes()...)
		}
	}
	open := make([][]int, len(rs))
	for i, r := range rs {
		list := append(waiting[r], r.forgone...)
		switch setAside := r.open - r.inHands - len(list); {
		case r.inHands > 0, setAside > 0 && r.unusable > 0: // which ones is not known
			continue
		case setAside > 0:
			list = append(list, r.rejected...)
		}
		slices.Sort(list)
		open[i] = slices.Compact(list)
	}
	return open
}

package delivery

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// Ledger holds the receipts that wait for Fluent Bit's next attempt. It is safe for
// concurrent use.
type Ledger struct {
	limit int

	waiting atomic.Int64 // number of receipts, read without the lock

	mu        sync.Mutex
	ttl       time.Duration
	byAge     *list.List              // of kept, oldest first
	byKey     map[Key][]*list.Element // oldest first: equal bytes are told apart by count only
	byGlimpse map[Glimpse][]*Receipt
	journal   Journal // nil: nothing outlives the process
	lastID    uint64  // of a memo
}

type kept struct {
	key     Key
	glimpse Glimpse
	receipt *Receipt
	since   time.Time
}

// NewLedger returns an empty ledger. A receipt whose chunk does not come back within ttl
// is forgotten once it is complete; limit bounds their number.
func NewLedger(ttl time.Duration, limit int) *Ledger {
	return &Ledger{
		ttl: ttl, limit: limit, byAge: list.New(),
		byKey: map[Key][]*list.Element{}, byGlimpse: map[Glimpse][]*Receipt{},
	}
}

// SetTTL changes the time after which a receipt is forgotten.
func (l *Ledger) SetTTL(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ttl = ttl
}

// Len is the number of receipts that wait.
func (l *Ledger) Len() int { return int(l.waiting.Load()) }

// Take removes and returns the oldest receipt of the chunk, or nil.
func (l *Ledger) Take(k Key) *Receipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if es := l.byKey[k]; len(es) > 0 {
		return l.remove(es[0])
	}
	return nil
}

// Has tells whether there is a receipt of the chunk.
func (l *Ledger) Has(k Key) bool {
	if l.Len() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey[k]) > 0
}

// MayHave tells whether there is a receipt of a chunk of this glimpse.
func (l *Ledger) MayHave(g Glimpse) bool {
	if l.Len() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byGlimpse[g]) > 0
}

// Pending tells whether a chunk of this glimpse waits for its delivery, with nothing for
// a retry to collect yet. It may be wrong about a chunk that is new and looks the same.
func (l *Ledger) Pending(g Glimpse) bool {
	if l.Len() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rs := l.byGlimpse[g]
	for _, r := range rs {
		if r.Complete() || r.Short() {
			return false
		}
	}
	return len(rs) > 0
}

// Put keeps a receipt until the chunk comes back. It returns how many receipts of other
// chunks were forgotten to make room: expired ones, and the oldest when there are too many.
func (l *Ledger) Put(k Key, g Glimpse, r *Receipt) (forgotten int) {
	l.mu.Lock()
	now := time.Now()
	l.add(kept{k, g, r, now})
	rs := l.trim(now)
	l.mu.Unlock()
	if r.Complete() { // before it was there
		l.Completed(r)
	} else {
		l.Blocked(r)
	}
	l.dropAll(rs)
	return len(rs)
}

// add puts a receipt in; mu is held.
func (l *Ledger) add(k kept) {
	k.receipt.entry = l.byAge.PushBack(k)
	l.byKey[k.key] = append(l.byKey[k.key], k.receipt.entry)
	l.byGlimpse[k.glimpse] = append(l.byGlimpse[k.glimpse], k.receipt)
	l.waiting.Add(1)
}

// trim removes the receipts that must go and returns them; mu is held.
func (l *Ledger) trim(now time.Time) (forgotten []*Receipt) {
	for e := l.byAge.Front(); e != nil && l.over(e.Value.(kept), now); e = l.byAge.Front() {
		forgotten = append(forgotten, l.remove(e))
	}
	return forgotten
}

// over tells whether the oldest receipt must go. One whose records are on their way costs
// their memory anyway, so only the bound on the number ends it.
func (l *Ledger) over(oldest kept, now time.Time) bool {
	return l.Len() > l.limit || now.Sub(oldest.since) > l.ttl && (oldest.receipt.Complete() || oldest.receipt.Short())
}

// remove takes one receipt out; mu is held and e is the oldest of its key.
func (l *Ledger) remove(e *list.Element) *Receipt {
	k := l.byAge.Remove(e).(kept)
	if es := l.byKey[k.key]; len(es) == 1 {
		delete(l.byKey, k.key)
	} else {
		l.byKey[k.key] = es[1:]
	}
	if rs := l.byGlimpse[k.glimpse]; len(rs) == 1 {
		delete(l.byGlimpse, k.glimpse)
	} else {
		for i, r := range rs {
			if r == k.receipt {
				l.byGlimpse[k.glimpse] = append(rs[:i:i], rs[i+1:]...)
				break
			}
		}
	}
	l.waiting.Add(-1)
	k.receipt.entry = nil
	return k.receipt
}

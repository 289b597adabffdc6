package delivery

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"
)

// Key identifies a chunk by its tag and its bytes: Fluent Bit hands the same ones over at
// every attempt, also after a restart.
type Key struct {
	hash xxh3.Uint128
	size int
}

// KeyOf returns the key of a chunk. It reads every byte, about 0.1 ms for a megabyte.
func KeyOf(tag string, chunk []byte) Key {
	h := xxh3.New()
	_, _ = h.WriteString(tag)
	_, _ = h.Write([]byte{0}) // a tag holds no NUL: "ab"+"c" is not "a"+"bc"
	_, _ = h.Write(chunk)
	return Key{h.Sum128(), len(chunk)}
}

// Ledger holds the receipts that wait for Fluent Bit's next attempt. It is safe for
// concurrent use.
type Ledger struct {
	ttl   time.Duration
	limit int

	waiting atomic.Int64 // number of receipts, read without the lock

	mu    sync.Mutex
	byAge *list.List              // of kept, oldest first
	byKey map[Key][]*list.Element // oldest first: equal bytes are told apart by count only
}

type kept struct {
	key     Key
	receipt *Receipt
	since   time.Time
}

// NewLedger returns an empty ledger. A receipt whose chunk does not come back within ttl
// is forgotten once nothing of it is in the client's hands; limit bounds their number.
func NewLedger(ttl time.Duration, limit int) *Ledger {
	return &Ledger{ttl: ttl, limit: limit, byAge: list.New(), byKey: map[Key][]*list.Element{}}
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

// Put keeps a receipt until the chunk comes back. It returns how many receipts of other
// chunks were forgotten to make room: expired ones, and the oldest when there are too many.
func (l *Ledger) Put(k Key, r *Receipt) (forgotten int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.byKey[k] = append(l.byKey[k], l.byAge.PushBack(kept{k, r, now}))
	l.waiting.Add(1)
	for e := l.byAge.Front(); e != nil && l.over(e.Value.(kept), now); e = l.byAge.Front() {
		l.remove(e)
		forgotten++
	}
	return forgotten
}

// over tells whether the oldest receipt must go. One that is in the client's hands costs
// its memory there anyway, so only the bound on their number ends it.
func (l *Ledger) over(oldest kept, now time.Time) bool {
	return l.Len() > l.limit || now.Sub(oldest.since) > l.ttl && !oldest.receipt.Waiting()
}

// remove takes one receipt out; mu is held and e is the oldest of its key.
func (l *Ledger) remove(e *list.Element) *Receipt {
	k := l.byAge.Remove(e).(kept)
	if es := l.byKey[k.key]; len(es) == 1 {
		delete(l.byKey, k.key)
	} else {
		l.byKey[k.key] = es[1:]
	}
	l.waiting.Add(-1)
	return k.receipt
}

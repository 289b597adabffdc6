package delivery

import (
	"testing"
	"testing/synctest"
	"time"
)

// receipts makes receipts for the ledger's tests.
type receipts struct{ c *Courier }

func newReceipts() receipts { return receipts{&Courier{}} }

func (r receipts) open() *Receipt {
	return &Receipt{courier: r.c, done: make(chan struct{}), blocked: make(chan struct{}), messages: 1, open: 1}
}

func (r receipts) complete() *Receipt {
	x := r.open()
	close(x.done)
	return x
}

func TestKeyOf_TellsTagAndBytesApart(t *testing.T) {
	keys := map[Key]string{}
	for _, c := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"a", "bcd"}, {"", "abc"}, {"a", "cb"}} {
		k := KeyOf(c[0], []byte(c[1]))
		if other, ok := keys[k]; ok {
			t.Errorf("%v has the key of %s", c, other)
		}
		keys[k] = c[0] + "/" + c[1]
	}
	if first, second := KeyOf("a", []byte("bc")), KeyOf("a", []byte("bc")); first != second {
		t.Error("the same chunk has two keys")
	}
}

func TestLedger_EqualChunksAreCounted(t *testing.T) {
	l := NewLedger(time.Hour, 10)
	k := KeyOf("t", []byte("x"))
	some := newReceipts()
	a, b := some.open(), some.open()
	l.Put(k, 1, a)
	l.Put(k, 1, b)
	if l.Len() != 2 || l.Take(k) != a || l.Take(k) != b || l.Take(k) != nil || l.Len() != 0 {
		t.Error("two receipts of equal chunks are two, oldest first")
	}
}

func TestLedger_ForgetsTheExpiredAndTheTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(time.Hour, 3)
		some := newReceipts()
		running, old := some.open(), some.complete()
		ko, kr := KeyOf("t", []byte("old")), KeyOf("t", []byte("running"))
		l.Put(ko, 1, old)
		l.Put(kr, 2, running)
		time.Sleep(time.Hour + time.Second)
		if n := l.Put(KeyOf("t", []byte("1")), 3, some.open()); n != 1 || l.Take(ko) != nil {
			t.Fatalf("forgotten %d: the settled one had expired, the running one stays", n)
		}
		l.Put(KeyOf("t", []byte("2")), 4, some.open())
		if n := l.Put(KeyOf("t", []byte("3")), 5, some.open()); n != 1 || l.Take(kr) != nil || l.Len() != 3 {
			t.Fatalf("forgotten %d, %d left: above the bound the oldest goes", n, l.Len())
		}
	})
}

// An interleaving of puts and takes of a few keys against a plain model.
func TestLedger_AgainstAModel(t *testing.T) {
	const limit = 5
	for seed := range uint64(200) {
		l := NewLedger(time.Hour, limit)
		some := newReceipts()
		type row struct {
			k Key
			r *Receipt
		}
		var model []row
		x := seed*2654435761 + 1
		for range 200 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			k := KeyOf("t", []byte{byte(x>>8) % 4})
			if x%3 != 0 {
				r := some.open()
				l.Put(k, Glimpse(x%3), r)
				model = append(model, row{k, r})
				if len(model) > limit {
					model = model[1:]
				}
			} else {
				var want *Receipt
				for i, m := range model {
					if m.k == k {
						want = m.r
						model = append(model[:i:i], model[i+1:]...)
						break
					}
				}
				if got := l.Take(k); got != want {
					t.Fatalf("seed %d: took %p, want %p", seed, got, want)
				}
			}
			if l.Len() != len(model) {
				t.Fatalf("seed %d: %d receipts, want %d", seed, l.Len(), len(model))
			}
		}
	}
}

// While all brokers are down a retry must not pay for a hash of the whole chunk.
func TestLedger_PendingTellsByAGlimpse(t *testing.T) {
	l := NewLedger(time.Hour, 10)
	some := newReceipts()
	chunk := make([]byte, 10_000)
	g := GlimpseOf("t", chunk)
	if l.Pending(g) {
		t.Error("nothing is pending in an empty ledger")
	}
	open, done := some.open(), some.complete()
	l.Put(KeyOf("t", chunk), g, open)
	if !l.Pending(g) || l.Pending(GlimpseOf("u", chunk)) || l.Pending(GlimpseOf("t", chunk[1:])) {
		t.Error("a glimpse tells tag, size and both ends apart")
	}
	l.Put(KeyOf("t", chunk), g, done)
	if l.Pending(g) {
		t.Error("there is a result to collect")
	}
	l.Take(KeyOf("t", chunk))
	l.Take(KeyOf("t", chunk))
	short := some.open()
	short.forgone = []int{0}
	l.Put(KeyOf("t", chunk), g, short)
	if l.Pending(g) {
		t.Error("the chunk is needed")
	}
}

package delivery

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

func settle(r *Receipt, acked int, fs ...reconnect.Failure) *Receipt {
	d := reconnect.NewDelivery()
	r.Produced(d)
	d.Settle(acked, fs)
	return r
}

func TestReceipt_ProducesOnlyWhatIsOpen(t *testing.T) {
	r := NewReceipt(5)
	if got := r.Open(); !reflect.DeepEqual(got, []int{0, 1, 2, 3, 4}) {
		t.Fatalf("open %v", got)
	}
	d := reconnect.NewDelivery()
	r.Produced(d)
	if r.Open() != nil || !r.Waiting() || r.Complete() || r.Collect() != nil {
		t.Fatal("a running delivery leaves nothing open and nothing to collect")
	}
	d.Settle(2, []reconnect.Failure{
		{Index: 1, Class: fsm.ClassTransient},
		{Index: 3, Class: fsm.ClassRecord, Code: 87, Refused: true},
		{Index: 4, Class: fsm.ClassTopic, Status: reconnect.PossiblyPersisted},
	})
	if again := r.Collect(); len(again) != 2 {
		t.Fatalf("%+v", again)
	}
	if got := r.Open(); !reflect.DeepEqual(got, []int{1, 4}) {
		t.Fatalf("open %v", got)
	}
	if len(r.Rejected) != 1 || r.Rejected[0].Index != 3 || r.Doubtful() != 1 {
		t.Fatalf("rejected %+v, doubtful %d", r.Rejected, r.Doubtful())
	}
	// The second delivery covers messages 1 and 4: its index 1 is message 4.
	settle(r, 1, reconnect.Failure{Index: 1, Class: fsm.ClassNetwork})
	r.Collect()
	if got := r.Open(); !reflect.DeepEqual(got, []int{4}) || r.Complete() {
		t.Fatalf("open %v", got)
	}
	settle(r, 1)
	r.Collect()
	if !r.Complete() || r.Acked() != 4 {
		t.Fatalf("complete %v, acked %d", r.Complete(), r.Acked())
	}
}

// The time of a chunk ends with its last report, however late the result is collected.
func TestReceipt_Took(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReceipt(2)
		d := reconnect.NewDelivery()
		r.Produced(d)
		time.Sleep(2 * time.Second)
		d.Settle(1, []reconnect.Failure{{Index: 1, Class: fsm.ClassNetwork}})
		time.Sleep(30 * time.Second)
		r.Collect()
		d = reconnect.NewDelivery()
		r.Produced(d)
		time.Sleep(time.Second)
		d.Settle(1, nil)
		time.Sleep(time.Hour)
		r.Collect()
		if took := r.Took(); !r.Complete() || took != 33*time.Second {
			t.Errorf("complete %v, took %s, want 33s", r.Complete(), took)
		}
	})
}

func refusal(indexes ...int) []reconnect.Failure {
	var fs []reconnect.Failure
	for _, i := range indexes {
		fs = append(fs, reconnect.Failure{Index: i, Class: fsm.ClassRecord, Code: 10})
	}
	return fs
}

// A broker judges batches, in which messages of other chunks may be too. Only a message that
// was sent with nothing else around is meant itself.
func TestReceipt_RefusedBatchIsTakenApart(t *testing.T) {
	r := NewReceipt(4)
	fs := refusal(0, 1, 3)
	fs = append(fs, reconnect.Failure{Index: 2, Class: fsm.ClassRecord, Code: 10, Refused: true})
	settle(r, 0, fs...).Collect()
	if len(r.Rejected) != 1 || r.Rejected[0].Index != 2 {
		t.Fatalf("what the client refuses is refused: %+v", r.Rejected)
	}
	for _, step := range []struct {
		open   []int
		refuse []int // indexes in open
	}{
		{[]int{0, 1, 3}, []int{0, 1, 2}},
		{[]int{0}, nil},
		{[]int{1, 3}, []int{0, 1}},
		{[]int{1}, []int{0}},
		{[]int{3}, nil},
	} {
		if got := r.Open(); !r.Apart() || !reflect.DeepEqual(got, step.open) {
			t.Fatalf("open %v (apart %v), want %v", got, r.Apart(), step.open)
		}
		settle(r, len(step.open)-len(step.refuse), refusal(step.refuse...)...).Collect()
	}
	if !r.Complete() || r.Acked() != 2 || len(r.Rejected) != 2 || r.Rejected[1].Index != 1 {
		t.Fatalf("complete %v, acked %d, rejected %+v", r.Complete(), r.Acked(), r.Rejected)
	}
}

// A chunk of one message shares its batch with other chunks all the same.
func TestReceipt_SingleMessageIsNotRejectedAtOnce(t *testing.T) {
	r := settle(NewReceipt(1), 0, refusal(0)...)
	r.Collect()
	if len(r.Rejected) != 0 || !r.Apart() {
		t.Fatalf("rejected %+v, apart %v", r.Rejected, r.Apart())
	}
	settle(r, 0, refusal(0)...).Collect()
	if len(r.Rejected) != 1 || !r.Complete() {
		t.Fatalf("rejected %+v, complete %v", r.Rejected, r.Complete())
	}
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
	a, b := NewReceipt(1), NewReceipt(1)
	l.Put(k, a)
	l.Put(k, b)
	if l.Len() != 2 || l.Take(k) != a || l.Take(k) != b || l.Take(k) != nil || l.Len() != 0 {
		t.Error("two receipts of equal chunks are two, oldest first")
	}
}

func TestLedger_ForgetsTheExpiredAndTheTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(time.Hour, 3)
		running, old := NewReceipt(1), settle(NewReceipt(1), 1)
		running.Produced(reconnect.NewDelivery())
		ko, kr := KeyOf("t", []byte("old")), KeyOf("t", []byte("running"))
		l.Put(ko, old)
		l.Put(kr, running)
		time.Sleep(time.Hour + time.Second)
		if n := l.Put(KeyOf("t", []byte("1")), NewReceipt(1)); n != 1 || l.Take(ko) != nil {
			t.Fatalf("forgotten %d: the settled one had expired, the running one stays", n)
		}
		l.Put(KeyOf("t", []byte("2")), NewReceipt(1))
		if n := l.Put(KeyOf("t", []byte("3")), NewReceipt(1)); n != 1 || l.Take(kr) != nil || l.Len() != 3 {
			t.Fatalf("forgotten %d, %d left: above the bound the oldest goes", n, l.Len())
		}
	})
}

// An interleaving of puts and takes of a few keys against a plain model.
func TestLedger_AgainstAModel(t *testing.T) {
	const limit = 5
	for seed := range uint64(200) {
		l := NewLedger(time.Hour, limit)
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
				r := NewReceipt(1)
				l.Put(k, r)
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

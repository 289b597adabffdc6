package delivery

import (
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

func TestLedger_MoveTo(t *testing.T) {
	withJournal(t, func(a *agent) {
		a.limit = 10
		done, part, none := a.post("t", "t:1"), a.post("t", "t:2", "t:3"), a.post("t", "t:4")
		h := a.wantSent("t:1", "t:2 t:3", "t:4")
		a.s.set(false)
		lost := reconnect.Failure{Class: fsm.ClassTransient}
		h[0].report(nil)
		h[1].report(map[int]reconnect.Failure{1: lost})
		h[2].all(lost)
		for chunk, r := range map[string]*Receipt{"done": done, "part": part, "none": none} {
			a.keep(chunk, r)
		}
		heir := &agent{rig: a.rig, Ledger: NewLedger(time.Hour, 10), journal: &notes{memos: map[uint64]Memo{}}}
		heir.Restore(nil, heir.journal, nil)
		courier := New(Options{Limit: 1 << 20, Blocked: heir.Blocked, Completed: heir.Completed}, a.s)
		defer courier.Stop()
		a.MoveTo(heir.Ledger, a.Courier, courier)
		if a.Len() != 0 || len(a.journal.list()) != 0 {
			t.Errorf("%d receipts and %d memos are left", a.Len(), len(a.journal.list()))
		}
		if heir.Len() != 2 || len(heir.journal.list()) != 2 || heir.Has(KeyOf("t", []byte("none"))) {
			t.Errorf("%d receipts and %d memos", heir.Len(), len(heir.journal.list()))
		}
		heir.wantComplete(heir.retry("done"), true)
		rest := heir.retry("part")
		if !rest.Short() || !courier.Supply(rest, "t", batchOf("t:2", "t:3")) {
			t.Fatal("the rest is not asked for")
		}
		courier.Stop()
		if st := courier.Status(); st.Open != 1 || st.Receipts != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestLedger_Has(t *testing.T) {
	l := NewLedger(time.Hour, 10)
	x, y := KeyOf("t", []byte("x")), KeyOf("t", []byte("y"))
	if l.Has(x) || l.MayHave(1) {
		t.Error("it is empty")
	}
	l.Put(x, 1, newReceipts().open())
	if !l.Has(x) || !l.MayHave(1) || l.Has(y) || l.MayHave(2) {
		t.Error("it has the one that was put")
	}
}

func TestCourier_Seal(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.s.set(false)
		x, y := r.post("t", "t:1"), r.post("t", "t:2")
		if !r.Own(x) || r.Seal() {
			t.Error("sealed with something owned")
		}
		r.Disown(x)
		if !r.Seal() || r.Own(y) || r.Status().Owned != 0 {
			t.Error("not sealed")
		}
	})
}

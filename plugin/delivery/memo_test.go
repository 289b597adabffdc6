package delivery

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// notes is a journal in memory.
type notes struct {
	mu    sync.Mutex
	memos map[uint64]Memo
	calls int
}

func (n *notes) Note(m Memo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memos[m.ID] = m
	n.calls++
}

func (n *notes) Drop(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memos, id)
	n.calls++
}

// list is the memos in the order of their IDs.
func (n *notes) list() []Memo {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []Memo
	for _, id := range slices.Sorted(maps.Keys(n.memos)) {
		out = append(out, n.memos[id])
	}
	return out
}

// agent is a courier with a ledger that has a journal.
type agent struct {
	*rig
	*Ledger
	journal *notes
}

func withJournal(t *testing.T, f func(a *agent)) {
	t.Helper()
	a := &agent{Ledger: NewLedger(time.Hour, 3), journal: &notes{memos: map[uint64]Memo{}}}
	a.Restore(nil, a.journal, nil)
	inBubble(t, Options{Blocked: a.Blocked, Completed: a.Completed}, func(r *rig) {
		a.rig = r
		f(a)
	})
}

// keep puts the receipt of a chunk that is told by its name into the ledger.
func (a *agent) keep(chunk string, r *Receipt) {
	a.Put(KeyOf("t", []byte(chunk)), GlimpseOf("t", []byte(chunk)), r)
}

func (a *agent) retry(chunk string) *Receipt { return a.Take(KeyOf("t", []byte(chunk))) }

// wantNoted compares the open messages in the memos.
func (a *agent) wantNoted(want ...[]int) {
	a.t.Helper()
	var got [][]int
	for _, m := range a.journal.list() {
		got = append(got, m.Open)
	}
	if !reflect.DeepEqual(got, want) {
		a.t.Fatalf("noted %v, want %v", got, want)
	}
}

func TestLedger_NotesWhatNobodyWaitsFor(t *testing.T) {
	withJournal(t, func(a *agent) {
		// Acknowledged while the flush waits: the usual case.
		x := a.post("t", "t:1")
		a.wantSent("t:1")[0].report(nil)
		a.Collected(x)
		if a.journal.calls != 0 {
			t.Fatalf("%d calls for a chunk that needs none", a.journal.calls)
		}
		// Acknowledged between two attempts.
		x = a.post("t", "t:2", "t:3")
		a.keep("x", x)
		a.wantNoted()
		a.wantSent("t:2 t:3")[0].report(nil)
		a.wantNoted(nil)
		if m := a.journal.list()[0]; m.ID == 0 || m.Key != KeyOf("t", []byte("x")) || m.Messages != 2 || !m.Since.Equal(time.Now()) {
			t.Errorf("%+v", m)
		}
		// Acknowledged just before it is put back.
		y := a.post("t", "t:4")
		a.wantSent("t:4")[0].report(nil)
		a.keep("y", y)
		a.wantNoted(nil, nil)
		if a.retry("x") != x {
			t.Fatal("not found")
		}
		a.wantNoted(nil, nil) // Fluent Bit has not been told yet
		a.Collected(x)
		a.wantNoted(nil)
		a.Collected(a.retry("y"))
		a.wantNoted()
	})
}

func TestLedger_DropsWhatItForgets(t *testing.T) {
	withJournal(t, func(a *agent) {
		for _, c := range []string{"1", "2", "3", "4"} {
			x := a.post("t", "t:"+c)
			a.wantSent("t:" + c)[0].report(nil)
			a.keep(c, x)
		}
		a.wantNoted(nil, nil, nil)
		time.Sleep(time.Hour + time.Second)
		a.keep("5", a.post("t", "t:5"))
		a.wantNoted()
	})
}

func TestLedger_NotesWhatIsPartlyDelivered(t *testing.T) {
	lost := reconnect.Failure{Class: fsm.ClassTransient}
	refused := reconnect.Failure{Class: fsm.ClassRecord, Refused: true}
	withJournal(t, func(a *agent) {
		a.limit = 10
		none, some := a.post("t", "t:1"), a.post("t", "t:2", "t:3", "t:4", "t:5")
		h := a.wantSent("t:1", "t:2 t:3 t:4 t:5")
		topic := a.post("t", "bad:6", "t:7")
		a.wantSent("bad:6 t:7")[0].report(map[int]reconnect.Failure{0: noTopic})
		hands := a.post("t", "t:8")
		a.unsafe = true
		letter := a.post("t", "t:9", "t:10", "bad:11")
		a.wantSent("t:8", "t:9 t:10")[1].report(map[int]reconnect.Failure{0: refused})
		a.s.set(false)
		h[0].all(lost)
		h[1].report(map[int]reconnect.Failure{0: lost, 2: lost, 3: lost})
		for i, r := range []*Receipt{none, some, topic, hands, letter} {
			a.keep(string(rune('a'+i)), r)
		}
		if n := a.NoteOpen(a.Courier); n != 3 {
			t.Errorf("%d noted", n)
		}
		a.wantNoted([]int{0, 2, 3}, []int{0}, []int{0, 2})
	})
}

// A chunk of which the rest waits for an operator may do so for days, and the process be killed.
func TestLedger_NotesWhatWaitsForAnOperatorAtOnce(t *testing.T) {
	withJournal(t, func(a *agent) {
		whole := a.post("t", "bad:0")
		x := a.post("t", "t:1", "bad:2", "worse:3", "t:4")
		h := a.wantSent("bad:0", "t:1 bad:2 worse:3 t:4")
		a.keep("whole", whole)
		h[0].all(noTopic)
		h[1].report(map[int]reconnect.Failure{1: noTopic, 2: noTopic})
		synctest.Wait()
		a.wantNoted() // a flush has it
		a.keep("x", x)
		a.wantNoted([]int{1, 2})
		a.retry("x")
		a.wantNoted([]int{1, 2})
		a.keep("x", x)
		// Probes that fail, and retries, change nothing.
		calls := a.journal.calls
		for range 20 {
			time.Sleep(10 * time.Second)
			for _, h := range a.s.take() {
				h.all(noTopic)
			}
			a.keep("x", a.retry("x"))
		}
		if a.journal.calls != calls {
			t.Errorf("%d calls while nothing changed", a.journal.calls-calls)
		}
		// One of the topics is made.
		time.Sleep(10 * time.Second)
		for _, h := range a.s.take() {
			if h.texts == "worse:3" {
				h.report(nil)
			} else {
				h.all(noTopic)
			}
		}
		synctest.Wait()
		a.wantNoted([]int{1})
		// A memo of a chunk that still comes back does not expire.
		since := a.journal.list()[0].Since
		time.Sleep(time.Hour / 2)
		for _, h := range a.s.take() {
			h.all(noTopic)
		}
		a.keep("x", a.retry("x"))
		if m := a.journal.list()[0]; !m.Since.After(since) || len(m.Open) != 1 {
			t.Errorf("%+v", m)
		}
		// The other one too.
		time.Sleep(10 * time.Second)
		for range 2 {
			for _, h := range a.s.take() {
				h.report(nil)
			}
		}
		synctest.Wait()
		a.wantNoted(nil, nil)
		a.Collected(a.retry("x"))
		a.Collected(a.retry("whole"))
		a.wantNoted()
	})
}

func TestReceipt_Open(t *testing.T) {
	withJournal(t, func(a *agent) {
		x := a.Post(inFront, "t", batchOf("t:1", "bad:2", "t:3"), 1, 0)
		h := a.wantSent("t:1 bad:2 t:3")[0]
		want := func(want ...int) {
			t.Helper()
			synctest.Wait()
			if got := x.Open(); !slices.Equal(got, want) {
				t.Errorf("open %v, want %v", got, want)
			}
		}
		want() // all of it
		a.s.set(false)
		h.report(map[int]reconnect.Failure{1: noTopic, 2: transient})
		want() // which entry is not accounted for is not known
		a.Account(x.Unusable(1))
		want(1, 2)
		a.s.set(true)
		h = a.wantSent("t:3")[0]
		want(1, 2) // one is in the client's hands
		h.report(nil)
		want(1)
		a.keep("x", x)
		a.wantNoted([]int{1})
	})
}

func TestLedger_Restore(t *testing.T) {
	withJournal(t, func(a *agent) {
		at := time.Now().Add(-time.Minute)
		memo := func(id uint64, chunk string, since time.Time, open ...int) Memo {
			m := Memo{id, KeyOf("t", []byte(chunk)), GlimpseOf("t", []byte(chunk)), since, 3, open}
			a.journal.Note(m)
			return m
		}
		a.Restore(a.Courier, a.journal, []Memo{
			memo(4, "future", time.Now().Add(time.Hour), 1),
			memo(7, "done", at),
			memo(5, "part", at, 0, 2),
			memo(9, "old", at.Add(-time.Hour), 1),
		})
		if a.Len() != 3 || len(a.journal.list()) != 3 || a.Status().Receipts != 2 || a.Status().Open != 3 {
			t.Fatalf("%d receipts, %d memos, %+v", a.Len(), len(a.journal.list()), a.Status())
		}
		if a.Pending(GlimpseOf("t", []byte("done"))) || a.Pending(GlimpseOf("t", []byte("part"))) {
			t.Error("there is something to collect, or to supply")
		}
		done := a.retry("done")
		a.wantComplete(done, true)
		a.Collected(done)
		part := a.retry("part")
		if !part.Short() || part.Complete() {
			t.Fatal("not short")
		}
		if !a.Supply(part, "t", batchOf("t:1", "t:2", "t:3")) {
			t.Fatal("not taken")
		}
		h := a.wantSent("t:1 t:3")[0]
		a.keep("part", part)
		h.report(nil)
		a.wantNoted([]int{1}, nil) // the other one is complete now, under its old number
		a.Collected(a.retry("part"))
		// New numbers are above all old ones.
		x := a.post("t", "t:9")
		a.wantSent("t:9")[0].report(nil)
		a.keep("new", x)
		if l := a.journal.list(); l[len(l)-1].ID <= 9 {
			t.Errorf("%+v", l)
		}
		// The same bytes become other messages in this release.
		if a.Supply(a.retry("future"), "t", batchOf("t:1")) || a.Status().Receipts != 0 || a.Status().Open != 0 {
			t.Errorf("%+v", a.Status())
		}
	})
}

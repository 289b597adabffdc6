package delivery

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sender is a supervisor whose reports the test makes.
type sender struct {
	mu     sync.Mutex
	shut   bool
	late   bool // shut by the next Produce, after Admitted has said otherwise
	opened chan struct{}
	sent   []*handed
	queue  int    // how many messages it takes before it has reported some; 0 is no limit
	inside int    // not reported
	unfit  string // a message that never fits
}

// handed is a batch in the sender's hands.
type handed struct {
	*reconnect.Delivery
	batch *reconnect.Batch
	texts string // "topic:value" of each message
	s     *sender
}

func (s *sender) Admitted() (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.shut, s.opened
}

func (s *sender) Produce(b *reconnect.Batch) (*reconnect.Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late {
		s.late, s.shut, s.opened = false, true, make(chan struct{})
	}
	if s.shut {
		return nil, errors.New("shut")
	}
	n := len(b.Messages)
	if s.queue > 0 {
		n = min(n, s.queue-s.inside)
	}
	for i, m := range b.Messages[:n] {
		if topicOf(b, i)+":"+string(b.Data[m.ValOff:m.ValOff+m.ValLen]) == s.unfit {
			n = i
			break
		}
	}
	s.inside += n
	h := &handed{Delivery: reconnect.NewDelivery(), batch: b.Pick(upTo(0, n)), s: s}
	if h.LeaveOut(len(b.Messages) - n); n == 0 {
		h.Settle(0, nil, nil)
		return h.Delivery, nil
	}
	b = h.batch
	var texts []string
	for i, m := range b.Messages {
		texts = append(texts, topicOf(b, i)+":"+string(b.Data[m.ValOff:m.ValOff+m.ValLen]))
	}
	h.texts = strings.Join(texts, " ")
	s.sent = append(s.sent, h)
	return h.Delivery, nil
}

// set opens or shuts the sender.
func (s *sender) set(open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case open && s.shut:
		close(s.opened)
	case !open && !s.shut:
		s.opened = make(chan struct{})
	}
	s.shut = !open
}

// take returns what was handed over and not taken yet.
func (s *sender) take() []*handed {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.sent
	s.sent = nil
	return out
}

// report settles a batch: failures by position, the rest is acknowledged.
func (h *handed) report(failures map[int]reconnect.Failure) {
	var fs []reconnect.Failure
	for i := range h.batch.Messages {
		if f, ok := failures[i]; ok {
			f.Index = i
			fs = append(fs, f)
		}
	}
	h.s.mu.Lock()
	h.s.inside -= len(h.batch.Messages)
	h.s.mu.Unlock()
	h.Settle(len(h.batch.Messages)-len(fs), fs, h.batch.Left(fs))
}

// all fails every message alike.
func (h *handed) all(f reconnect.Failure) {
	fs := map[int]reconnect.Failure{}
	for i := range h.batch.Messages {
		fs[i] = f
	}
	h.report(fs)
}

// rig is a courier and its sender in a bubble.
type rig struct {
	*Courier
	t        *testing.T
	s        *sender
	mu       sync.Mutex
	rejected []string
	unsafe   bool // dead letters can't be written
	troubles []Trouble
}

func inBubble(t *testing.T, o Options, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, s: &sender{opened: make(chan struct{})}}
		if o.Limit == 0 {
			o.Limit = 1 << 20
		}
		o.BackoffMin, o.BackoffMax = 100*time.Millisecond, 5*time.Second
		o.Answered = func() {}
		if o.Blocked == nil {
			o.Blocked = func(*Receipt) {}
		}
		if o.Completed == nil {
			o.Completed = func(*Receipt) {}
		}
		o.Trouble = func(x Trouble) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.troubles = append(r.troubles, x)
		}
		o.Reject = func(x Rejected) {
			r.mu.Lock()
			for i, f := range x.Failures {
				m := x.Batch.Messages[i]
				r.rejected = append(r.rejected, fmt.Sprintf("%s/%d/%s", x.Tag, f.Index, x.Batch.Data[m.ValOff:m.ValOff+m.ValLen]))
			}
			unsafe := r.unsafe
			r.mu.Unlock()
			if !unsafe {
				r.Account(x)
			}
		}
		r.Courier = New(o, r.s)
		defer r.Stop()
		f(r)
	})
}

// inFront is the place of a chunk that nothing stands before.
var inFront = Place{First: true}

// post posts a chunk of texts, each "topic:value".
func (r *rig) post(tag string, texts ...string) *Receipt {
	r.t.Helper()
	x := r.Post(inFront, tag, batchOf(texts...), 0, 0)
	if x == nil {
		r.t.Fatalf("no room for %v", texts)
	}
	return x
}

func batchOf(texts ...string) *reconnect.Batch {
	b := &reconnect.Batch{}
	for _, text := range texts {
		topic, value, _ := strings.Cut(text, ":")
		i := slices.Index(b.Topics, topic)
		if i < 0 {
			i = len(b.Topics)
			b.Topics = append(b.Topics, topic)
		}
		b.Messages = append(b.Messages, reconnect.Message{
			Topic: int32(i), Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey,
			ValOff: int32(len(b.Data)), ValLen: int32(len(value)),
		})
		b.Data = append(b.Data, value...)
	}
	return b
}

// wantSent compares what was handed over since the last look.
func (r *rig) wantSent(want ...string) []*handed {
	r.t.Helper()
	got := r.s.take()
	var texts []string
	for _, h := range got {
		texts = append(texts, h.texts)
	}
	if !slices.Equal(texts, want) {
		r.t.Fatalf("sent %q, want %q", texts, want)
	}
	return got
}

func (r *rig) wantComplete(x *Receipt, want bool) {
	r.t.Helper()
	synctest.Wait()
	if x.Complete() != want {
		r.t.Fatalf("complete: %v, want %v", !want, want)
	}
}

var (
	transient = reconnect.Failure{Class: fsm.ClassTransient, Code: -192}
	doubtful  = reconnect.Failure{Class: fsm.ClassTransient, Code: -151, Status: reconnect.PossiblyPersisted}
	persisted = reconnect.Failure{Class: fsm.ClassTransient, Code: -151, Status: reconnect.Persisted}
	tooLarge  = reconnect.Failure{Class: fsm.ClassRecord, Code: 10}
	refused   = reconnect.Failure{Class: fsm.ClassRecord, Code: 10, Refused: true}
	noTopic   = reconnect.Failure{Class: fsm.ClassTopic, Code: 3}

	noPartition = reconnect.Failure{Class: fsm.ClassTopic, Code: codeUnknownPartition}
)

func TestCourier_HandsOverAtOnceAndCompletes(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x := r.post("a", "t:1", "t:2")
		h := r.wantSent("t:1 t:2")
		if st := r.Status(); st.Queued != 2+2*messageOverhead || st.Open != 2 || st.Receipts != 1 {
			t.Errorf("%+v", st)
		}
		r.wantComplete(x, false)
		h[0].report(nil)
		r.wantComplete(x, true)
		if st := r.Status(); st.Queued != 0 || st.Open != 0 || st.Receipts != 0 || st.Acked != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// What comes while no broker is up goes out when one is, in the order in which it came, and
// nobody has to ask for it.
func TestCourier_WhatWaitsGoesOutByItself(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.s.set(false)
		b := batchOf("t:1")
		x := r.Post(inFront, "a", b, 0, 0)
		copy(b.Data, "X") // the batch is the caller's again
		r.post("a", "t:2")
		time.Sleep(time.Hour)
		r.wantSent()
		r.s.set(true)
		r.wantSent("t:1")[0].report(nil) // first one, as a proof
		h := r.wantSent("t:2")
		r.wantComplete(x, true)
		// A client that is given up gives everything back, and that goes out before what is new.
		r.s.set(false)
		y := r.post("a", "t:3")
		h[0].all(transient)
		z := r.post("a", "t:4")
		r.wantSent()
		r.s.set(true)
		r.wantSent("t:2")[0].report(nil)
		for _, h := range r.wantSent("t:3", "t:4") {
			h.report(nil)
		}
		r.wantComplete(y, true)
		r.wantComplete(z, true)
	})
}

// After an outage one chunk goes first, then more with every quick answer.
func TestCourier_TheWindowOpensWithQuickAnswers(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.s.set(false)
		time.Sleep(time.Second)
		for range 40 {
			r.post("a", "t:1")
		}
		r.s.set(true)
		sent, rounds := 0, 0
		for sent < 40 {
			handed := r.s.take()
			if rounds == 0 && len(handed) != 1 {
				t.Fatalf("%d went first", len(handed))
			}
			sent += len(handed)
			time.Sleep(10 * time.Millisecond)
			for _, h := range handed {
				h.report(nil)
			}
			if rounds++; rounds > 6 {
				t.Fatalf("%d sent after %d rounds", sent, rounds)
			}
		}
		r.post("a", "t:1") // at once: there is no bound any longer
		r.wantSent("t:1")
	})
}

// What waits is not poured into a slow link.
func TestCourier_TheWindowStaysNarrowOnASlowLink(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.s.set(false)
		time.Sleep(time.Second)
		for range 20 {
			r.post("a", "t:1")
		}
		r.s.set(true)
		most, sent := 0, 0
		var out []*handed
		for range 200 { // one answer in 400 ms
			out = append(out, r.s.take()...)
			most = max(most, len(out))
			time.Sleep(400 * time.Millisecond)
			if len(out) > 0 {
				out[0].report(nil)
				out = out[1:]
				sent++
			}
		}
		if sent != 20 || most > 4 {
			t.Errorf("%d sent, %d at a time", sent, most)
		}
	})
}

// A partition without a leader must not hold up the rest.
func TestCourier_TheWindowLetsOthersPassWhatIsStuck(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.s.set(false)
		time.Sleep(time.Second)
		for _, text := range []string{"t:1", "u:2", "u:3", "u:4"} {
			r.post("a", text)
		}
		r.s.set(true)
		r.wantSent("t:1")
		time.Sleep(drip)
		r.wantSent("u:2")[0].report(nil)
		r.wantSent("u:3", "u:4")
	})
}

func TestCourier_SendsOnlyWhatCameBack(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x := r.post("a", "t:1", "t:2", "t:3", "t:4")
		r.wantSent("t:1 t:2 t:3 t:4")[0].report(map[int]reconnect.Failure{1: transient, 2: persisted, 3: doubtful})
		h := r.wantSent("t:2 t:4")
		if st := r.Status(); st.Acked != 2 || st.Doubtful != 1 || st.Open != 2 {
			t.Errorf("%+v", st)
		}
		h[0].all(transient) // for the second time: not at once
		r.wantSent()
		time.Sleep(againMin)
		r.wantSent("t:2 t:4")[0].report(nil)
		r.wantComplete(x, true)
	})
}

// What comes back is counted each time, by class; what is written or given up did not come back.
func TestCourier_CountsWhatCameBack(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.post("a", "t:1", "t:2", "t:3", "t:4", "t:5")
		r.wantSent("t:1 t:2 t:3 t:4 t:5")[0].report(map[int]reconnect.Failure{0: persisted, 1: transient, 2: refused, 3: tooLarge})
		r.wantSent("t:4")[0].report(nil)
		r.wantSent("t:2")[0].all(transient)
		if got, want := r.Status().Returned, (map[fsm.Class]int64{fsm.ClassTransient: 2, fsm.ClassRecord: 1}); !maps.Equal(got, want) {
			t.Errorf("%v; want %v", got, want)
		}
	})
}

func TestCourier_RoomIsBounded(t *testing.T) {
	inBubble(t, Options{Limit: 1280}, func(r *rig) {
		big := "t:" + strings.Repeat("x", 5000)
		r.post("a", "bad:1")
		r.wantSent("bad:1")[0].all(noTopic)
		r.post("a", big) // a courier with nothing but what is stuck takes any
		if x := r.Post(inFront, "a", batchOf("t:1"), 0, 0); x != nil || r.Room(1) {
			t.Error("above the limit")
		}
		if x := r.Post(inFront, "a", batchOf("t:1"), 0, 10_000); x == nil {
			t.Error("there is spare room for what is taken over")
		}
		for _, h := range r.s.take() {
			h.report(nil)
		}
		r.post("a", "t:1", "t:2")
		if !r.Room(300) || r.Room(600) {
			t.Errorf("%+v", r.Status())
		}
	})
}

// A broker judges batches, in which messages of other chunks may be too. Only a message that
// was sent alone is meant itself; other topics flow on meanwhile.
func TestCourier_TakesARefusedBatchApart(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x := r.post("a", "t:1", "t:2", "t:3", "u:4")
		other := r.post("b", "t:9")
		h := r.wantSent("t:1 t:2 t:3 u:4", "t:9")
		h[0].report(map[int]reconnect.Failure{0: tooLarge, 1: tooLarge, 2: refused})
		if len(r.rejected) != 1 || r.rejected[0] != "a/2/3" {
			t.Fatalf("what the client refuses is refused: %q", r.rejected)
		}
		r.wantSent() // t:9 is still on its way
		y := r.post("c", "t:5")
		z := r.post("c", "u:6")
		r.wantSent("u:6")[0].report(nil)
		r.wantComplete(z, true)
		h[1].report(nil)
		r.wantComplete(other, true)
		r.wantSent("t:1 t:2")[0].all(tooLarge)
		r.wantSent("t:1")[0].report(nil)
		r.wantSent("t:2")[0].all(tooLarge)
		r.wantComplete(x, true)
		if len(r.rejected) != 2 || r.rejected[1] != "a/1/2" {
			t.Errorf("rejected %q", r.rejected)
		}
		r.wantSent("t:5")[0].report(nil)
		r.wantComplete(y, true)
	})
}

// A chunk of one message shares its batch with other chunks all the same.
func TestCourier_ASingleMessageIsNotRejectedAtOnce(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x := r.post("a", "t:1")
		r.wantSent("t:1")[0].all(tooLarge)
		r.wantComplete(x, false)
		r.wantSent("t:1")[0].all(tooLarge)
		r.wantComplete(x, true)
		if len(r.rejected) != 1 {
			t.Errorf("rejected %q", r.rejected)
		}
	})
}

// Good topics flow while a bad one waits; one message asks from time to time.
func TestCourier_ATopicInTroubleWaitsByItself(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x := r.post("a", "bad:1", "t:2")
		r.wantSent("bad:1 t:2")[0].report(map[int]reconnect.Failure{0: noTopic})
		if !isClosed(x.Blocked()) {
			t.Error("all that is left waits for an operator")
		}
		y := r.post("b", "bad:3", "t:4")
		r.wantSent("t:4")[0].report(nil)
		for range 4 {
			time.Sleep(5 * time.Second)
			r.wantSent("bad:1")[0].all(noTopic)
		}
		if st := r.Status(); !slices.Equal(st.Topics, []string{"bad"}) || st.Open != 2 {
			t.Errorf("%+v", st)
		}
		time.Sleep(5 * time.Second)
		h := r.wantSent("bad:1")
		if isClosed(x.Blocked()) {
			t.Error("it is on its way again")
		}
		h[0].report(nil)
		r.wantSent("bad:3")[0].report(nil)
		r.wantComplete(x, true)
		r.wantComplete(y, true)
		if st := r.Status(); len(st.Topics) != 0 || len(r.rejected) != 0 {
			t.Errorf("%+v, rejected %q", st, r.rejected)
		}
	})
}

// A message whose key leads to a partition that is not there must not keep the others of its
// topic.
func TestCourier_ProbesTakeTurnsWhenThePartitionIsUnknown(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x := r.post("a", "t:1")
		r.wantSent("t:1")[0].all(noPartition)
		y := r.post("b", "t:2")
		time.Sleep(5 * time.Second)
		r.wantSent("t:1")[0].all(noPartition)
		time.Sleep(5 * time.Second)
		r.wantSent("t:2")[0].report(nil)
		r.wantComplete(y, true)
		r.wantSent("t:1")[0].all(noPartition)
		r.wantComplete(x, false)
		r.Stop()
	})
}

func TestCourier_ATopicInTroubleMayBeGivenUp(t *testing.T) {
	inBubble(t, Options{OnTopicError: TopicReject, TopicWait: 10 * time.Second}, func(r *rig) {
		x := r.post("a", "bad:1")
		r.wantSent("bad:1")[0].all(noTopic)
		y := r.post("b", "bad:2")
		for range 20 {
			time.Sleep(time.Second)
			for _, h := range r.s.take() {
				h.all(noTopic)
			}
		}
		r.wantComplete(x, true)
		r.wantComplete(y, true)
		slices.Sort(r.rejected)
		if !slices.Equal(r.rejected, []string{"a/0/1", "b/0/2"}) {
			t.Errorf("rejected %q", r.rejected)
		}
	})
}

// What becomes of the two kinds differs, so they are not mixed in one Rejected.
func TestCourier_RejectsTheMendableApart(t *testing.T) {
	inBubble(t, Options{OnTopicError: TopicReject}, func(r *rig) {
		var codes []string
		o := r.o
		reject := o.Reject
		o.Reject = func(x Rejected) {
			var of []int
			for _, f := range x.Failures {
				of = append(of, f.Code)
			}
			codes = append(codes, fmt.Sprint(of))
			reject(x)
		}
		r.Reconfigure(o, r.s)
		x := r.post("a", "bad:1", "bad:2")
		r.wantSent("bad:1 bad:2")[0].all(noTopic)
		time.Sleep(5 * time.Second)
		r.wantSent("bad:1 bad:2")[0].report(map[int]reconnect.Failure{0: refused, 1: noTopic})
		r.wantComplete(x, true)
		slices.Sort(codes)
		if !slices.Equal(codes, []string{"[10]", "[3]"}) {
			t.Errorf("rejected %v", codes)
		}
	})
}

// What waits for a bad topic may not fill the room of the good ones: Fluent Bit has the
// bytes too, and brings them again.
func TestCourier_BytesOfABadTopicAreGivenUpAndSuppliedAgain(t *testing.T) {
	inBubble(t, Options{Limit: 1280}, func(r *rig) {
		x := r.post("a", "bad:1")
		r.wantSent("bad:1")[0].all(noTopic)
		y, z := r.post("b", "bad:2", "t:3"), r.post("c", "bad:4")
		r.wantSent("t:3")[0].report(nil)
		if x.Short() || y.Short() || !z.Short() || r.Status().Queued > 640 {
			t.Fatalf("short: %v %v %v, %+v", x.Short(), y.Short(), z.Short(), r.Status())
		}
		time.Sleep(5 * time.Second)
		r.wantSent("bad:1")[0].report(nil)
		r.wantSent("bad:2")[0].report(nil)
		r.wantComplete(y, true)
		r.wantComplete(z, false)
		r.Supply(z, "t", batchOf("bad:4"))
		r.wantSent("bad:4")[0].report(nil)
		r.wantComplete(z, true)
	})
}

// Letters that nobody takes may not fill the room either: the chunk is supplied again, and its
// bad message rejected again.
func TestCourier_LettersThatNobodyTakesLeaveRoom(t *testing.T) {
	inBubble(t, Options{LetterTopic: "dlq", Limit: 1280}, func(r *rig) {
		var rejected []Rejected
		o := r.o
		o.Reject = func(x Rejected) { rejected = append(rejected, x) }
		r.Reconfigure(o, r.s)
		var chunks []*Receipt
		for i := range 4 {
			chunks = append(chunks, r.post("a", fmt.Sprintf("t:%d", i)))
			r.s.take()[0].all(refused)
			r.PostLetters(rejected[i], batchOf(fmt.Sprintf("dlq:%d", i)), "letters")
			for _, h := range r.s.take() {
				h.all(noTopic)
			}
		}
		if !r.Room(400) {
			t.Errorf("%+v", r.Status())
		}
		short := 0
		for _, x := range chunks {
			if x.Short() {
				short++
			}
		}
		if short != 2 {
			t.Errorf("%d chunks are needed again", short)
		}
		if r.Forgo(chunks[0].Unusable(1)) {
			t.Error("an entry without a message is here only")
		}
	})
}

// What Fluent Bit was told OK for exists here only.
func TestCourier_OwnedBytesAreNeverGivenUp(t *testing.T) {
	inBubble(t, Options{Limit: 1000}, func(r *rig) {
		r.post("a", "bad:1")
		r.wantSent("bad:1")[0].all(noTopic)
		x := r.post("b", "bad:2", "bad:3", "bad:4")
		if !x.Short() {
			t.Fatal("nothing was given up")
		}
		r.Own(x)
		r.Supply(x, "t", batchOf("bad:2", "bad:3", "bad:4"))
		if st := r.Status(); x.Short() || st.Owned != 1 {
			t.Fatalf("short %v, %+v", x.Short(), st)
		}
		time.Sleep(5 * time.Second)
		r.wantSent("bad:1")[0].report(nil)
		r.wantSent("bad:2 bad:3 bad:4")[0].report(nil)
		if st := r.Status(); st.Owned != 0 || !x.Complete() {
			t.Errorf("%+v", st)
		}
	})
}

func TestCourier_OrderedSendsOneChunkAtATime(t *testing.T) {
	inBubble(t, Options{Ordered: true}, func(r *rig) {
		x, y := r.post("a", "t:1", "t:2"), r.post("b", "u:3")
		r.wantSent("t:1 t:2")[0].report(map[int]reconnect.Failure{1: transient})
		r.wantSent("t:2")[0].all(noTopic)
		time.Sleep(5 * time.Second)
		h := r.wantSent("t:2")
		r.s.set(false)
		h[0].all(transient)
		z := r.post("c", "t:4")
		r.s.set(true)
		time.Sleep(time.Second)
		r.wantSent("t:2")[0].report(nil)
		r.wantComplete(x, true)
		r.wantSent("u:3")[0].report(nil)
		r.wantComplete(y, true)
		r.wantSent("t:4")[0].report(nil)
		r.wantComplete(z, true)
	})
}

// A reload turns ordered mode on while two chunks wait for a topic: the one under way is tried, though the
// other one came first.
func TestCourier_OrderedFromNowOnTriesTheChunkUnderWay(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x, y := r.post("a", "bad:1"), r.post("b", "bad:2", "t:3")
		h := r.wantSent("bad:1", "bad:2 t:3")
		r.s.set(false)
		h[0].all(noTopic)
		h[1].report(map[int]reconnect.Failure{0: noTopic, 1: {Class: fsm.ClassTransient}})
		o := r.o
		o.Ordered = true
		r.Reconfigure(o, r.s)
		r.s.set(true)
		time.Sleep(10 * time.Millisecond)
		r.wantSent("t:3")[0].report(nil)
		time.Sleep(5 * time.Second)
		r.wantSent("bad:2")[0].report(nil)
		r.wantComplete(y, true)
		time.Sleep(5 * time.Second)
		r.wantSent("bad:1")[0].report(nil)
		r.wantComplete(x, true)
	})
}

// In ordered mode a chunk that the old client has in hands stays the one under way.
func TestCourier_ReconfigureKeepsTheOrder(t *testing.T) {
	inBubble(t, Options{Ordered: true}, func(r *rig) {
		x := r.post("a", "t:1")
		h := r.wantSent("t:1")
		r.Reconfigure(r.o, r.s)
		y := r.post("b", "t:2")
		time.Sleep(time.Second)
		r.wantSent()
		h[0].all(reconnect.Failure{Class: fsm.ClassTransient})
		time.Sleep(time.Second)
		r.wantSent("t:1")[0].report(nil)
		r.wantComplete(x, true)
		time.Sleep(time.Second)
		r.wantSent("t:2")[0].report(nil)
		r.wantComplete(y, true)
	})
}

// After a reload with other settings the courier goes on with a new client, and what the
// old one could not finish follows.
func TestCourier_ReconfigureGoesOnWithAnotherSender(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x := r.post("a", "t:1")
		h := r.wantSent("t:1")
		r.s.set(false)
		y := r.post("b", "t:2")
		old := r.s
		r.s = &sender{opened: make(chan struct{})}
		r.Reconfigure(r.o, r.s)
		r.wantSent("t:2")[0].report(nil)
		r.wantComplete(y, true)
		h[0].all(doubtful)
		r.wantSent("t:1")[0].report(nil)
		r.wantComplete(x, true)
		if len(old.take()) != 0 {
			t.Error("something went to the old sender")
		}
	})
}

// Letters that the client has at a change of the dead-letter topic come back from the old one, as a probe too, and are for
// the caller to post again. What the old topic takes is done.
func TestCourier_LettersInHandsComeBackAfterAChangeOfTheirTopic(t *testing.T) {
	inBubble(t, Options{LetterTopic: "typo"}, func(r *rig) {
		r.unsafe = true
		var letters []Rejected
		o := r.o
		o.Reject = func(x Rejected) { letters = append(letters, x) }
		r.Reconfigure(o, r.s)
		post := func(tag string) (*Receipt, *handed) {
			x := r.post(tag, "app:"+tag)
			r.s.take()[0].all(reconnect.Failure{Class: fsm.ClassRecord, Code: 10, Refused: true})
			r.PostLetters(letters[0], batchOf("typo:"+tag), tag)
			letters = nil
			return x, r.wantSent("typo:" + tag)[0]
		}
		a, waits := post("a")
		waits.all(noTopic)
		time.Sleep(time.Second)
		probe := r.wantSent("typo:a")
		b, lost := post("b")
		c, taken := post("c")
		o.LetterTopic = "dead"
		if again := r.Reconfigure(o, r.s); len(again) != 0 {
			t.Errorf("%d letters wait", len(again))
		}
		taken.report(nil)
		r.wantComplete(c, true)
		probe[0].all(noTopic)
		lost.all(reconnect.Failure{Class: fsm.ClassTransient, Code: -152, Status: reconnect.PossiblyPersisted})
		r.wantSent()
		if len(letters) != 2 || letters[0].Letters != "a" || letters[1].Letters != "b" || len(r.Status().Topics) != 0 {
			t.Fatalf("%+v; %+v", letters, r.Status())
		}
		for _, l := range letters {
			r.PostLetters(l, batchOf("dead:again"), "again")
		}
		for _, h := range r.wantSent("dead:again", "dead:again") {
			h.report(nil)
		}
		r.wantComplete(a, true)
		r.wantComplete(b, true)
		if st := r.Status(); st.Queued != 0 || st.Letters != 3 || st.Doubtful != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestCourier_StopEndsTheSending(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		x := r.post("a", "t:1")
		h := r.wantSent("t:1")
		r.Stop()
		h[0].all(transient)
		r.wantSent()
		if r.Post(inFront, "b", batchOf("t:2"), 0, 0) != nil {
			t.Error("posted after Stop")
		}
		r.wantComplete(x, false)
	})
}

func isClosed(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The sender may be shut between the question and the hand-over.
func TestCourier_ARefusalInBetweenIsNoEnd(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.s.set(false)
		r.Post(inFront, "tag", batchOf("t:1"), 0, 0)
		synctest.Wait()
		r.s.late = true
		r.s.set(true)
		time.Sleep(time.Second)
		if sent := r.s.take(); !r.s.shut || len(sent) > 0 {
			t.Fatalf("the sender was not shut in between: %d sent", len(sent))
		}
		r.s.set(true)
		time.Sleep(time.Second)
		if sent := r.s.take(); len(sent) != 1 {
			t.Fatalf("%d sent after the sender was opened again, want 1", len(sent))
		} else {
			sent[0].report(nil)
		}
	})
}

// A partition that the topic has not is the fault of the record: it goes out again without the
// wish, and neither the topic nor the records beside it wait for an operator.
func TestCourier_APartitionThatIsNotThere(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		b := batchOf("t:1", "t:2", "t:3")
		b.Messages[0].Partition, b.Messages[1].Partition = 2, 99
		x := r.Post(inFront, "a", b, 0, 0)
		r.wantSent("t:1 t:2 t:3")[0].report(map[int]reconnect.Failure{1: noPartition})
		h := r.wantSent("t:2")[0]
		if p := h.batch.Messages[0].Partition; p != reconnect.PartitionAny {
			t.Errorf("sent again to partition %d", p)
		}
		r.wantComplete(r.post("a", "t:4"), false)
		r.wantSent("t:4")
		h.report(nil)
		r.wantComplete(x, true)
		if len(r.troubles) != 1 || !r.troubles[0].NoPartition || r.troubles[0].Count != 1 || len(r.rejected) != 0 {
			t.Errorf("troubles %+v, rejected %v", r.troubles, r.rejected)
		}
	})
	// Such a message does not keep a topic in trouble that works again.
	inBubble(t, Options{}, func(r *rig) {
		b := batchOf("t:1")
		b.Messages[0].Partition = 99
		x := r.Post(inFront, "a", b, 0, 0)
		r.wantSent("t:1")[0].all(noTopic)
		y := r.post("b", "t:2")
		time.Sleep(5 * time.Second)
		r.wantSent("t:1")[0].all(noPartition)
		r.wantSent("t:1")[0].report(nil)
		r.wantSent("t:2")[0].report(nil)
		r.wantComplete(x, true)
		r.wantComplete(y, true)
	})
	// Without a wish the topic has lost its partitions, which is for an operator to mend.
	inBubble(t, Options{}, func(r *rig) {
		r.post("a", "t:1")
		r.wantSent("t:1")[0].all(noPartition)
		r.wantSent()
		if synctest.Wait(); len(r.troubles) != 1 || !r.troubles[0].Waits || r.troubles[0].NoPartition {
			t.Errorf("troubles %+v", r.troubles)
		}
	})
}

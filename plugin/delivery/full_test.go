package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
)

// texts are numbered messages for a topic.
func texts(topic string, from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("%s:%d", topic, i))
	}
	return list
}

// reportAll acknowledges what is sent until nothing more is, and lists it.
func (r *rig) reportAll() (sent []string) {
	for hands := r.s.take(); len(hands) > 0; hands = r.s.take() {
		for _, h := range hands {
			sent = append(sent, h.texts)
			h.report(nil)
		}
	}
	return sent
}

// A client with a small queue gets what it has room for, in the order of the messages, as fast as it
// reports: that is no failure, nothing is told, and nothing waits for a timer.
func TestFull_GoesOnWithEachReport(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		inBubble(t, Options{Ordered: ordered}, func(r *rig) {
			r.s.queue = 10
			start := time.Now()
			a := r.post("a", texts("t", 0, 95)...)
			b := r.post("b", texts("t", 95, 100)...)
			got := r.reportAll()
			if want := strings.Join(texts("t", 0, 100), " "); strings.Join(got, " ") != want || len(got) > 16 {
				t.Errorf("sent %d times: %q", len(got), got)
			}
			r.wantComplete(a, true)
			r.wantComplete(b, true)
			if st := r.Status(); st.Queued != 0 || st.Acked != 100 || time.Since(start) > 0 || len(r.troubles) != 0 {
				t.Errorf("%+v after %v, told %+v", st, time.Since(start), r.troubles)
			}
		})
	}
}

// What comes back goes again before what was left out behind it, at once and later.
func TestFull_KeepsTheOrderWhenSomethingComesBack(t *testing.T) {
	inBubble(t, Options{Ordered: true}, func(r *rig) {
		r.s.queue = 2
		a := r.post("a", texts("t", 0, 8)...)
		for range 3 { // at once, then after a wait
			r.wantSent("t:0 t:1")[0].all(transient)
			time.Sleep(againMax)
		}
		if got := strings.Join(r.reportAll(), " "); got != strings.Join(texts("t", 0, 8), " ") {
			t.Errorf("sent %q", got)
		}
		r.wantComplete(a, true)
	})
}

// A full queue is one of another chunk too: what did not fit at all goes in turn.
func TestFull_TakesNothingOfAChunk(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.s.queue = 2
		a, b := r.post("a", "t:0", "t:1"), r.post("b", "t:2", "t:3")
		c := r.post("c", "t:4")
		hands := r.wantSent("t:0 t:1")
		time.Sleep(time.Minute)
		r.wantSent()
		hands[0].report(nil)
		r.wantComplete(a, true)
		r.wantSent("t:2 t:3")[0].report(nil)
		r.wantSent("t:4")[0].report(nil)
		r.wantComplete(b, true)
		r.wantComplete(c, true)
		if st := r.Status(); st.Queued != 0 || len(r.troubles) != 0 {
			t.Errorf("%+v, told %+v", st, r.troubles)
		}
	})
}

// A message that is larger than the whole queue is told of, and lets the others pass.
func TestFull_AMessageThatNeverFitsGivesWay(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.s.unfit = "t:large"
		a, b := r.post("a", "t:0", "t:large", "t:1"), r.post("b", "t:2")
		var got []string
		for range 100 {
			got = append(got, r.reportAll()...)
			time.Sleep(againMin)
		}
		if !slices.Equal(got, []string{"t:0", "t:1", "t:2"}) {
			t.Errorf("sent %q", got)
		}
		r.wantComplete(a, false)
		r.wantComplete(b, true)
		if n := len(r.troubles); n < 2 || n > 6 || r.troubles[0].Failure.Code != queueFull.Code || r.troubles[0].Count != 1 {
			t.Errorf("told %+v", r.troubles)
		}
		r.s.mu.Lock()
		r.s.unfit = ""
		r.s.mu.Unlock()
		time.Sleep(2 * againMax)
		r.wantSent("t:large")[0].report(nil)
		r.wantComplete(a, true)
	})
}

// Messages that were refused in company go alone, and a probe of a topic may be cut as well.
func TestFull_CutsWhatGoesAloneAndProbes(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		a := r.post("a", texts("t", 0, 4)...)
		hands := r.s.take()
		r.s.mu.Lock()
		r.s.queue = 3
		r.s.mu.Unlock()
		hands[0].all(tooLarge)
		r.wantSent("t:0 t:1 t:2")[0].report(map[int]reconnect.Failure{1: tooLarge})
		r.wantSent("t:3")[0].report(nil)
		r.wantSent("t:1")[0].report(nil)
		r.wantComplete(a, true)

		b := r.post("b", texts("u", 0, 3)...)
		hands = r.s.take()
		r.s.mu.Lock()
		r.s.queue = 2
		r.s.mu.Unlock()
		hands[0].all(noTopic)
		time.Sleep(time.Second)
		r.wantSent("u:0 u:1")[0].report(nil)
		r.wantSent("u:2")[0].report(nil)
		r.wantComplete(b, true)
		if st := r.Status(); st.Queued != 0 || len(st.Topics) != 0 {
			t.Errorf("%+v", st)
		}
	})
}

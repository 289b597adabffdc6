package plugin

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// variant are other settings for the same destination.
var variant = settings{"reconnect_backoff_max": "2s"}

// A section is added in front of the one that knows the chunks, and inherits from it.
func TestKin_ASectionAddedInFront(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(nil)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		p.net.Set(reconnecttest.Down)
		a.want(Retry, records(10, 5))
		a.endByReload()
		p.start(variant)
		b := p.start(nil)
		b.want(Retry, records(1, 5))
		b.want(Retry, records(10, 5))
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		b.want(OK, records(1, 5))
		b.want(OK, records(10, 5))
		p.wantStored(10)
	})
}

// Two sections that are equal but for Match change places.
func TestKin_SectionsReordered(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(nil)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		b.want(Retry, records(10, 5))
		a.endByReload()
		b.endByReload()
		b, a = p.start(nil), p.start(nil)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 5))
		b.want(Retry, records(10, 5))
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		a.want(OK, records(1, 5))
		b.want(OK, records(10, 5))
		p.wantStored(10)
	})
}

// Two sections write the same chunk: each has its own receipt, and both are written.
func TestKin_BothSectionsSendTheChunk(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(nil)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		b.want(Retry, records(1, 5))
		a.endByReload()
		b.endByReload()
		a, b = p.start(variant), p.start(nil)
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		a.want(OK, records(1, 5))
		b.want(OK, records(1, 5))
		if n := len(p.net.Messages()); n != 10 {
			t.Errorf("%d records", n)
		}
		b.deliver(records(1, 5)) // a third one
		if n := len(p.net.Messages()); n != 15 {
			t.Errorf("%d records", n)
		}
	})
}

// While another instance serves the chunk, a flush is as quick and takes as little as ever.
func TestKin_AnOutageIsAnsweredAtOnce(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(nil)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 5))
		a.endByReload()
		p.start(variant)
		b := p.start(nil)
		time.Sleep(5 * time.Second)
		start := time.Now()
		b.want(Retry, records(1, 5))
		if took := time.Since(start); took != 0 {
			t.Errorf("the flush took %v", took)
		}
		if st := b.courier.Status(); st.Receipts != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A chunk that another instance serves is taken over at the next reload, though that instance
// has no section.
func TestKin_ChunksAreTakenOver(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(variant)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b.endByReload()
		b = p.start(variant)
		p.reg.ExpectReload()
		b.want(Retry, records(1, 5))
		time.Sleep(10 * time.Second)
		b.want(OK, records(1, 5))
		if st := a.courier.Status(); st.Owned != 1 {
			t.Errorf("%+v", st)
		}
		b.endByReload()
		p.start(variant)
		time.Sleep(3 * parkedFor)
		p.net.Set(reconnecttest.Serving)
		time.Sleep(2 * parkedFor)
		p.wantStored(5)
		if a.end() {
			t.Error("the old instance lives on with nothing to do")
		}
	})
}

// A section is removed, and its chunks come to the other one: that gets to know what was delivered,
// wholly or in part, also in the next process.
func TestKin_ARemovedSectionLeavesWhatItKnows(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		var denied atomic.Bool
		denied.Store(true)
		p.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if denied.Load() && strings.Contains(m.Value, `"100"`) {
				return &reconnect.Failure{Class: fsm.ClassAuthorization, Code: 29, Text: "topic authorization failed"}
			}
			return nil
		}
		other := settings{"state_path": s["state_path"], "reconnect_backoff_max": "2s"}
		a, b := p.start(s), p.start(other)
		p.net.Set(reconnecttest.Mute)
		for _, first := range []int{1, 10, 100} {
			a.want(Retry, records(first, 5))
		}
		a.endByReload()
		b.endByReload()
		p.net.Set(reconnecttest.Serving)
		b = p.start(other)
		time.Sleep(2 * parkedFor)
		if a.end() {
			t.Error("the old instance lives on with nothing to do")
		}
		if n := b.ledger.Len(); n != 3 {
			t.Fatalf("%d chunks are known; log %q", n, p.host.lines)
		}
		b.want(OK, records(1, 5))
		p.wantStored(14)
		denied.Store(false)
		other = p.crash(other)
		p.start(other) // has the directory of the removed one
		b = p.start(other)
		b.want(OK, records(10, 5))
		b.deliver(records(100, 5))
		p.wantStored(15)
	})
}

// The broker is frozen when a section is removed: its client finishes what is in flight.
func TestKin_ARemovedSectionFinishesWhatIsInFlight(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(variant)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b.endByReload()
		b = p.start(variant)
		time.Sleep(3 * parkedFor)
		b.want(Retry, records(1, 5))
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		b.want(OK, records(1, 5))
		p.wantStored(5)
		if st := a.courier.Status(); st.Doubtful != 0 || a.end() {
			t.Errorf("%+v", st)
		}
	})
}

// While it finishes, the next reload takes its chunk over: it ends only when that is delivered.
func TestKin_ARemovedSectionKeepsWhatIsTakenOver(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(variant)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b.endByReload()
		b = p.start(variant)
		time.Sleep(parkedFor + time.Second)
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		b.want(OK, records(1, 5))
		b.endByReload()
		p.start(variant)
		p.net.Set(reconnecttest.Down)
		time.Sleep(finishFor + 2*parkedFor)
		p.net.Set(reconnecttest.Serving)
		time.Sleep(2 * parkedFor)
		p.wantStored(5)
		if a.end() {
			t.Error("the old instance lives on with nothing to do")
		}
	})
}

// What a removed section could not hand over yet goes out by the one that its chunk comes to.
func TestKin_ARemovedSectionDoesNotKeepChunks(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(variant)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b.endByReload()
		b = p.start(variant)
		time.Sleep(2 * parkedFor)
		if a.end() {
			t.Error("the old instance lives on with nothing to do")
		}
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		b.deliver(records(1, 5))
		p.wantStored(5)
	})
}

// The process ends while a removed section finishes: it ends with the others.
func TestKin_TheProcessEndsMeanwhile(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(variant)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b.endByReload()
		b = p.start(variant)
		time.Sleep(2 * parkedFor)
		start := time.Now()
		p.reg.End(b.context, false)
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("the exit took %v", took)
		}
		select {
		case <-a.gone:
		default:
			t.Error("the removed section lives on")
		}
	})
}

// An ordered chunk that was turned away goes back to its place.
func TestKin_AnOrderedChunkKeepsItsPlace(t *testing.T) {
	inProcess(t, func(p *process) {
		s := settings{"ordered": "true", "queue_limit": "1MiB", "ordered_wait": "1h"}
		a, b := p.start(s), p.start(s)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		for _, text := range []string{"a", "b"} {
			a.want(Retry, bigChunk(text))
		}
		a.want(Retry, record("c"))
		a.endByReload()
		b.endByReload()
		p.start(s)
		a = p.start(s)
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		for _, chunk := range [][]byte{record("c"), bigChunk("a"), bigChunk("b"), record("c")} {
			a.Flush(chunk, "tag", false)
			time.Sleep(time.Second)
		}
		var got string
		for _, m := range p.net.Messages() {
			got += m.Value[strings.Index(m.Value, `"seq":"`)+7:][:1]
		}
		if got != "abc" {
			t.Errorf("written in the order %q", got)
		}
	})
}

// The agent starts again with its sections in another order: what the last process has left is
// known, whichever of them the chunk comes to.
func TestKin_SectionsReorderedAtARestart(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		a, b := p.start(s), p.start(s)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		b.want(Retry, records(10, 5))
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		s = p.crash(s)
		b, a = p.start(s), p.start(s)
		a.want(OK, records(1, 5))
		b.want(OK, records(10, 5))
		p.wantStored(10)
	})
}

// Before the first reload nobody else is asked.
func TestKin_NoneBeforeAReload(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(nil)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		if b.keeper(records(1, 5), "tag") != b.Instance {
			t.Error("another instance serves the chunk")
		}
		p.net.Set(reconnecttest.Serving)
	})
}

// Sections of another destination have nothing to do with it.
func TestKin_AnotherDestinationIsNone(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(settings{"topics": "other"})
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b.endByReload()
		p.start(nil)
		b = p.start(settings{"topics": "other"})
		if b.keeper(records(1, 5), "tag") != b.Instance {
			t.Error("another destination serves the chunk")
		}
		p.net.Set(reconnecttest.Serving)
	})
}

// A state of several sections: what a removed one leaves is in the journal of the other only.
func TestKin_TheOldJournalForgets(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		other := settings{"state_path": s["state_path"], "reconnect_backoff_max": "2s"}
		a, b := p.start(s), p.start(other)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b.endByReload()
		p.net.Set(reconnecttest.Serving)
		b = p.start(other)
		time.Sleep(2 * parkedFor)
		b.want(OK, records(1, 5))
		other = p.crash(other)
		if dirs, _ := filepath.Glob(filepath.Join(other["state_path"], "*")); len(dirs) != 2 {
			t.Fatalf("%q", dirs)
		}
		for range 2 {
			c := p.start(other)
			if n := c.ledger.Len(); n != 0 {
				t.Errorf("%d chunks are known that were collected", n)
			}
		}
	})
}

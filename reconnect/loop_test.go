package reconnect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// stub is a client that does nothing but what a test tells it to.
type stub struct {
	sink      func(reconnect.Notice)
	sinks     []func(reconnect.Notice) // of every generation
	calls     []string
	heartbeat func() error
	close     func()
}

func (*stub) Produce(*reconnect.Batch) *reconnect.Delivery { return reconnect.NewDelivery() }
func (s *stub) SetGate(g fsm.ConnGate)                     { s.calls = append(s.calls, g.String()) }
func (s *stub) Hold(addr string, _ time.Duration)          { s.calls = append(s.calls, "hold "+addr) }
func (s *stub) ShutSockets() int                           { s.calls = append(s.calls, "cut"); return 0 }
func (s *stub) Heartbeat(time.Duration) (string, error)    { return "", s.heartbeat() }
func (*stub) Changed() (string, error)                     { return "", nil }
func (s *stub) ShutSilent(time.Duration)                   { s.calls = append(s.calls, "cut silent") }
func (*stub) Silence(time.Duration) reconnect.Silence {
	return reconnect.Silence{Ready: 1, Silent: 1}
}

func (s *stub) Close(time.Duration) error {
	if s.close != nil {
		s.close()
	}
	return nil
}

// withStub runs a supervisor on a stub, in a bubble.
func withStub(t *testing.T, s *stub, o reconnect.Observer, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, net: reconnecttest.NewNetwork(), rec: &recorder{}, log: &lines{}}
		if o == nil {
			o = r.rec
		}
		sup, err := reconnect.New(reconnect.Options{
			Observer: o, Logger: r.log.logger(),
			Open: func(_ int, sink func(reconnect.Notice)) (reconnect.Client, error) {
				s.sink, s.sinks = sink, append(s.sinks, sink)
				return s, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.sup = sup
		defer func() { _ = sup.Close(context.Background()) }()
		f(r)
	})
}

// table tells of all addresses that the client knows.
func (s *stub) table(epoch uint64, rows ...reconnect.Broker) {
	s.sink(reconnect.Notice{Kind: reconnect.NoticeBrokers, Epoch: epoch, Brokers: rows, NoneLeft: true})
}

// A client that has very much to say while it is being closed does not hang: the loop
// keeps listening until the end, and after it nobody waits.
func TestLoop_FloodOfNoticesWhileClosing(t *testing.T) {
	s := &stub{}
	flood := func() {
		for range 10_000 {
			s.table(1, reconnect.Broker{Addr: "a", Up: 1})
			s.sink(reconnect.Notice{Kind: reconnect.NoticeAcked})
		}
	}
	s.close = flood
	withStub(t, s, nil, func(r *rig) {
		flood()
		if err := r.sup.Close(context.Background()); err != nil {
			r.Error(err)
		}
		r.closedForGood()
		flood() // against the contract, and harmless
	})
}

// An observer that panics costs the instance, not the host program: everything is
// refused from then on, and Close still works.
func TestLoop_PanicInTheObserver(t *testing.T) {
	s := &stub{}
	withStub(t, s, panicking{}, func(r *rig) {
		s.table(1, reconnect.Broker{Addr: "a", Up: 1})
		<-r.sup.Done()
		r.closedForGood()
		if r.log.count("panic in the supervisor") != 1 {
			r.Errorf("the log does not tell:\n%s", r.log)
		}
	})
}

type panicking struct{ reconnect.NopObserver }

func (panicking) Transition(reconnect.Report) { panic("observer") }

// A heartbeat that panics is one that failed.
func TestLoop_PanicInTheClient(t *testing.T) {
	s := &stub{heartbeat: func() error { panic("client") }, close: func() { panic("client") }}
	withStub(t, s, nil, func(r *rig) {
		s.table(1, reconnect.Broker{Addr: "a", Up: 1})
		r.sleep(time.Minute + ms)
		r.want(fsm.Connecting)
		if err := r.sup.Close(context.Background()); err != nil {
			r.Error(err)
		}
		r.closedForGood()
		if r.log.count("panic in the client") == 0 {
			r.Errorf("the log does not tell:\n%s", r.log)
		}
	})
}

// The gate is told to the client exactly as the states ask, each sweep anew, and tables
// from before a sweep can't fail it.
func TestLoop_Gates(t *testing.T) {
	s := &stub{}
	withStub(t, s, nil, func(r *rig) {
		failed := reconnect.Broker{Addr: "a", Asked: true, Attempts: 1, Failures: 1, Class: fsm.ClassNetwork}
		s.table(1, failed)
		r.want(fsm.AllDown)
		r.sleep(150 * ms)
		r.want(fsm.Probing)
		failed.Failures = 2
		s.table(2, failed) // read while the gate was shut
		r.want(fsm.Probing)
		failed.Failures = 3
		s.table(3, failed)
		r.want(fsm.AllDown)
		r.sleep(300 * ms)
		r.want(fsm.Probing)
		failed.Up, failed.Ups = 1, 1
		s.table(5, failed)
		r.want(fsm.Up)
		s.want(r, "open shut sweep shut sweep open")
	})
}

func (s *stub) want(r *rig, calls string) {
	r.Helper()
	synctest.Wait()
	if got := strings.Join(s.calls, " "); got != calls {
		r.Errorf("the client was told %q, want %q", got, calls)
	}
}

// Holds end when the last broker is lost, and only those that last are ended.
func TestLoop_HoldsEndWithTheLastBroker(t *testing.T) {
	s := &stub{}
	withStub(t, s, nil, func(r *rig) {
		a := reconnect.Broker{Addr: "a", Up: 1, Ups: 1, Attempts: 1}
		b := reconnect.Broker{Addr: "b", Asked: true, Attempts: 1, Failures: 1, Class: fsm.ClassNetwork}
		s.table(1, a, b)
		r.want(fsm.Degraded)
		s.want(r, "open hold b")
		a.Up = 0
		s.table(1, a, b)
		s.want(r, "open hold b open")
		a.Up, a.Ups = 1, 2
		s.table(2, a, b)
		a.Up = 0
		s.table(2, a, b)
		s.want(r, "open hold b open")
		r.want(fsm.Up) // a gate that opens gives b a new chance
	})
}

// What failed in the sweep that found another broker is tried at once, not held back.
func TestLoop_NoHoldForTheSweep(t *testing.T) {
	s := &stub{}
	withStub(t, s, nil, func(r *rig) {
		a := reconnect.Broker{Addr: "a", Attempts: 1, Failures: 1, Class: fsm.ClassNetwork}
		b := reconnect.Broker{Addr: "b", Attempts: 1, Failures: 1, Class: fsm.ClassNetwork}
		s.table(1, a, b)
		r.sleep(150 * ms)
		r.want(fsm.Probing)
		a.Up, a.Ups = 1, 1
		b.Failures = 2
		s.table(3, a, b)
		r.want(fsm.Up)
		s.want(r, "open shut sweep open")
		b.Failures = 3
		s.table(4, a, b)
		r.want(fsm.Degraded)
		s.want(r, "open shut sweep open hold b")
	})
}

// The gate is shut before the sockets, or the client would connect again in between.
func TestLoop_GateBeforeSockets(t *testing.T) {
	s := &stub{}
	withStub(t, s, nil, func(r *rig) {
		s.table(1, reconnect.Broker{Addr: "a", Up: 1, Ups: 1})
		r.want(fsm.Up)
		r.produce(1)
		r.sleep(15*time.Second + ms)
		s.want(r, "open shut cut")
	})
}

// What a client says after it was given up is not taken for the words of the next one.
func TestLoop_NoticesOfAnOldClient(t *testing.T) {
	s := &stub{}
	withStub(t, s, nil, func(r *rig) {
		s.sink(reconnect.Notice{Kind: reconnect.NoticeFatal, Class: fsm.ClassFatal})
		r.sleep(150 * ms)
		r.want(fsm.Probing)
		old := s.sinks[0]
		old(reconnect.Notice{Kind: reconnect.NoticeAcked})
		old(reconnect.Notice{Kind: reconnect.NoticeBrokers, Epoch: 9, Brokers: []reconnect.Broker{{Addr: "a", Up: 1}}})
		old(reconnect.Notice{Kind: reconnect.NoticeFatal, Class: fsm.ClassFatal})
		r.want(fsm.Probing)
		if n := len(s.sinks); n != 2 {
			r.Errorf("%d clients opened, want 2", n)
		}
	})
}

// An attempt that was in flight when the gate was shut gets ready: the table is older than
// the gate, and the connection is used all the same.
func TestLoop_LateSuccess(t *testing.T) {
	s := &stub{}
	withStub(t, s, nil, func(r *rig) {
		s.table(1, reconnect.Broker{Addr: "a", InFlight: 1, Attempts: 1})
		r.sleep(5*time.Second + ms)
		r.want(fsm.AllDown)
		s.table(1, reconnect.Broker{Addr: "a", Up: 1, Attempts: 1, Ups: 1})
		r.want(fsm.Up)
	})
}

// A stall shuts the sockets. A table that still shows the old connection must not open the
// gate again; one that shows a newer connection must.
func TestLoop_StaleConnectionAfterAStall(t *testing.T) {
	s := &stub{}
	withStub(t, s, nil, func(r *rig) {
		old := reconnect.Broker{Addr: "a", Up: 1, Attempts: 1, Ups: 1}
		s.table(1, old)
		r.want(fsm.Up)
		r.produce(1)
		r.sleep(15*time.Second + ms)
		r.want(fsm.AllDown)
		s.table(2, old)
		r.want(fsm.AllDown)
		s.table(2, reconnect.Broker{Addr: "a", Up: 1, Attempts: 2, Ups: 2})
		r.want(fsm.Up)
	})
}

// The same network, the same seed: the same states at the same times.
func TestLoop_Deterministic(t *testing.T) {
	var first string
	for i := range 10 {
		// One address: with several, which of two things at the same moment comes first is
		// up to the scheduler.
		bubble(t, setup{}, func(r *rig) {
			r.delivered(r.produce(1), 10*ms)
			for range 5 {
				r.net.Set(reconnecttest.Down)
				r.sleep(20 * time.Second)
				r.net.Set(reconnecttest.Mute)
				r.sleep(10 * time.Second)
				r.net.Set(reconnecttest.Frozen)
				r.sleep(90 * time.Second)
				r.net.Set(reconnecttest.Serving)
				r.sleep(20 * time.Second)
			}
			var out string
			for _, tr := range r.rec.transitions {
				// Without the cause: a heartbeat's own time-out and the machine's deadline for it are
				// the same moment, and which is first is up to the scheduler.
				out += fmt.Sprintln(tr.At, tr.From, tr.To, tr.Reason, tr.Outage, tr.Attempt, tr.Wait)
			}
			if i == 0 {
				first = out
			} else if out != first {
				r.Errorf("run %d differs:\n%s\nfirst:\n%s", i, out, first)
			}
		})
	}
}

// One of three brokers comes back: the sweep finds it although the others stay dead.
func TestLoop_OneOfThreeComesBack(t *testing.T) {
	for _, back := range []string{"a", "b", "c"} {
		bubble(t, setup{addrs: []string{"a", "b", "c"}}, func(r *rig) {
			r.delivered(r.produce(1), 10*ms)
			r.net.Set(reconnecttest.Down)
			r.wantWithin(fsm.AllDown, 2*time.Second)
			r.sleep(time.Minute)
			r.net.Set(reconnecttest.Serving, back)
			r.sleep(5*time.Second + 100*ms)
			r.delivered(r.produce(1), 10*ms)
			r.want(fsm.Degraded)
		})
	}
}

// Who asks for the status before anything has happened gets one.
func TestNew_HasAStatus(t *testing.T) {
	withStub(t, &stub{}, nil, func(r *rig) {
		if st := r.sup.Status(); st.State != fsm.Connecting || st.Generation != 1 {
			r.Errorf("%+v", st)
		}
	})
}

func TestNew_RefusesNonsense(t *testing.T) {
	if _, err := reconnect.New(reconnect.Options{}); err == nil {
		t.Error("no opener, no error")
	}
	_, err := reconnect.New(reconnect.Options{
		Open:   reconnecttest.NewNetwork().Open,
		Config: fsm.Config{BackoffMin: time.Hour},
	})
	if err == nil {
		t.Error("a contradiction, no error")
	}
}

package herd

import (
	"math"
	"math/rand/v2"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// never is when an agent that is connected does something next.
const never = time.Duration(math.MaxInt64)

// agent is one client of the herd. It loses its connections at time 0, in the middle of its
// work: records are waiting, so that it wants them back.
type agent interface {
	// due is when the agent does something next.
	due() time.Duration
	// turn lets it do that.
	turn(c *cluster)
	// connected is since when everything that waits can be delivered, or never.
	connected() time.Duration
}

// supervised is an agent with our state machine.
type supervised struct {
	m    *fsm.Machine
	next time.Duration
	up   time.Duration
}

func newSupervised(cfg fsm.Config, brokers int, r *rand.Rand) *supervised {
	cfg.Rand = r.Float64
	m, _ := fsm.New(cfg, 0)
	s := &supervised{m: m, up: never}
	s.tell(fsm.Event{Kind: fsm.BrokersChanged, Up: brokers})
	s.tell(fsm.Event{Kind: fsm.Acked, Outstanding: 1})
	s.tell(fsm.Event{Kind: fsm.BrokersChanged})
	return s
}

// tell gives the machine an event of its client as it stands.
func (s *supervised) tell(e fsm.Event) {
	e.ClientGen, e.Epoch = s.m.Generation(), s.m.GateEpoch()
	s.m.Step(e)
}

func (s *supervised) due() time.Duration       { return s.next }
func (s *supervised) connected() time.Duration { return s.up }

// turn makes the attempts that the gate allows: all addresses at once, one attempt each. The
// gate is open when the connections are lost, and half-open in each round after that.
func (s *supervised) turn(c *cluster) {
	at := s.next
	s.m.Step(fsm.Event{Kind: fsm.DeadlineReached, At: at})
	if s.m.ConnGate() == fsm.ConnShut {
		s.next = never // the machine waits for nothing and lets nobody through
		return
	}
	e := fsm.Event{Kind: fsm.BrokersChanged, At: at, Class: fsm.ClassNetwork, Outstanding: 1}
	for i := range c.brokers {
		ok, known := c.attempt(at, i)
		e.At = max(e.At, known)
		if ok {
			e.Up++
		} else {
			e.Failed++
			e.Failing++
		}
	}
	s.tell(e)
	if s.m.Gate() == fsm.Admit {
		s.next, s.up = never, e.At
		return
	}
	s.next, _ = s.m.Deadline()
}

package fsm

import (
	"reflect"
	"testing"
	"time"
)

// checked is a machine that asserts the invariants after every step.
type checked struct {
	t   testing.TB
	m   *Machine
	cfg Config
	// fixed tells that Rand always returns the same, so that waits must not shrink.
	fixed bool

	open      bool
	lastOpen  int
	lastWait  time.Duration
	downSince time.Duration
	swept     time.Duration // the entry of the last sweep
	anySweep  bool
	sweepStep time.Duration
	drainBy   time.Duration
	draining  bool
	name      string
	trace     [40]traced // the last steps, for the report of a failure
	steps     int
	pairs     map[[2]int]bool
}

type traced struct {
	from, to State
	now      time.Duration
	event    Event
	actions  [5]Action
}

func newChecked(t testing.TB, cfg Config) *checked {
	m, actions := New(cfg, 0)
	c := &checked{t: t, m: m, cfg: m.cfg}
	c.actions(actions)
	c.state()
	return c
}

func (c *checked) failf(format string, args ...any) {
	c.t.Helper()
	c.t.Log(c.name)
	for i := max(0, c.steps-len(c.trace)); i < c.steps; i++ {
		s := &c.trace[i%len(c.trace)]
		c.t.Logf("%d: %s %s: %+v -> %s %v", i, s.now, s.from, s.event, s.to, s.actions)
	}
	c.t.Fatalf(format, args...)
}

// facts is all that a machine remembers, in a form that can be compared.
type facts struct {
	state    State
	now      time.Duration
	gen      int
	open     bool
	epoch    int
	armed    bool
	deadline time.Duration
	by       time.Duration
	evidence evidence
	traffic  traffic
	beat     heartbeat
	check    check
	outage   outage
	renewal  renewal
	level    int
}

func (c *checked) facts() facts {
	m := c.m
	return facts{
		m.state, m.now, m.gen, m.open, m.epoch, m.armed, m.deadline, m.by,
		m.evidence, m.traffic, m.beat, m.check, m.outage, m.renewal, m.backoff.Level(),
	}
}

func (c *checked) step(e Event) []Action {
	c.t.Helper()
	before := c.facts()
	if c.pairs != nil && e.Kind < numEvents {
		c.pairs[[2]int{int(before.state), int(e.Kind)}] = true
	}
	dropped := !c.m.current(&e)
	actions := c.m.Step(e)
	tr := traced{from: before.state, to: c.m.state, now: c.m.now, event: e}
	copy(tr.actions[:], actions)
	c.trace[c.steps%len(c.trace)] = tr
	c.steps++

	if dropped && (len(actions) > 0 || c.facts() != before) {
		c.failf("%s that is not current changed the machine", e.Kind)
	}
	c.transition(before, e)
	c.actions(actions)
	c.gates(before)
	c.state()
	if c.endOfTime() {
		return actions
	}
	c.waits(before)
	if e.Kind == DeadlineReached && !dropped {
		if d, ok := c.m.Deadline(); ok && d <= c.m.now {
			c.failf("the deadline is still due after it was reached")
		}
	}
	return actions
}

// endOfTime tells whether sums of times stop growing: nothing may panic there, and
// nothing can be paced any more.
func (c *checked) endOfTime() bool { return c.m.now >= 1<<62 }

func (c *checked) transition(before facts, e Event) {
	tr, moved := c.m.Transition()
	if moved != (before.state != c.m.state) {
		c.failf("transition reported: %v, state %s -> %s", moved, before.state, c.m.state)
	}
	if moved && (tr.From != before.state || tr.To != c.m.state || tr.Cause != e.Kind || tr.At != c.m.now) {
		c.failf("transition %+v is not what happened", tr)
	}
	if before.state == Closed {
		c.failfIf(c.m.state != Closed, "Closed was left")
	}
	if before.state == Draining {
		c.failfIf(c.m.state != Draining && c.m.state != Closed, "Draining led to "+c.m.state.String())
	}
	if c.m.state == Draining && before.state != Draining {
		c.draining, c.drainBy = true, after(c.m.now, c.cfg.DrainTimeout)
	}
	if c.draining && c.m.state == Draining && c.m.deadline > c.drainBy {
		c.failf("Draining lasts longer than DrainTimeout")
	}
}

func (c *checked) failfIf(bad bool, what string) {
	c.t.Helper()
	if bad {
		c.failf("%s", what)
	}
}

func (c *checked) actions(actions []Action) {
	failed := false
	var seen [numActions]bool
	for _, a := range actions {
		c.failfIf(a.Kind >= numActions, "an unknown action")
		c.failfIf(seen[a.Kind], "an action came twice in one step")
		seen[a.Kind] = true
		switch a.Kind {
		case OpenClient:
			c.failfIf(c.open, "a second client was opened")
			c.failfIf(a.ClientGen != c.lastOpen+1, "a generation was left out or used twice")
			c.failfIf((a.Why == RenewNone) != (a.ClientGen == 1), "a client without the right reason: "+a.Why.String())
			c.open, c.lastOpen = true, a.ClientGen
		case CloseClient:
			c.failfIf(!c.open || a.ClientGen != c.lastOpen, "a client was closed that is not open")
			c.open = false
		case RetireClient:
			c.failfIf(!c.open || a.ClientGen != c.lastOpen, "a client was retired that is not open")
			c.failfIf(c.m.state.Gate() != Admit, "a client was retired while flushes are refused")
			c.failfIf(a.Why == RenewNone, "a client was retired without a reason")
			c.open = false
		case CheckSilence, ShutSilent:
			c.failfIf(!c.open, "a check without a client")
			c.failfIf(c.m.state != Up && c.m.state != Degraded, "a check in "+c.m.state.String())
			c.failfIf(a.Attempt != c.m.check.number, "a check with the wrong number")
		case ShutSockets:
			c.failfIf(!c.open, "sockets of no client were shut")
			s := c.m.state
			c.failfIf(s != AllDown && s != Connecting && s != Idle, "sockets were shut on the way to "+s.String())
		case StartHeartbeat:
			c.failfIf(!c.open, "a heartbeat without a client")
			c.failfIf(c.m.state != Up && c.m.state != Degraded, "a heartbeat in "+c.m.state.String())
			c.failfIf(!c.m.evidence.connected, "a heartbeat without a broker")
			c.failfIf(a.Attempt != c.m.beat.attempt, "a heartbeat with the wrong number")
		case FailOutstanding:
			failed = true
		}
	}
	if tr, moved := c.m.Transition(); moved && tr.To == AllDown && tr.From.Gate() == Admit {
		c.failfIf(!failed, "flushes were left waiting")
	}
	c.failfIf(c.open != c.m.open, "the machine and its actions differ about the client")
}

func (c *checked) gates(before facts) {
	m := c.m
	admit := m.state == Connecting || m.state == Up || m.state == Degraded || m.state == Idle
	if (m.Gate() == Admit) != admit {
		c.failf("flush gate %s in %s", m.Gate(), m.state)
	}
	replaced := m.gen != before.gen && m.state != AllDown
	renewed := replaced || m.state != before.state && (m.state == Connecting || m.state == Probing || m.state == AllDown || m.state == Idle ||
		before.state.ConnGate() != m.ConnGate()) && m.state != Closed
	if renewed != (m.epoch != before.epoch) {
		c.failf("%s -> %s: gate epoch %d -> %d", before.state, m.state, before.epoch, m.epoch)
	}
}

// waits checks the pacing: every wait in its interval, no sweep before it is due, and
// therefore no two sweeps closer than three quarters of a step.
func (c *checked) waits(before facts) {
	m := c.m
	if m.state == AllDown && before.state != AllDown {
		step, wait := m.BackoffStep(), m.Wait()
		low, high := step*3/4, min(step*3/2, m.backoff.max)
		if wait < low || wait > high {
			c.failf("wait %s is outside [%s, %s]", wait, low, high)
		}
		if c.fixed && before.level > 0 && m.backoff.Level() > before.level && wait < c.lastWait {
			c.failf("wait %s is shorter than the one before, %s, and nothing was reset", wait, c.lastWait)
		}
		c.lastWait, c.downSince, c.sweepStep = wait, m.now, step
	}
	if before.state == AllDown && (m.state == Probing || m.state == Connecting) {
		if m.now-c.downSince < c.lastWait {
			c.failf("an attempt after %s, %s was due", m.now-c.downSince, c.lastWait)
		}
		if c.anySweep && m.now-c.swept < c.sweepStep*3/4 {
			c.failf("two rounds of attempts only %s apart, the step is %s", m.now-c.swept, c.sweepStep)
		}
		c.swept, c.anySweep = m.now, true
	}
}

func (c *checked) state() {
	d, armed := c.m.Deadline()
	switch c.m.state {
	case Connecting, AllDown, Probing, Draining:
		c.failfIf(!armed, "no deadline")
	case Idle, Closed:
		c.failfIf(armed, "a deadline in Idle or Closed")
	case Up, Degraded:
		c.failfIf(!armed && c.m.traffic.outstanding > 0, "nothing watches what is outstanding")
		c.failfIf(!armed && c.cfg.IdlePolicy != IdleKeep, "nothing watches the idle connection")
	}
	c.failfIf(armed && d < 0, "a deadline before the start")
	c.failfIf(c.m.state == Closed && c.open, "Closed with an open client")
	c.failfIf((c.m.Reason() != ClassNone) != (c.m.state == AllDown || c.m.state == Probing) && c.m.outage.reason != ClassNone,
		"a reason without an outage")
}

// live checks that the machine admits flushes again in at most two more steps, if the
// network is good from now on.
func (c *checked) live() {
	if c.m.state == Draining || c.m.state == Closed || c.endOfTime() {
		return
	}
	for range 2 {
		if c.m.Gate() == Admit {
			return
		}
		d, _ := c.m.Deadline()
		if c.m.state == AllDown {
			c.step(Event{Kind: DeadlineReached, At: max(d, c.m.now)})
			continue
		}
		c.step(Event{Kind: BrokersChanged, At: c.m.now, ClientGen: c.m.gen, Epoch: c.m.epoch, Up: 1})
	}
	c.failfIf(c.m.Gate() != Admit, "not live: still refusing in "+c.m.state.String())
}

// A field that facts leaves out would escape the comparison of dropped events.
func TestInvariants_FactsAreComplete(t *testing.T) {
	left := map[string]bool{"cfg": true, "backoff": true, "actions": true, "last": true, "moved": true}
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[facts]()) {
		known[f.Name] = true
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Machine]()) {
		if !known[f.Name] && !left[f.Name] {
			t.Errorf("field %s of Machine is not in facts", f.Name)
		}
	}
}

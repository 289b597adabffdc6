package fsm

import "time"

// Machine is the state machine of one supervisor. It is owned by one goroutine; no
// method may be called by two at a time. The zero value is not usable, see New.
type Machine struct {
	cfg     Config
	backoff Backoff
	actions []Action // reused by every step
	last    Transition
	moved   bool // the last step changed the state

	state State
	now   time.Duration // never runs backwards
	gen   int           // of the client that is open, or of the last one
	open  bool          // a client is open; alternates with OpenClient and CloseClient
	epoch int           // how often the connection gate was set

	armed    bool
	deadline time.Duration // the earliest of what the state waits for; valid if armed
	by       time.Duration // the state's own limit: Connecting, AllDown, Probing, Draining

	evidence evidence
	traffic  traffic
	beat     heartbeat
	check    check
	outage   outage
	renewal  renewal
}

// evidence is what the last tables of addresses said. It starts anew whenever the
// connection gate is set.
type evidence struct {
	connected bool // some broker is up
	tried     bool // an attempt was made or is being made
	extended  bool // Connecting has begun to count its time
	// seen is the most telling class since a broker was last up.
	seen Class
	// failed: an address has failed since a broker was up. A Settle after the first one the
	// verdict falls even if a known address is still untried.
	failed bool
	settle time.Duration
	// settling: no broker is up, an attempt has failed, none is in flight.
	settling bool
	// opened is when the connection gate was set: a sweep is over a Settle after that, so
	// that no attempt of it comes much later than its due time.
	opened time.Duration
	// learnedOnly: what has failed since then was learned from a cluster, and nothing of
	// the configuration was tried.
	learnedOnly bool
	// hanging: no broker is up and an attempt is in flight. At hang it counts as failed.
	hanging bool
	hang    time.Duration
}

// traffic is what the records tell.
type traffic struct {
	outstanding int
	since       time.Duration // outstanding since
	acked       time.Duration // the last acknowledgement
	up          time.Duration // the entry into Up
	record      time.Duration // the last chunk or acknowledgement
	active      time.Duration // the last chunk, acknowledgement or heartbeat answer
	recheck     time.Duration // no check for silence before this
	stuck       bool          // brokers answer, and nothing is acknowledged for StallTimeout
}

// heartbeat is the question that shows whether a quiet connection is alive.
type heartbeat struct {
	attempt int // numbers them all, so that a late answer is not taken for a new one
	waiting bool
	by      time.Duration
}

// check is the look for silent connections whose answer is due: the driver gives it at
// once.
type check struct {
	number  int // numbers them all
	waiting bool
	beat    bool // because of a heartbeat without an answer, not because of a stall
}

// outage counts what an operator asks about.
type outage struct {
	on      bool // from AllDown until the next Up
	number  int  // outages so far; one that comes back before anything was acknowledged is the same
	attempt int  // rounds of attempts since it began
	resumed bool // it came back at least once
	wait    time.Duration
	reason  Class
}

// New returns a machine in Connecting and the actions to start with.
func New(cfg Config, at time.Duration) (*Machine, []Action) {
	cfg = cfg.usable()
	m := &Machine{
		cfg:     cfg,
		backoff: NewBackoff(cfg.BackoffMin, cfg.BackoffMax, cfg.Rand),
		now:     at,
		actions: make([]Action, 0, 4),
	}
	m.renewal.limit = cfg.RenewAfter
	m.openClient()
	m.becomeConnecting(&Event{}) // no transition: the zero state is Connecting
	m.arm()
	return m, m.actions
}

// Step takes one event and returns what must be done, in order. The slice is valid
// until the next step.
func (m *Machine) Step(e Event) []Action {
	m.actions = m.actions[:0]
	m.moved = false
	if !m.current(&e) {
		return m.actions
	}
	m.now = max(m.now, e.At)
	m.absorb(&e)
	switch m.state {
	case Connecting:
		m.stepConnecting(&e)
	case Up, Degraded:
		m.stepUp(&e)
	case AllDown:
		m.stepAllDown(&e)
	case Probing:
		m.stepProbing(&e)
	case Idle:
		m.stepIdle(&e)
	case Draining:
		m.stepDraining(&e)
	case Closed:
	}
	m.arm()
	return m.actions
}

// Config returns the configuration with its defaults filled in.
func (m *Machine) Config() Config { return m.cfg }

// State returns the current state.
func (m *Machine) State() State { return m.state }

// Gate is what a flush is told now.
func (m *Machine) Gate() Gate { return m.state.Gate() }

// ConnGate is what the client is told now.
func (m *Machine) ConnGate() ConnGate { return m.state.ConnGate() }

// GateEpoch counts how often the connection gate was set. The driver applies ConnGate
// to the client whenever this number has changed, also when the position is the same:
// each Probing is a sweep of its own.
func (m *Machine) GateEpoch() int { return m.epoch }

// Deadline is when DeadlineReached is wanted, if at all.
func (m *Machine) Deadline() (time.Duration, bool) { return m.deadline, m.armed }

// Reason is why the brokers count as down, or ClassNone.
func (m *Machine) Reason() Class {
	if m.state == AllDown || m.state == Probing {
		return m.outage.reason
	}
	return ClassNone
}

// Generation is the generation of the client that is open, or of the last one.
func (m *Machine) Generation() int { return m.gen }

// Outage is the number of outages so far, the current one included. An outage that
// comes back before anything was acknowledged is still the same.
func (m *Machine) Outage() int { return m.outage.number }

// Resumed tells whether the latest outage has come back at least once after a broker
// was up and nothing was acknowledged.
func (m *Machine) Resumed() bool { return m.outage.resumed }

// Attempt is the number of rounds of attempts since the latest outage began.
func (m *Machine) Attempt() int { return m.outage.attempt }

// Wait is the last wait of the backoff.
func (m *Machine) Wait() time.Duration { return m.outage.wait }

// BackoffStep is the step that Wait was drawn from, before jitter.
func (m *Machine) BackoffStep() time.Duration { return m.backoff.Step() }

// Level is the number of waits since the backoff was last reset.
func (m *Machine) Level() int { return m.backoff.Level() }

// Transition returns the change of state that the last step made, if it made one.
func (m *Machine) Transition() (Transition, bool) { return m.last, m.moved }

// current tells whether an event concerns the machine as it stands.
func (m *Machine) current(e *Event) bool {
	ours := m.open && e.ClientGen == m.gen
	switch e.Kind {
	case ChunkArrived, DrainRequested, Drained:
		return m.state != Closed
	case Acked, Reported, ErrorSeen, ClientFatal, RenewRequested:
		return ours
	case SilenceChecked:
		return ours && m.check.waiting && e.Attempt == m.check.number
	case BrokersChanged:
		return ours && e.Epoch == m.epoch
	case HeartbeatOK, HeartbeatFailed:
		return ours && m.beat.waiting && e.Attempt == m.beat.attempt
	case DeadlineReached:
		return m.armed && e.At >= m.deadline
	default:
		return false
	}
}

// arm picks the earliest of the times that the state waits for.
func (m *Machine) arm() {
	m.armed = false
	switch m.state {
	case Connecting, Probing:
		m.await(m.by)
		if m.evidence.settling {
			m.await(m.evidence.settle)
		}
	case Up, Degraded:
		m.armUp()
	case AllDown, Draining:
		m.await(m.by)
	case Idle, Closed:
	}
}

func (m *Machine) armUp() {
	if m.evidence.settling {
		m.await(m.evidence.settle)
	}
	if m.evidence.hanging {
		m.await(m.evidence.hang)
	}
	if m.traffic.outstanding > 0 {
		m.await(m.stallBy())
	}
	if m.beat.waiting {
		m.await(m.beat.by)
	}
	switch m.cfg.IdlePolicy {
	case IdleKeepalive:
		if !m.beat.waiting {
			m.await(after(m.traffic.active, m.cfg.KeepaliveInterval))
		}
	case IdleClose:
		if m.traffic.outstanding == 0 {
			m.await(m.idleBy())
		}
	case IdleKeep:
	}
}

func (m *Machine) await(t time.Duration) {
	if !m.armed || t < m.deadline {
		m.armed, m.deadline = true, t
	}
}

// unansweredSince is since when records wait for an acknowledgement that a broker could
// give; valid while some are outstanding.
func (m *Machine) unansweredSince() time.Duration {
	t := &m.traffic
	return max(t.since, t.acked, t.up)
}

// stallBy is when records that are outstanding without an acknowledgement are a reason to
// look for silent connections.
func (m *Machine) stallBy() time.Duration {
	return max(after(m.unansweredSince(), m.cfg.StallTimeout), m.traffic.recheck)
}

// Stuck tells whether records wait although the brokers answer.
func (m *Machine) Stuck() bool { return m.traffic.stuck }

// idleBy is when unused connections are closed.
func (m *Machine) idleBy() time.Duration {
	return after(max(m.traffic.record, m.traffic.up), m.cfg.IdleTimeout)
}

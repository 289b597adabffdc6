package fsm

import "time"

// absorb takes the facts of an event before the state looks at it.
func (m *Machine) absorb(e *Event) {
	switch e.Kind {
	case ChunkArrived:
		m.setOutstanding(e.Outstanding)
		m.traffic.record, m.traffic.active = m.now, m.now
	case Acked:
		m.setOutstanding(e.Outstanding)
		m.traffic.acked, m.traffic.record, m.traffic.active = m.now, m.now, m.now
		m.beat.waiting = false // an acknowledgement is as good as an answer
		m.traffic.stuck = false
		m.renewal.stuck, m.renewal.limit = 0, m.cfg.RenewAfter
		m.backoff.Reset()
	case Reported:
		m.setOutstanding(e.Outstanding)
	case BrokersChanged:
		m.absorbBrokers(e)
	case ErrorSeen:
		if !m.evidence.connected {
			m.evidence.seen = Worse(m.evidence.seen, e.Class)
		}
	case HeartbeatOK:
		m.beat.waiting, m.traffic.active = false, m.now
	case HeartbeatFailed:
		m.beat.waiting = false
	case SilenceChecked:
		m.check.waiting = false
	case RenewRequested, ClientFatal, DeadlineReached, DrainRequested, Drained:
	}
}

func (m *Machine) setOutstanding(n int) {
	n = max(n, 0)
	if m.traffic.outstanding == 0 && n > 0 {
		m.traffic.since = m.now
	}
	m.traffic.outstanding = n
	m.traffic.stuck = m.traffic.stuck && n > 0
}

func (m *Machine) absorbBrokers(e *Event) {
	v := &m.evidence
	v.tried = v.tried || e.Failed > 0 || e.InFlight > 0
	if e.Up > 0 {
		*v = evidence{connected: true, tried: true, opened: v.opened}
		return
	}
	if v.connected {
		v.connected = false
		m.maybeForget()
	}
	v.learnedOnly = e.LearnedOnly
	failed := e.Failed > 0
	if failed {
		v.seen = Worse(v.seen, e.Class)
	}
	if failed && !v.failed {
		v.settle = after(m.now, m.cfg.Settle)
		if m.state == Probing {
			v.settle = after(v.opened, m.cfg.Settle)
		}
	}
	v.failed = failed
	v.settling = failed && e.InFlight <= 0
	if v.settling {
		v.settle = max(m.now, v.settle)
	}
	hanging := e.InFlight > 0
	if hanging && !v.hanging {
		v.hang = after(m.now, m.cfg.ConnectTimeout)
	}
	v.hanging = hanging
}

// maybeForget resets the backoff when the connection that was just lost had lasted: more
// than the maximum has passed since the last attempt, and no record had waited for longer
// than that. A connection that takes records and never acknowledges one does not earn it.
func (m *Machine) maybeForget() {
	if !m.backoff.Quiet(m.now) {
		return
	}
	if m.traffic.outstanding > 0 && m.now > after(m.unansweredSince(), m.cfg.BackoffMax) {
		return
	}
	m.backoff.Reset()
}

// allDown is the evidence: no broker is up, attempts have failed, and nothing is left
// that could still succeed.
func allDown(e *Event) bool {
	return e.Kind == BrokersChanged && e.Up <= 0 && e.Failed > 0 && e.InFlight <= 0 && e.Pending <= 0
}

func (m *Machine) settled() bool { return m.evidence.settling && m.now >= m.evidence.settle }

// stepConnecting waits for the first broker.
func (m *Machine) stepConnecting(e *Event) {
	switch e.Kind {
	case BrokersChanged:
		switch {
		case e.Up > 0:
			m.becomeUp(e)
		case allDown(e):
			m.becomeAllDown(e, m.evidence.seen)
		default:
			m.maybeExtend()
		}
	case ChunkArrived:
		m.maybeExtend()
	case Acked:
		m.becomeUp(e)
	case DeadlineReached:
		switch {
		case m.settled():
			m.becomeAllDown(e, m.evidence.seen)
		case m.now < m.by:
		case !m.wanted():
			m.by = after(m.now, m.cfg.ConnectTimeout)
		default:
			m.act(ShutSockets)
			m.becomeAllDown(e, Worse(m.evidence.seen, ClassTimeout))
		}
	case ClientFatal:
		m.failClient(e)
	case RenewRequested:
		m.renew(e)
	case DrainRequested:
		m.becomeDraining(e)
	case Reported, ErrorSeen, HeartbeatOK, HeartbeatFailed, SilenceChecked, Drained:
	}
}

// wanted tells whether a missing connection means anything: something is outstanding or
// was tried. A client that nobody needs may stay unconnected for ever.
func (m *Machine) wanted() bool { return m.evidence.tried || m.traffic.outstanding > 0 }

// maybeExtend gives the first attempt its whole time, however long the client had
// nothing to do before.
func (m *Machine) maybeExtend() {
	if m.wanted() && !m.evidence.extended {
		m.evidence.extended = true
		m.by = after(m.now, m.cfg.ConnectTimeout)
	}
}

// stepUp is Up and Degraded, which differ in nothing but their name.
func (m *Machine) stepUp(e *Event) {
	switch e.Kind {
	case BrokersChanged:
		switch {
		case allDown(e):
			m.becomeAllDown(e, m.evidence.seen)
		case e.Up > 0 && e.Failing > 0:
			m.become(Degraded, e)
		case e.Up > 0:
			m.become(Up, e)
		}
	case HeartbeatOK:
		m.maybeStuck(e)
	case HeartbeatFailed:
		m.checkSilence(true)
	case SilenceChecked:
		m.silenceChecked(e)
	case RenewRequested:
		m.renew(e)
	case DeadlineReached:
		m.upDeadline(e)
	case ClientFatal:
		m.failClient(e)
	case DrainRequested:
		m.becomeDraining(e)
	case ChunkArrived, Acked, Reported, ErrorSeen, Drained:
	}
}

// checkSilence asks which connections are silent. The answer comes at once; should it not,
// the question is asked again.
func (m *Machine) checkSilence(beat bool) {
	m.check = check{number: m.check.number + 1, waiting: true, beat: beat}
	m.traffic.recheck = after(m.now, m.cfg.StallTimeout)
	m.traffic.active = m.now
	m.act(CheckSilence)
}

// silenceChecked draws the conclusion: nobody is left who may answer, or somebody is.
func (m *Machine) silenceChecked(e *Event) {
	left := e.Ready - e.Silent
	if left > 0 && e.Silent > 0 {
		m.act(ShutSilent) // they are made anew at the pace of single addresses
	}
	switch {
	case left <= 0 && m.check.beat && !m.stalled():
		m.maybeRebuild(e)
	case left <= 0:
		m.act(ShutSockets) // attempts that hang too
		m.becomeAllDown(e, Worse(m.evidence.seen, ClassStalled))
	case m.check.beat:
		// Slow, or busy with a large request: that broker lives.
		m.maybeStuck(e)
	default:
		if e.Suspect > 0 {
			m.traffic.recheck = after(m.now, max(e.Next, time.Millisecond))
		}
		if e.Alive > 0 || e.Suspect <= 0 {
			m.startHeartbeat() // to be sure, and to hear what the matter is
		}
	}
}

// stalled tells whether records have waited for an acknowledgement for too long.
func (m *Machine) stalled() bool {
	return m.traffic.outstanding > 0 && m.now >= after(m.unansweredSince(), m.cfg.StallTimeout)
}

func (m *Machine) startHeartbeat() {
	if m.beat.waiting || !m.evidence.connected {
		return
	}
	m.beat.attempt++
	m.beat.waiting = true
	m.beat.by = after(m.now, m.cfg.KeepaliveTimeout)
	m.act(StartHeartbeat)
}

// maybeStuck notes that records wait although a broker answers. That is no outage: records
// of other topics may flow. If nobody knows why for long, the client itself may be wrong
// about the cluster, and a new one is tried.
func (m *Machine) maybeStuck(e *Event) {
	if !m.stalled() {
		return
	}
	m.traffic.stuck = true
	r := &m.renewal
	r.stuck = countIf(r.stuck, e.Kind == HeartbeatOK && !e.Trouble)
	if r.stuck >= r.limit {
		r.limit = min(2*r.limit, maxStuck)
		m.retire(RenewStuck)
		m.becomeConnecting(e)
	}
}

// maxStuck bounds the doubling: with the default times that is about four hours.
const maxStuck = 1000

func (m *Machine) upDeadline(e *Event) {
	v := &m.evidence
	switch {
	case m.settled():
		m.becomeAllDown(e, v.seen)
	case v.hanging && m.now >= v.hang:
		m.act(ShutSockets)
		m.becomeAllDown(e, Worse(v.seen, ClassTimeout))
	case m.beat.waiting && m.now >= m.beat.by:
		m.beat.waiting = false
		m.checkSilence(true)
	case m.traffic.outstanding > 0 && m.now >= m.stallBy():
		m.checkSilence(false)
	default:
		m.idleDeadline(e)
	}
}

func (m *Machine) idleDeadline(e *Event) {
	switch m.cfg.IdlePolicy {
	case IdleKeepalive:
		switch {
		case m.beat.waiting || m.now < after(m.traffic.active, m.cfg.KeepaliveInterval):
		case !m.evidence.connected: // nothing to keep alive
			m.traffic.active = m.now
		default:
			m.startHeartbeat()
		}
	case IdleClose:
		if m.traffic.outstanding == 0 && m.now >= m.idleBy() {
			m.becomeIdle(e)
		}
	case IdleKeep:
	}
}

// maybeRebuild replaces a connection that does not answer. If it is gone already there
// is nothing to shut, and attempts that are under way must not be cut.
func (m *Machine) maybeRebuild(e *Event) {
	m.traffic.active = m.now
	if !m.evidence.connected {
		return
	}
	m.maybeForget()
	m.act(ShutSockets)
	m.becomeConnecting(e)
}

// stepAllDown waits for the backoff. What the client says of brokers is mostly the echo
// of our own refusals; only success counts, and the reason of a late failure.
func (m *Machine) stepAllDown(e *Event) {
	switch e.Kind {
	case BrokersChanged:
		if e.Up > 0 { // an attempt that was in flight when the gate was shut
			m.becomeUp(e)
			return
		}
		m.outage.reason = Worse(m.outage.reason, m.evidence.seen)
	case ErrorSeen:
		m.outage.reason = Worse(m.outage.reason, m.evidence.seen)
	case Acked:
		m.becomeUp(e)
	case ClientFatal:
		m.failClient(e)
	case RenewRequested:
		m.renew(e)
	case DeadlineReached:
		m.outage.attempt++
		if !m.open {
			m.openClient()
		}
		m.becomeProbing(e)
	case DrainRequested:
		m.becomeClosed(e)
	case ChunkArrived, Reported, HeartbeatOK, HeartbeatFailed, SilenceChecked, Drained:
	}
}

// stepProbing watches one round of attempts.
func (m *Machine) stepProbing(e *Event) {
	switch e.Kind {
	case BrokersChanged:
		switch {
		case e.Up > 0:
			m.becomeUp(e)
		case allDown(e):
			m.roundFailed(e, m.evidence.seen)
		default:
			m.outage.reason = Worse(m.outage.reason, m.evidence.seen)
		}
	case ErrorSeen:
		m.outage.reason = Worse(m.outage.reason, m.evidence.seen)
	case Acked:
		m.becomeUp(e)
	case DeadlineReached:
		reason := m.evidence.seen
		if !m.settled() {
			reason = Worse(reason, ClassTimeout)
		}
		m.act(ShutSockets) // attempts that hang
		m.roundFailed(e, reason)
	case ClientFatal:
		m.failClient(e)
	case RenewRequested:
		m.renew(e)
	case DrainRequested:
		m.becomeClosed(e)
	case ChunkArrived, Reported, HeartbeatOK, HeartbeatFailed, SilenceChecked, Drained:
	}
}

// stepIdle waits for a chunk. Whatever the client says of brokers is the planned close.
func (m *Machine) stepIdle(e *Event) {
	switch e.Kind {
	case ChunkArrived:
		m.becomeConnecting(e)
	case ClientFatal:
		m.failClient(e)
	case RenewRequested:
		m.renew(e)
	case DrainRequested:
		m.becomeClosed(e)
	case Acked, Reported, BrokersChanged, ErrorSeen, HeartbeatOK, HeartbeatFailed, SilenceChecked, DeadlineReached, Drained:
	}
}

// stepDraining ends when nothing is left, or when there is no more time.
func (m *Machine) stepDraining(e *Event) {
	switch e.Kind {
	case ChunkArrived, Acked, Reported:
		if m.traffic.outstanding == 0 {
			m.becomeClosed(e)
		}
	case ClientFatal, DeadlineReached, Drained:
		m.becomeClosed(e)
	case BrokersChanged, ErrorSeen, HeartbeatOK, HeartbeatFailed, SilenceChecked, RenewRequested, DrainRequested:
	}
}

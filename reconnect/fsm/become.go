package fsm

// become changes the state; the becomeX functions add what entering a state means.
// Staying where one is, is no change.
func (m *Machine) become(s State, e *Event) {
	if s == m.state {
		return
	}
	m.last = Transition{From: m.state, To: s, Cause: e.Kind, At: m.now}
	m.moved = true
	m.state = s
}

// setGate counts a setting of the connection gate. What was known of the attempts under
// the old setting says nothing of the new one.
func (m *Machine) setGate() {
	m.epoch++
	m.evidence = evidence{opened: m.now}
}

// act appends an action.
func (m *Machine) act(k ActionKind) {
	a := Action{Kind: k, ClientGen: m.gen}
	switch k {
	case StartHeartbeat:
		a.Attempt = m.beat.attempt
	case CheckSilence, ShutSilent:
		a.Attempt = m.check.number
		a.After = m.cfg.StallTimeout
		if m.check.beat {
			// It was asked a moment after the heartbeat was due, and has had its time.
			a.After = m.cfg.KeepaliveTimeout / 4 * 3
		}
	case OpenClient, RetireClient:
		a.Why = m.renewal.why
	case CloseClient, ShutSockets, FailOutstanding:
	}
	m.actions = append(m.actions, a)
}

func (m *Machine) openClient() {
	m.gen++
	m.open = true
	m.renewal.due, m.renewal.logins, m.renewal.deadEnds, m.renewal.stuck = false, 0, 0, 0
	m.act(OpenClient)
}

// closeClient gives the client up. Its records are not ours any more; what the driver
// still has to report of them comes with the next generation.
func (m *Machine) closeClient(why Renewal) {
	if !m.open {
		return
	}
	m.renewal.why = why
	m.open = false
	m.setOutstanding(0)
	m.act(CloseClient)
}

// becomeConnecting opens the connection gate for whatever the client wants to reach.
func (m *Machine) becomeConnecting(e *Event) {
	m.become(Connecting, e)
	m.setGate()
	m.traffic.stuck = false
	m.by = after(m.now, m.cfg.ConnectTimeout)
	m.evidence.extended = m.traffic.outstanding > 0
}

// becomeUp opens both gates. The level of the backoff is kept until a record is
// acknowledged: a broker that answers and takes no records still backs off.
func (m *Machine) becomeUp(e *Event) {
	if m.renewal.due {
		m.retire(RenewFiles)
		m.becomeConnecting(e)
		return
	}
	connected := m.evidence.connected
	switch {
	case m.ConnGate() != ConnOpen:
		// What failed before the gate opened says nothing of the brokers that come back
		// a moment after the first.
		m.become(Up, e)
		m.setGate()
	case e.Kind == BrokersChanged && e.Failing > 0:
		m.become(Degraded, e)
	default:
		m.become(Up, e)
	}
	m.evidence = evidence{connected: connected, opened: m.now}
	m.outage.on = false
	m.traffic.up, m.traffic.active = m.now, m.now
}

// becomeAllDown shuts both gates and draws the next wait.
func (m *Machine) becomeAllDown(e *Event, reason Class) {
	o := &m.outage
	switch {
	case o.on: // a round of attempts has failed
		o.reason = Worse(o.reason, reason)
	case m.backoff.Level() == 0: // something was acknowledged since the last outage, or this is the first
		*o = outage{number: o.number + 1, reason: reason}
	default:
		o.resumed = true
		o.reason = Worse(o.reason, reason)
	}
	o.on = true
	if m.Gate() == Admit {
		m.act(FailOutstanding)
	}
	m.become(AllDown, e)
	m.last.Reason = o.reason
	m.setGate()
	m.beat.waiting, m.check.waiting, m.traffic.stuck = false, false, false
	o.wait = m.backoff.Next(m.now)
	m.by = after(m.now, o.wait)
}

// roundFailed ends a sweep that has found nobody.
func (m *Machine) roundFailed(e *Event, reason Class) {
	learnedOnly := m.evidence.learnedOnly
	m.becomeAllDown(e, reason)
	m.countRound(reason, learnedOnly)
}

// becomeProbing starts a sweep: one attempt for each address.
func (m *Machine) becomeProbing(e *Event) {
	m.become(Probing, e)
	m.last.Reason = m.outage.reason
	m.setGate()
	m.by = after(m.now, m.cfg.ProbeTimeout)
}

// becomeIdle closes the connections on purpose.
func (m *Machine) becomeIdle(e *Event) {
	m.become(Idle, e)
	m.setGate()
	m.beat.waiting = false
	m.backoff.Reset()
	m.act(ShutSockets)
}

// failClient gives a client up that can't go on; the next one is opened when the wait is
// over. A wait that runs already is kept.
func (m *Machine) failClient(e *Event) {
	if m.state == AllDown {
		m.outage.reason = Worse(m.outage.reason, e.Class)
		m.closeClient(RenewFatal)
		return
	}
	m.becomeAllDown(e, Worse(m.evidence.seen, e.Class))
	m.closeClient(RenewFatal)
}

// becomeDraining waits for what is outstanding, if anything is.
func (m *Machine) becomeDraining(e *Event) {
	if m.traffic.outstanding == 0 {
		m.becomeClosed(e)
		return
	}
	m.become(Draining, e)
	m.beat.waiting = false
	m.by = after(m.now, m.cfg.DrainTimeout)
}

// becomeClosed is the end. Waiting flush calls were released already if the flush gate
// was shut by an outage.
func (m *Machine) becomeClosed(e *Event) {
	if m.state != AllDown && m.state != Probing && m.traffic.outstanding > 0 {
		m.act(FailOutstanding)
	}
	m.become(Closed, e)
	m.closeClient(RenewNone)
}

package reconnect

import (
	"slices"
	"strings"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// Snapshot is what a supervisor knows, for logs, metrics and people.
type Snapshot struct {
	State    fsm.State
	Gate     fsm.Gate
	ConnGate fsm.ConnGate
	// Reason and Text: why the brokers count as down; ClassNone otherwise.
	Reason fsm.Class
	Text   string
	// Since is when State was entered.
	Since time.Time
	// Outages counts outages since the start, the current one included. One that comes
	// back before anything was acknowledged is the same one.
	Outages int
	// DownSince is when the current outage began, or zero; DownTotal is the time in
	// outages since the start, the current one included.
	DownSince time.Time
	DownTotal time.Duration
	// Attempts is the number of rounds of attempts in the latest outage, Wait the last
	// wait of the backoff, and NextTry when it ends; zero when no attempt is waited for.
	Attempts int
	Wait     time.Duration
	NextTry  time.Time
	// Generation is the number of clients opened so far.
	Generation int
	// ConnectAttempts counts connection attempts and failed look-ups since the start, over all
	// clients: those that ended with a connection that was ready for requests, those that did
	// not, and those still under way. What ends while its client is being closed is in none of
	// the latter two.
	ConnectAttempts, ConnectFailures, ConnectSuccesses uint64
	// Refused counts refused flushes since the start.
	Refused uint64
	// Stuck: records wait for an acknowledgement for StallTimeout although brokers answer.
	Stuck bool
	// Outstanding is the number of messages in deliveries that have not settled.
	Outstanding int
	// Brokers are the known addresses, sorted.
	Brokers []BrokerSnapshot
}

// BrokerSnapshot is what is known of one address.
type BrokerSnapshot struct {
	Broker
	// Failing: the last attempt failed, and no connection is ready.
	Failing bool
}

// Status returns a snapshot. It takes no lock; what the loop has to say is as of its
// last step.
func (s *Supervisor) Status() Snapshot {
	st := *s.status.Load()
	if !st.DownSince.IsZero() {
		st.DownTotal += time.Since(st.DownSince)
	}
	st.Refused = s.refusals.Load()
	st.Outstanding = s.outstanding.count()
	st.Brokers = slices.Clone(st.Brokers)
	return st
}

// publishStatus makes a new snapshot; DownTotal in it is without the current outage.
func (l *loop) publishStatus() {
	m := l.machine
	st := &Snapshot{
		State:      m.State(),
		Gate:       m.Gate(),
		ConnGate:   m.ConnGate(),
		Reason:     m.Reason(),
		Since:      l.s.start.Add(l.since),
		Outages:    m.Outage(),
		DownTotal:  l.downTotal,
		Attempts:   m.Attempt(),
		Wait:       m.Wait(),
		Generation: m.Generation(),
		Stuck:      m.Stuck(),
		Brokers:    l.brokers,

		ConnectAttempts:  l.evidence.connects.attempts,
		ConnectFailures:  l.evidence.connects.failures,
		ConnectSuccesses: l.evidence.connects.successes,
	}
	if l.down {
		st.DownSince = l.s.start.Add(l.downSince)
	}
	if st.Reason != fsm.ClassNone {
		st.Text = l.text()
	}
	if at, ok := m.Deadline(); ok && st.State == fsm.AllDown {
		st.NextTry = l.s.start.Add(at)
	}
	l.s.status.Store(st)
}

// brokerSnapshots lists the addresses for people.
func (e *evidence) snapshots() []BrokerSnapshot {
	out := make([]BrokerSnapshot, 0, len(e.addrs))
	for _, a := range e.addrs {
		out = append(out, BrokerSnapshot{Broker: a.Broker, Failing: a.failing})
	}
	slices.SortFunc(out, func(a, b BrokerSnapshot) int { return strings.Compare(a.Addr, b.Addr) })
	return out
}

// failingAddrs lists the failing addresses, sorted.
func (e *evidence) failingAddrs() []string {
	var out []string
	for addr, a := range e.addrs {
		if a.failing {
			out = append(out, addr)
		}
	}
	slices.Sort(out)
	return out
}

package fsm

// Renewal says why a client is replaced by a new one.
type Renewal uint8

// The reasons of a renewal.
const (
	// RenewNone: the first client, or none is being replaced.
	RenewNone Renewal = iota
	// RenewFatal: the client can't go on, or could not be opened.
	RenewFatal
	// RenewFiles: credentials or certificates have changed on disk.
	RenewFiles
	// RenewLogin: the brokers have refused to know us too often in a row. The client may
	// hold on to what has expired.
	RenewLogin
	// RenewDeadEnd: only addresses that were learned from a cluster were tried too often
	// in a row, and all of them failed: the cluster may be elsewhere by now.
	RenewDeadEnd
	// RenewStuck: records wait for long although the brokers answer and know of no trouble.
	RenewStuck

	numRenewals = iota
)

var renewalNames = [numRenewals]string{
	"none", "fatal error", "files changed", "login refused repeatedly", "learned addresses fail repeatedly", "nothing acknowledged",
}

// String returns the words used in logs.
func (r Renewal) String() string { return name(renewalNames[:], uint8(r)) }

// renewal is what leads to the next client.
type renewal struct {
	why Renewal // of the client that is to be opened
	// due: the files have changed while a sweep was under way, which is not disturbed.
	due bool
	// logins and deadEnds count failed rounds in a row.
	logins, deadEnds int
	// stuck counts checks in a row that found answering brokers and nothing wrong, limit is
	// how many are too many: it doubles with each client that did not help.
	stuck, limit int
}

// retire lets the client finish what it has and opens the next one beside it, so that no
// record is sent by both.
func (m *Machine) retire(why Renewal) {
	m.renewal.why = why
	m.act(RetireClient)
	m.open = false
	m.openClient()
	m.beat.waiting = false
	m.check = check{}
}

// renew replaces a client whose files have changed.
func (m *Machine) renew(e *Event) {
	switch m.state {
	case Connecting, Up, Degraded:
		m.retire(RenewFiles)
		m.becomeConnecting(e)
	case Idle:
		m.closeClient(RenewFiles)
		m.openClient()
		m.setGate()
		m.act(ShutSockets) // it may have begun to connect as it was opened
	case AllDown:
		m.closeClient(RenewFiles) // the next step of the backoff opens the new one
	case Probing:
		m.renewal.due = true
	case Draining, Closed:
	}
}

// countRound counts what a failed round of attempts tells and gives the client up when it
// has told the same too often.
func (m *Machine) countRound(reason Class, learnedOnly bool) {
	r := &m.renewal
	r.logins = countIf(r.logins, reason == ClassAuthentication || reason == ClassTLS)
	r.deadEnds = countIf(r.deadEnds, learnedOnly)
	switch {
	case r.due:
		m.closeClient(RenewFiles)
	case r.logins >= m.cfg.RenewAfter:
		m.closeClient(RenewLogin)
	case r.deadEnds >= m.cfg.RenewAfter:
		m.closeClient(RenewDeadEnd)
	}
}

// countIf counts what happens in a row.
func countIf(n int, again bool) int {
	if again {
		return n + 1
	}
	return 0
}

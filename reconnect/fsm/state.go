package fsm

// State is where the connection to the cluster stands.
type State uint8

// The states, in the order of a normal life.
const (
	// Connecting: a client is open and no broker has come up yet.
	Connecting State = iota
	// Up: at least one broker was reached and none is known to fail.
	Up
	// Degraded: at least one broker is up while another address fails. It behaves like
	// Up and exists for logs and metrics.
	Degraded
	// AllDown: no broker can be reached; the backoff runs.
	AllDown
	// Probing: half-open, every address may be tried once.
	Probing
	// Idle: the connections were closed on purpose and stay closed until the next chunk.
	Idle
	// Draining: no new chunk is taken, what is outstanding may still be acknowledged.
	Draining
	// Closed: the end; nothing happens any more.
	Closed

	numStates = iota
)

var stateNames = [numStates]string{
	"connecting", "up", "degraded", "all_down", "probing", "idle", "draining", "closed",
}

// States lists every state, in the order of a normal life.
func States() []State {
	all := make([]State, numStates)
	for i := range all {
		all[i] = State(i)
	}
	return all
}

// String returns the name used in logs and metrics.
func (s State) String() string { return name(stateNames[:], uint8(s)) }

// Gate says whether a flush may hand records over.
type Gate uint8

// The positions of the flush gate.
const (
	Refuse Gate = iota
	Admit

	numGates = iota
)

var gateNames = [numGates]string{"refuse", "admit"}

// String returns the name used in logs and metrics.
func (g Gate) String() string { return name(gateNames[:], uint8(g)) }

// ConnGate says which connection attempts the client may start.
type ConnGate uint8

// The positions of the connection gate.
const (
	// ConnShut refuses every attempt.
	ConnShut ConnGate = iota
	// ConnSweep allows one attempt for each distinct address.
	ConnSweep
	// ConnOpen allows every attempt.
	ConnOpen

	numConnGates = iota
)

var connGateNames = [numConnGates]string{"shut", "sweep", "open"}

// String returns the name used in logs and metrics.
func (g ConnGate) String() string { return name(connGateNames[:], uint8(g)) }

// gates is the one place that ties the two gates to the state.
var gates = [numStates]struct {
	flush Gate
	conn  ConnGate
}{
	Connecting: {Admit, ConnOpen},
	Up:         {Admit, ConnOpen},
	Degraded:   {Admit, ConnOpen},
	AllDown:    {Refuse, ConnShut},
	Probing:    {Refuse, ConnSweep},
	Idle:       {Admit, ConnShut},
	Draining:   {Refuse, ConnOpen},
	Closed:     {Refuse, ConnShut},
}

// Gate is what a flush is told in this state.
func (s State) Gate() Gate {
	if int(s) < len(gates) {
		return gates[s].flush
	}
	return Refuse
}

// ConnGate is what the client is told in this state.
func (s State) ConnGate() ConnGate {
	if int(s) < len(gates) {
		return gates[s].conn
	}
	return ConnShut
}

// IdlePolicy says what happens to connections that nobody uses.
type IdlePolicy uint8

// The idle policies; the zero value is the default.
const (
	// IdleKeepalive asks a connected broker for metadata now and then, so that load
	// balancers and firewalls do not forget the connection and a dead one is noticed.
	IdleKeepalive IdlePolicy = iota
	// IdleKeep does nothing.
	IdleKeep
	// IdleClose closes the connections and keeps them closed until the next chunk.
	IdleClose

	numPolicies = iota
)

var policyNames = [numPolicies]string{"keepalive", "keep", "close"}

// String returns the name used in the configuration.
func (p IdlePolicy) String() string { return name(policyNames[:], uint8(p)) }

package fsm

import "time"

// EventKind says what an Event tells.
type EventKind uint8

// The kinds of events.
const (
	// ChunkArrived: a flush handed records over. Sets Outstanding.
	ChunkArrived EventKind = iota
	// Acked: at least one record was acknowledged. Sets Outstanding.
	Acked
	// Reported: records were reported, none of them as acknowledged. Sets Outstanding.
	Reported
	// BrokersChanged: what is known of the broker addresses. Sets Epoch, Up, Failing,
	// Failed, Pending, InFlight and Class.
	BrokersChanged
	// ErrorSeen: the client reported an error that belongs to no record. Sets Class.
	ErrorSeen
	// HeartbeatOK: the heartbeat of number Attempt was answered. Sets Trouble.
	HeartbeatOK
	// HeartbeatFailed: the heartbeat of number Attempt was not answered.
	HeartbeatFailed
	// SilenceChecked: the answer to CheckSilence of number Attempt. Sets Ready, Silent,
	// Suspect, Alive and Next.
	SilenceChecked
	// RenewRequested: what the client was opened with has changed on disk, and a new one
	// can be made of it.
	RenewRequested
	// ClientFatal: the client can't go on, or could not be opened. Sets Class.
	ClientFatal
	// DeadlineReached: the time that Deadline told has come.
	DeadlineReached
	// DrainRequested: finish what is outstanding, then close.
	DrainRequested
	// Drained: whoever asked for the drain does not wait any longer.
	Drained

	numEvents = iota
)

var eventNames = [numEvents]string{
	"chunk_arrived", "acked", "reported", "brokers_changed", "error_seen", "heartbeat_ok",
	"heartbeat_failed", "silence_checked", "renew_requested", "client_fatal", "deadline_reached", "drain_requested", "drained",
}

// String returns the name used in logs and scenario files.
func (k EventKind) String() string { return name(eventNames[:], uint8(k)) }

// Event is one input of the machine. It carries its own facts; the machine never asks
// back. Fields that its kind does not name are ignored.
type Event struct {
	// At is the offset from the driver's start. The machine takes one that runs
	// backwards for the latest it has seen.
	At   time.Duration
	Kind EventKind
	// Class of an error; with BrokersChanged the most telling class of the attempts
	// that Failed counts.
	Class Class
	// ClientGen is the generation of the client that an event of a client comes from.
	// Events of another generation are dropped.
	ClientGen int
	// Attempt is the number of the heartbeat that was answered or not, or of the check.
	Attempt int
	// Outstanding is the number of records handed over and not reported yet. The
	// machine only cares whether there are any.
	Outstanding int
	// Epoch is the GateEpoch that the counts below were made for; others are dropped.
	Epoch int
	// Up is the number of addresses with a ready connection.
	Up int
	// Failing is the number of addresses whose last attempt failed and that have no
	// ready connection.
	Failing int
	// Failed is the number of addresses with a failed attempt since the last broker
	// was up, or since the connection gate was last set if that is later.
	Failed int
	// Pending is the number of addresses that are wanted and were not tried since then.
	Pending int
	// InFlight is the number of attempts that have neither succeeded nor failed.
	InFlight int
	// LearnedOnly: attempts have failed since the gate was set, none of them to an address
	// of the configuration.
	LearnedOnly bool
	// Ready is the number of ready connections. Silent of them were asked and have shown no
	// sign of life for the whole time of the check. Suspect are on the way
	// there, the first of them is silent after Next. Alive have shown a sign of life lately.
	// The rest was asked nothing.
	Ready, Silent, Suspect, Alive int
	Next                          time.Duration
	// Trouble: the answer to a heartbeat names something that keeps records waiting, such
	// as a partition without a leader.
	Trouble bool
}

// ActionKind says what the driver must do.
type ActionKind uint8

// The kinds of actions.
const (
	// OpenClient: open the client of generation ClientGen.
	OpenClient ActionKind = iota
	// CloseClient: give up the client of generation ClientGen; its outstanding records
	// come back as not delivered.
	CloseClient
	// ShutSockets: shut every connection, so that the client requeues what hangs.
	ShutSockets
	// CheckSilence: look for connections that were asked and have shown no sign of life for
	// After, and answer with number Attempt.
	CheckSilence
	// ShutSilent: shut these.
	ShutSilent
	// RetireClient: hand the client of generation ClientGen nothing any more, let it finish
	// what it has in bounded time, then give it up.
	RetireClient
	// StartHeartbeat: ask a broker for metadata and answer with number Attempt.
	StartHeartbeat
	// FailOutstanding: release waiting flush calls with retry.
	FailOutstanding

	numActions = iota
)

var actionNames = [numActions]string{
	"open_client", "close_client", "shut_sockets", "check_silence", "shut_silent", "retire_client", "start_heartbeat", "fail_outstanding",
}

// String returns the name used in scenario files and tables.
func (k ActionKind) String() string { return name(actionNames[:], uint8(k)) }

// Action is one output of the machine.
type Action struct {
	Kind      ActionKind
	ClientGen int
	// Attempt is the number of the heartbeat (StartHeartbeat) or of the check (CheckSilence).
	Attempt int
	// After is how long a silent connection is silent (CheckSilence, ShutSilent).
	After time.Duration
	// Why is why there is another client than before (OpenClient, RetireClient).
	Why Renewal
}

// Transition is a change of state, for logs and metrics.
type Transition struct {
	From, To State
	Cause    EventKind
	At       time.Duration
	// Reason of the outage, when To is AllDown or Probing.
	Reason Class
}

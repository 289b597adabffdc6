package fsm

import (
	"fmt"
	"strings"
	"time"
)

// Row is one cell of the transition table that does something.
type Row struct {
	From State
	// When names what must hold in From, or is empty.
	When  string
	Event EventKind
	// Detail names what the event says, or is empty.
	Detail  string
	To      State
	Actions []ActionKind
	// Wait is how long after the event the next deadline is, where the event set it.
	Wait time.Duration
}

// Table returns the transition table: every state against every kind of event. It is
// made by running the machine, so it can't be wrong about it. Cells in which nothing
// happens are left out. The times are those of DefaultConfig with a backoff of 100ms in
// the middle of its jitter.
func Table() []Row {
	var rows []Row
	for _, s := range situations() {
		for _, in := range inputs() {
			if r, ok := s.try(in); ok {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// FormatTable prints the table as text, a block for each state.
func FormatTable() string {
	var b strings.Builder
	head := ""
	for _, r := range Table() {
		if h := r.From.String(); h != head {
			fmt.Fprintf(&b, "%s (flush gate %s, connection gate %s)\n", h, r.From.Gate(), r.From.ConnGate())
			head = h
		}
		fmt.Fprintf(&b, "    %s\n", r)
	}
	return b.String()
}

// String prints the row without its From.
func (r Row) String() string {
	cause := r.Event.String()
	if r.Detail != "" {
		cause += ": " + r.Detail
	}
	if r.When != "" {
		cause = "[" + r.When + "] " + cause
	}
	to := "stays"
	if r.To != r.From {
		to = r.To.String()
	}
	for _, a := range r.Actions {
		to += ", " + a.String()
	}
	if r.Wait > 0 {
		to += ", next after " + r.Wait.String()
	}
	return fmt.Sprintf("%-77s -> %s", cause, to)
}

// situation is a way to get a machine into a state.
type situation struct {
	state  State
	when   string
	policy IdlePolicy
	path   []Event
}

// input is an event as the table tries it.
type input struct {
	detail string
	event  Event
}

// tableDeadline stands for a DeadlineReached at the time of the machine's deadline.
var tableDeadline = Event{Kind: DeadlineReached}

func situations() []situation {
	up := Event{Kind: BrokersChanged, Up: 1}
	down := Event{Kind: BrokersChanged, Failing: 1, Failed: 1, Class: ClassNetwork}
	untried := Event{Kind: BrokersChanged, Failing: 1, Failed: 1, Pending: 1, Class: ClassNetwork}
	hang := Event{Kind: BrokersChanged, InFlight: 1}
	chunk := Event{Kind: ChunkArrived, Outstanding: 1}
	fatal := Event{Kind: ClientFatal, Class: ClassFatal}
	half := Event{Kind: BrokersChanged, Up: 1, Failing: 1}
	drain := Event{Kind: DrainRequested}
	path := func(e ...Event) []Event { return e }
	return []situation{
		{Connecting, "", IdleKeep, nil},
		{Connecting, "records outstanding", IdleKeep, path(chunk)},
		{Connecting, "an attempt hangs", IdleKeep, path(hang)},
		{Connecting, "some have failed", IdleKeep, path(untried)},
		{Up, "", IdleKeep, path(up)},
		{Up, "records outstanding", IdleKeep, path(up, chunk)},
		{Up, "no broker is up, an attempt hangs", IdleKeep, path(up, hang)},
		{Up, "no broker is up, some have failed", IdleKeep, path(up, untried)},
		{Up, "idle_policy keepalive", IdleKeepalive, path(up)},
		{Up, "heartbeat sent", IdleKeepalive, path(up, tableDeadline)},
		{Up, "looking for silence, records outstanding", IdleKeep, path(up, chunk, tableDeadline)},
		{Up, "looking for silence, heartbeat unanswered", IdleKeepalive, path(up, tableDeadline, tableDeadline)},
		{Up, "idle_policy close", IdleClose, path(up)},
		{Degraded, "", IdleKeep, path(half)},
		{AllDown, "", IdleKeep, path(down)},
		{AllDown, "client given up", IdleKeep, path(fatal)},
		{Probing, "", IdleKeep, path(down, tableDeadline)},
		{Probing, "some have failed", IdleKeep, path(down, tableDeadline, untried)},
		{Idle, "", IdleClose, path(up, tableDeadline)},
		{Draining, "", IdleKeep, path(up, chunk, drain)},
	}
}

func inputs() []input {
	return []input{
		{"", Event{Kind: ChunkArrived, Outstanding: 2}},
		{"", Event{Kind: Acked, Outstanding: 1}},
		{"nothing is left", Event{Kind: Reported}},
		{"one is up", Event{Kind: BrokersChanged, Up: 1}},
		{"one is up, one fails", Event{Kind: BrokersChanged, Up: 1, Failing: 1}},
		{"none is up, none has failed", Event{Kind: BrokersChanged}},
		{"none is up, all have failed", Event{Kind: BrokersChanged, Failing: 1, Failed: 1, Class: ClassNetwork}},
		{"none is up, some have failed, some are untried", Event{Kind: BrokersChanged, Failing: 1, Failed: 1, Pending: 1, Class: ClassNetwork}},
		{"none is up, some have failed, some are in flight", Event{Kind: BrokersChanged, Failing: 1, Failed: 1, InFlight: 1, Class: ClassNetwork}},
		{"", Event{Kind: ErrorSeen, Class: ClassAuthentication}},
		{"", Event{Kind: HeartbeatOK}},
		{"", Event{Kind: HeartbeatFailed}},
		{"every connection is silent", Event{Kind: SilenceChecked, Ready: 2, Silent: 2}},
		{"one was asked lately", Event{Kind: SilenceChecked, Ready: 2, Silent: 1, Suspect: 1, Next: time.Second}},
		{"one answers", Event{Kind: SilenceChecked, Ready: 2, Silent: 1, Alive: 1}},
		{"", Event{Kind: RenewRequested}},
		{"", Event{Kind: ClientFatal, Class: ClassFatal}},
		{"", tableDeadline},
		{"", Event{Kind: DrainRequested}},
		{"", Event{Kind: Drained}},
	}
}

// machine builds the situation.
func (s situation) machine() *Machine {
	m, _ := New(Config{IdlePolicy: s.policy}, 0)
	for _, e := range s.path {
		tableStep(m, e)
	}
	return m
}

// tableStep steps e with everything filled in that makes it current.
func tableStep(m *Machine, e Event) []Action {
	e.At = m.now + time.Millisecond
	if e.Kind == DeadlineReached {
		e.At = max(e.At, m.deadline)
	}
	e.ClientGen, e.Epoch, e.Attempt = m.gen, m.epoch, m.beat.attempt
	if e.Kind == SilenceChecked {
		e.Attempt = m.check.number
	}
	return m.Step(e)
}

// try runs one input and tells whether it did something that this situation is about.
func (s situation) try(in input) (Row, bool) {
	m := s.machine()
	before, armed := m.Deadline()
	level := m.Level()
	actions := tableStep(m, in.event)
	r := Row{From: s.state, When: s.when, Event: in.event.Kind, Detail: in.detail, To: m.state}
	for _, a := range actions {
		r.Actions = append(r.Actions, a.Kind)
	}
	if d, now := m.Deadline(); now && (!armed || d != before) {
		r.Wait = d - m.now
	}
	if in.event.Kind == Acked && m.Level() < level {
		r.Detail = "the backoff is reset"
	}
	did := r.To != r.From || len(r.Actions) > 0 || r.Wait > 0
	return r, did && (s.when == "" || s.differs(in, r))
}

// differs tells whether a situation with a condition does something that the plain one
// of its state does not, so that the table does not repeat itself.
func (s situation) differs(in input, r Row) bool {
	for _, plain := range situations() {
		if plain.state != s.state || plain.when != "" {
			continue
		}
		p, did := plain.try(in)
		p.When = r.When
		return !did || p.String() != r.String()
	}
	return true
}

package reconnect

import (
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// Observer is told what an operator may want to know. All calls come from the loop of
// the supervisor, one after the other; they must not block. NopObserver helps those who
// want a part of them.
type Observer interface {
	// Transition: the state has changed. Fires at every change.
	Transition(Report)
	// Attempt: a round of attempts has failed, the next is due after Wait. Fires once a
	// backoff step, after the Transition that goes with it.
	Attempt(Report)
	// Reason: the reason of the outage is known better than before, without a change of
	// state. Fires at most once for each more telling class.
	Reason(Report)
	// StillDown fires once a minute while an outage lasts.
	StillDown(Report)
	// Confirmed: the first acknowledgement after an outage. Fires once after it.
	Confirmed(Report)
	// Lost: the last ready connection has ended, which is no outage yet and may be what a
	// server does to an idle one. Not told when no connection had lasted for a second.
	Lost(Report)
	// Stuck: nothing was acknowledged for StallTimeout although brokers answer; Text is
	// what one of them says of the matter, if anything. Fires at each look while it lasts.
	Stuck(Report)
	// Replaced: the client was replaced by one of Generation because of Renewal; Text is
	// what goes with that, the files or the last error.
	Replaced(Report)
}

// Report is the state of things at the moment of a call.
type Report struct {
	// At is the offset from the start of the supervisor.
	At time.Duration
	// From, To and Cause are those of the last change of state; To is the state now.
	From, To fsm.State
	Cause    fsm.EventKind
	// Reason, Text: why the brokers count as down, and what the client said, if anything.
	Reason fsm.Class
	Text   string
	// Began: the last change of state began an outage, or brought it back.
	Began bool
	// Outage numbers the outages; Resumed tells that this one has come back before
	// anything was acknowledged.
	Outage  int
	Resumed bool
	// Attempt is the number of rounds of attempts in this outage.
	Attempt int
	// Step is the backoff step, Wait what was drawn from it.
	Step, Wait time.Duration
	// Down is how long the outage lasts, or how long the one lasted that has just ended.
	Down time.Duration
	// Refused counts refused flushes since the outage began.
	Refused uint64
	// Outstanding is the number of messages in deliveries that have not settled.
	Outstanding int
	// Generation is that of the client, Renewal why it was opened.
	Generation int
	Renewal    fsm.Renewal
	// Failing lists the addresses that are failing, sorted.
	Failing []string
}

// NopObserver does nothing.
type NopObserver struct{}

// Transition does nothing.
func (NopObserver) Transition(Report) {}

// Attempt does nothing.
func (NopObserver) Attempt(Report) {}

// Reason does nothing.
func (NopObserver) Reason(Report) {}

// StillDown does nothing.
func (NopObserver) StillDown(Report) {}

// Confirmed does nothing.
func (NopObserver) Confirmed(Report) {}

// Lost does nothing.
func (NopObserver) Lost(Report) {}

// Stuck does nothing.
func (NopObserver) Stuck(Report) {}

// Replaced does nothing.
func (NopObserver) Replaced(Report) {}

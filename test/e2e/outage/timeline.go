package outage

import (
	"slices"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// A span is a time in which the plugin was in one state.
type span struct {
	state    string
	from, to time.Time
}

// The states of the plugin, as its log tells them, and of an agent that does not run.
const (
	connecting = "connecting"
	up         = "up"
	degraded   = "degraded"
	down       = "down"
	absent     = "no agent"
)

// becomes maps lines of the plugin to the state that they tell of.
var becomes = map[string]string{
	"starting":         connecting,
	"all brokers down": down,
	"all brokers down again, nothing was acknowledged in between": down,
	"reconnect attempt failed":                                    down,
	"connected again":                                             up,
	"degraded: some brokers are unreachable":                      degraded,
	"all brokers are reachable again":                             up,
	"idle connection is dead, connecting anew":                    connecting,
}

// timeline returns the states from the beginning to the end. Nothing in the log tells of the first connection; a record
// that is written does.
func timeline(messages []rig.Message, gone []gap, appended []time.Time, from, to time.Time) []span {
	const written = "written" // no state
	type event struct {
		at time.Time
		is string
	}
	var events []event
	for _, m := range messages {
		if state, ok := becomes[m.Text]; ok {
			events = append(events, event{m.Made, state})
		}
	}
	for _, g := range gone {
		events = append(events, event{g.from, absent}, event{g.to, connecting})
	}
	for _, at := range appended {
		events = append(events, event{at, written})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })

	spans := []span{{state: connecting, from: from, to: to}}
	for _, e := range events {
		last := &spans[len(spans)-1]
		state := e.is
		switch {
		case state == written && last.state == connecting:
			state = up
		case state == written || last.state == absent && state != connecting || state == last.state:
			continue
		}
		last.to = e.at
		spans = append(spans, span{state: state, from: e.at, to: to})
	}
	return spans
}

// waiting returns the wait that the backoff was in at a time, and false when there was no outage to the plugin's mind.
func waiting(messages []rig.Message, at time.Time) (time.Duration, bool) {
	var wait time.Duration
	outage := false
	for _, m := range messages {
		if m.Made.After(at) {
			break
		}
		switch becomes[m.Text] {
		case down:
			outage = true
			if next := m.Duration("next_in"); next > 0 {
				wait = next
			}
		case up, degraded, connecting:
			outage = false
		}
	}
	return wait, outage
}

// attempts counts the connection attempts that the plugin has told of, and how many its outages allow.
func attempts(messages []rig.Message, end time.Time, lowest, highest time.Duration) (made, allowed int) {
	var since time.Time
	over := func(at time.Time) {
		if !since.IsZero() {
			allowed += allowedAttempts(at.Sub(since), lowest, highest)
		}
		since = time.Time{}
	}
	for _, m := range messages {
		switch {
		case m.Text == "reconnect attempt failed":
			made++
		case becomes[m.Text] == down && since.IsZero():
			since = m.Made
		case becomes[m.Text] == up || becomes[m.Text] == connecting:
			if m.Text == "connected again" {
				made++
			}
			over(m.Made)
		}
	}
	over(end)
	return made, allowed
}

// allowedAttempts is the most attempts that the backoff makes in an outage of some length: each wait is drawn from 0.75
// times the step on, and attempts may fail at once.
func allowedAttempts(length, lowest, highest time.Duration) int {
	n := 1 // the one that ends the outage
	step := lowest
	for sum := step * 3 / 4; sum <= length; sum += step * 3 / 4 {
		n++
		step = min(2*step, highest)
	}
	return n
}

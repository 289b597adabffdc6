package rig

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Connects are the connects counted at one address.
type Connects struct {
	Addr  string
	Times []time.Time
}

// A Schedule is what the connects of an outage are compared with.
type Schedule struct {
	// Min and Max are reconnect_backoff_min and reconnect_backoff_max.
	Min, Max time.Duration
	// Lateness is how long after its due time an attempt may come.
	Lateness time.Duration
	// Until is when the counting ended.
	Until time.Time
}

// rounding is how far a wait in the log may be from the wait that was meant.
const rounding = 5 * time.Millisecond

// clockStep is what the times of log lines are cut to: a line was made up to so much later.
const clockStep = time.Millisecond

// A round is one wait of the backoff and the connects that came after it.
type round struct {
	attempt   int
	made, end time.Time // when the failure was noted, and the next one
	wait      time.Duration
	step      time.Duration
	connects  map[string][]time.Time
	last      time.Time // the last connect before the failure, at any address
}

// Check compares the connects with what the plugin said. Every wait must follow the rule of the backoff; after every wait
// comes one attempt to each address at most, to one address at least, never before the wait is over and no later than
// Lateness after it. It returns how many rounds were compared.
func (s Schedule) Check(connects []Connects, messages []Message) (int, error) {
	rounds := s.rounds(connects, messages)
	if len(rounds) == 0 {
		return 0, errors.New("checking the schedule: the log tells of no outage with two attempts")
	}
	var errs []error
	step := s.Min
	for _, r := range rounds {
		errs = append(errs, s.checkWait(r, step), s.checkConnects(r))
		step = min(2*step, s.Max)
	}
	if err := errors.Join(errs...); err != nil {
		return len(rounds), fmt.Errorf("checking the schedule of %d rounds: %w\n%s", len(rounds), err, describe(rounds))
	}
	return len(rounds), nil
}

// rounds pairs each failure with the connects that follow it. The last failure is left out: its attempt is still to come.
func (s Schedule) rounds(connects []Connects, messages []Message) []round {
	var rounds []round
	for _, m := range messages {
		made := m.Made.Add(clockStep)
		switch m.Text {
		case "all brokers down":
			rounds = []round{{made: made, wait: m.Duration("next_in"), step: s.Min}}
		case "reconnect attempt failed":
			if n := len(rounds); n > 0 {
				rounds[n-1].end = made
				rounds = append(rounds, round{attempt: m.Int("attempt"), made: made, wait: m.Duration("next_in"), step: m.Duration("step")})
			}
		}
	}
	for len(rounds) > 0 && (rounds[len(rounds)-1].end.IsZero() || rounds[len(rounds)-1].end.After(s.Until)) {
		rounds = rounds[:len(rounds)-1]
	}
	for i := range rounds {
		r := &rounds[i]
		r.connects = map[string][]time.Time{}
		for _, c := range connects {
			for _, at := range c.Times {
				switch {
				case at.After(r.made) && !at.After(r.end):
					r.connects[c.Addr] = append(r.connects[c.Addr], at)
				case !at.After(r.made) && at.After(r.last):
					r.last = at
				}
			}
		}
	}
	return rounds
}

// checkWait compares the wait with the rule.
func (s Schedule) checkWait(r round, step time.Duration) error {
	if r.step != step {
		return fmt.Errorf("attempt %d: the step is %s, want %s", r.attempt, r.step, step)
	}
	low, high := step*3/4, min(step*3/2, s.Max)
	if r.wait < low-rounding || r.wait > high+rounding {
		return fmt.Errorf("attempt %d: the wait is %s, want %s to %s", r.attempt, r.wait, low, high)
	}
	return nil
}

// checkConnects compares the connects with the wait. "Never before" is measured from the last connect that was seen, which
// came before the failure was noted, so that the clock of the log does not matter.
func (s Schedule) checkConnects(r round) error {
	var errs []error
	if len(r.connects) == 0 {
		errs = append(errs, fmt.Errorf("attempt %d: no connect came after the wait", r.attempt+1))
	}
	for addr, times := range r.connects {
		if len(times) > 1 {
			errs = append(errs, fmt.Errorf("attempt %d: %d connects to %s, want one at most", r.attempt+1, len(times), addr))
		}
		for _, at := range times {
			if gap := at.Sub(r.last); !r.last.IsZero() && gap < r.wait-rounding {
				errs = append(errs, fmt.Errorf("attempt %d: connect to %s %s after the last one, before the wait of %s was over", r.attempt+1, addr, gap, r.wait))
			}
			if late := at.Sub(r.made.Add(r.wait)); late > s.Lateness+rounding {
				errs = append(errs, fmt.Errorf("attempt %d: connect to %s %s after its due time", r.attempt+1, addr, late))
			}
		}
	}
	return errors.Join(errs...)
}

// describe is a table of the rounds.
func describe(rounds []round) string {
	var b strings.Builder
	for _, r := range rounds {
		fmt.Fprintf(&b, "  %s attempt %d failed, step %s, wait %s; connects:", r.made.Format("15:04:05.000"), r.attempt, r.step, r.wait)
		for addr, times := range r.connects {
			for _, at := range times {
				fmt.Fprintf(&b, " %s at %s (%+d ms)", addr, at.Format("15:04:05.000"), at.Sub(r.made.Add(r.wait)).Milliseconds())
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

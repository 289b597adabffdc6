package fsm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestTwoHourOutage prints the times of the attempts over an outage of two hours with the
// defaults, for three seeds, and checks that every wait lies in its interval and that no
// attempt is early. The network refuses at once, so that the waits are all there is.
func TestTwoHourOutage(t *testing.T) {
	const (
		outage  = 2 * time.Hour
		refused = 2 * time.Millisecond // how long an attempt takes
	)
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Rand = rand.New(rand.NewPCG(seed, seed)).Float64
			c := newChecked(t, cfg)
			fail := func(at time.Duration) {
				c.step(Event{Kind: BrokersChanged, At: at, ClientGen: c.m.gen, Epoch: c.m.epoch, Failing: 1, Failed: 1, Class: ClassNetwork})
			}
			var at []time.Duration
			step := cfg.BackoffMin
			for fail(refused); c.m.now < outage; fail(c.m.now + refused) {
				if c.m.state != AllDown || c.m.BackoffStep() != step {
					t.Fatalf("at %s: %s with step %s, want all_down with %s", c.m.now, c.m.state, c.m.BackoffStep(), step)
				}
				from, due := c.m.now, c.m.deadline
				if wait := due - from; wait < step*3/4 || wait > min(step*3/2, cfg.BackoffMax) {
					t.Fatalf("at %s: wait %s is outside the interval of step %s", from, wait, step)
				}
				c.step(Event{Kind: DeadlineReached, At: due - 1})
				if c.m.state != AllDown {
					t.Fatalf("an attempt before it was due")
				}
				c.step(Event{Kind: DeadlineReached, At: due})
				if c.m.state != Probing {
					t.Fatalf("no attempt when it was due: %s", c.m.state)
				}
				at = append(at, c.m.now)
				step = min(2*step, cfg.BackoffMax)
			}
			if n := len(at); n < 1440 || n > 1930 {
				t.Errorf("%d attempts in two hours", n)
			}
			logAttempts(t, at)
		})
	}
}

func logAttempts(t *testing.T, at []time.Duration) {
	var b strings.Builder
	for i, a := range at {
		if i == 12 {
			b.WriteString(" …")
		}
		if i < 12 || i >= len(at)-4 {
			fmt.Fprintf(&b, " %.3f", a.Seconds())
		}
	}
	minutes := map[int]int{}
	for _, a := range at {
		minutes[int(a.Minutes())]++
	}
	low, high := len(at), 0
	for m := 1; m < 119; m++ {
		low, high = min(low, minutes[m]), max(high, minutes[m])
	}
	t.Logf("%d attempts, at seconds:%s", len(at), b.String())
	t.Logf("in the first minute %d, in each later one %d to %d", minutes[0], low, high)
}

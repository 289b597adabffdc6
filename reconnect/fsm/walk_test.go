package fsm

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"
)

const (
	walks     = 8000
	walkSteps = 120
)

// TestWalks takes many seeded random walks and asserts the invariants after every step.
// A failure names its seed, which repeats the walk.
func TestWalks(t *testing.T) {
	n := walks
	if testing.Short() {
		n /= 20
	}
	pairs := map[[2]int]bool{}
	edges := map[[2]State]int{}
	steps := 0
	for seed := range uint64(n) {
		steps += walk(t, seed, pairs, func(tr Transition) { edges[[2]State{tr.From, tr.To}]++ })
	}
	t.Logf("%d walks, %d steps, %d edges", n, steps, len(edges))
	for s := range numStates {
		for k := range numEvents {
			if !pairs[[2]int{s, k}] {
				t.Errorf("no walk met %s with %s", State(s), EventKind(k))
			}
		}
	}
	for _, want := range [][2]State{
		{Connecting, Up},
		{Connecting, Degraded},
		{Connecting, AllDown},
		{Connecting, Draining},
		{Connecting, Closed},
		{Up, Degraded},
		{Up, AllDown},
		{Up, Connecting},
		{Up, Idle},
		{Up, Draining},
		{Up, Closed},
		{Degraded, Up},
		{Degraded, AllDown},
		{Degraded, Connecting},
		{Degraded, Idle},
		{Degraded, Draining},
		{Degraded, Closed},
		{AllDown, Up},
		{AllDown, Probing},
		{AllDown, Closed},
		{Probing, Up},
		{Probing, Connecting},
		{Probing, AllDown},
		{Probing, Closed},
		{Idle, Connecting},
		{Idle, AllDown},
		{Idle, Closed},
		{Draining, Closed},
	} {
		if edges[want] == 0 {
			t.Errorf("no walk went %s -> %s", want[0], want[1])
		}
		delete(edges, want)
	}
	for e, n := range edges {
		t.Errorf("%d walks went %s -> %s, which is in no plan", n, e[0], e[1])
	}
}

// walk takes one walk and returns the number of steps.
func walk(t testing.TB, seed uint64, pairs map[[2]int]bool, moved func(Transition)) int {
	r := rand.New(rand.NewPCG(seed, 1))
	c := newChecked(t, walkConfig(r, seed))
	c.fixed = seed%2 == 0
	c.pairs = pairs
	c.name = "seed " + strconv.FormatUint(seed, 10)
	for range walkSteps {
		c.step(walkEvent(r, c.m))
		if tr, ok := c.m.Transition(); ok {
			moved(tr)
		}
		// The liveness check moves the machine, so it ends the walk.
		if r.IntN(4*walkSteps) == 0 {
			c.live()
			break
		}
	}
	return walkSteps
}

func walkConfig(r *rand.Rand, seed uint64) Config {
	cfg := Config{IdlePolicy: IdlePolicy(r.IntN(numPolicies))}
	fixed := r.Float64()
	cfg.Rand = func() float64 { return fixed }
	if seed%2 == 1 {
		jitter := rand.New(rand.NewPCG(seed, 2))
		cfg.Rand = jitter.Float64
	}
	if r.IntN(3) == 0 {
		cfg.BackoffMin = time.Duration(1 + r.Int64N(int64(10*time.Second)))
		cfg.BackoffMax = time.Duration(1 + r.Int64N(int64(time.Minute)))
		cfg.ProbeTimeout = time.Duration(1 + r.Int64N(int64(10*time.Second)))
		cfg.Settle = time.Duration(1 + r.Int64N(int64(2*time.Second)))
		cfg.StallTimeout = time.Duration(1 + r.Int64N(int64(30*time.Second)))
		cfg.RenewAfter = 1 + r.IntN(5)
	}
	return cfg
}

// walkEvent makes an event that is plausible most of the time and nonsense now and then.
func walkEvent(r *rand.Rand, m *Machine) Event {
	e := Event{
		Kind:        EventKind(r.IntN(numEvents)),
		At:          m.now + pause(r),
		ClientGen:   m.gen,
		Epoch:       m.epoch,
		Attempt:     m.beat.attempt,
		Outstanding: r.IntN(3),
		Class:       Class(r.IntN(numClasses)),
		LearnedOnly: r.IntN(2) == 0,
		Ready:       r.IntN(3),
		Silent:      r.IntN(3),
		Suspect:     r.IntN(2),
		Alive:       r.IntN(2),
		Next:        pause(r),
		Trouble:     r.IntN(2) == 0,
	}
	if e.Kind == SilenceChecked || m.check.waiting && r.IntN(2) == 0 {
		e.Kind, e.Attempt = SilenceChecked, m.check.number
	}
	if r.IntN(3) == 0 { // half of all steps are what keeps a machine going
		e.Kind = []EventKind{DeadlineReached, BrokersChanged, ChunkArrived, Acked}[r.IntN(4)]
	}
	if e.Kind == DrainRequested && r.IntN(4) > 0 || (e.Kind == ClientFatal || e.Kind == RenewRequested) && r.IntN(3) > 0 {
		e.Kind = DeadlineReached
	}
	if e.Kind == DeadlineReached && m.armed && r.IntN(8) > 0 {
		e.At = max(m.now, m.deadline)
	}
	switch r.IntN(4) {
	case 0:
		e.Up, e.Failing = 1+r.IntN(3), r.IntN(2)
	case 1:
		e.Failed, e.Failing, e.Pending = 1+r.IntN(2), 1, r.IntN(2)
	case 2:
		e.Failed, e.InFlight, e.Pending = r.IntN(2), r.IntN(3), r.IntN(2)
	}
	switch r.IntN(40) {
	case 0:
		e.ClientGen--
	case 1:
		e.Epoch--
	case 2:
		e.Attempt--
	case 3:
		e.At = -e.At
	case 4:
		e.Up, e.Failed, e.Outstanding = -1, -5, -7
	case 5:
		e.Kind = EventKind(r.IntN(256))
	}
	return e
}

func pause(r *rand.Rand) time.Duration {
	switch r.IntN(5) {
	case 0:
		return 0
	case 1:
		return time.Duration(r.Int64N(int64(time.Minute)))
	case 2:
		return time.Duration(r.Int64N(int64(2 * time.Second)))
	default:
		return time.Duration(r.Int64N(int64(20 * time.Millisecond)))
	}
}

// The same configuration, seed and events give the same actions and transitions.
func TestReplay(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, _ := New(walkConfig(r, seed), 0)
		var events []Event
		for range walkSteps {
			e := walkEvent(r, m)
			events = append(events, e)
			m.Step(e)
		}
		first, second := replay(seed, events), replay(seed, events)
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("seed %d: two replays differ", seed)
		}
	}
}

func replay(seed uint64, events []Event) []string {
	m, actions := New(walkConfig(rand.New(rand.NewPCG(seed, 1)), seed), 0)
	out := []string{fmt.Sprint(actions)}
	for _, e := range events {
		actions := m.Step(e)
		tr, moved := m.Transition()
		d, armed := m.Deadline()
		out = append(out, fmt.Sprint(actions, tr, moved, d, armed, m.Reason(), m.Level(), m.GateEpoch()))
	}
	return out
}

package fsm

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScenarios replays testdata/*.txt. Rewrite them with -rewrite, and only when the
// difference is understood. The commands:
//
//	new [policy=] [rand=] [min=] [max=] …    a new machine at time 0
//	note                                     nothing; the line explains
//	state                                    print where the machine stands
//	deadline [after=]                        go to the deadline (and a bit further)
//	<event> [after=] [gen=] [epoch=] [attempt=] [outstanding=] [up=] [failing=] [failed=] [pending=] [inflight=] [class=]
//	        [learned=true] [ready=] [silent=] [suspect=] [alive=] [next=] [trouble=true]
//
// An event is an EventKind with - for _. Its generation, epoch and heartbeat are the
// current ones unless told.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // the corpus of the fuzzer
		}
		var s scenario
		datadriven.RunTest(t, path, s.run)
	})
}

type scenario struct{ m *Machine }

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "note":
		return ""
	case "new":
		m, actions := New(scenarioConfig(t, d), 0)
		s.m = m
		return s.print(actions, false)
	case "state":
		return s.print(nil, false)
	}
	actions := s.m.Step(s.event(t, d))
	_, moved := s.m.Transition()
	return s.print(actions, moved)
}

func scenarioConfig(t *testing.T, d *datadriven.TestData) Config {
	var cfg Config
	r := 0.5
	for _, a := range d.CmdArgs {
		v := a.Vals[0]
		switch a.Key {
		case "policy":
			cfg.IdlePolicy = IdlePolicy(parseName(t, policyNames[:], v))
		case "rand":
			r = parse(t, v, func(v string) (float64, error) { return strconv.ParseFloat(v, 64) })
		case "min":
			cfg.BackoffMin = parse(t, v, time.ParseDuration)
		case "max":
			cfg.BackoffMax = parse(t, v, time.ParseDuration)
		case "probe":
			cfg.ProbeTimeout = parse(t, v, time.ParseDuration)
		case "renew":
			cfg.RenewAfter = parse(t, v, strconv.Atoi)
		case "stall":
			cfg.StallTimeout = parse(t, v, time.ParseDuration)
		default:
			t.Fatalf("unknown setting %q", a.Key)
		}
	}
	cfg.Rand = func() float64 { return r }
	return cfg
}

func (s *scenario) event(t *testing.T, d *datadriven.TestData) Event {
	e := Event{At: s.m.now, ClientGen: s.m.gen, Epoch: s.m.epoch, Attempt: s.m.beat.attempt}
	if d.Cmd == "silence-checked" {
		e.Attempt = s.m.check.number
	}
	if d.Cmd == "deadline" {
		e.Kind = DeadlineReached
		if s.m.armed {
			e.At = s.m.deadline
		}
	} else {
		e.Kind = EventKind(parseName(t, eventNames[:], strings.ReplaceAll(d.Cmd, "-", "_")))
	}
	for _, a := range d.CmdArgs {
		v := a.Vals[0]
		if a.Key == "after" {
			e.At += parse(t, v, time.ParseDuration)
			continue
		}
		switch a.Key {
		case "class":
			e.Class = Class(parseName(t, classNames[:], v))
			continue
		case "next":
			e.Next = parse(t, v, time.ParseDuration)
			continue
		case "learned":
			e.LearnedOnly = parse(t, v, strconv.ParseBool)
			continue
		case "trouble":
			e.Trouble = parse(t, v, strconv.ParseBool)
			continue
		}
		field, ok := map[string]*int{
			"gen": &e.ClientGen, "epoch": &e.Epoch, "attempt": &e.Attempt, "outstanding": &e.Outstanding,
			"up": &e.Up, "failing": &e.Failing, "failed": &e.Failed, "pending": &e.Pending, "inflight": &e.InFlight,
			"ready": &e.Ready, "silent": &e.Silent, "suspect": &e.Suspect, "alive": &e.Alive,
		}[a.Key]
		if !ok {
			t.Fatalf("unknown argument %q", a.Key)
		}
		*field = parse(t, v, strconv.Atoi)
	}
	return e
}

// print tells where the machine stands and what the last step did.
func (s *scenario) print(actions []Action, moved bool) string {
	m := s.m
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", m.now)
	if moved {
		tr, _ := m.Transition()
		fmt.Fprintf(&b, "%s -> ", tr.From)
	}
	fmt.Fprintf(&b, "%s (%s, %s)", m.State(), m.Gate(), m.ConnGate())
	if m.Reason() != ClassNone {
		fmt.Fprintf(&b, " reason=%s outage=%d attempt=%d wait=%s", m.Reason(), m.Outage(), m.Attempt(), m.Wait())
		if m.Resumed() {
			b.WriteString(" resumed")
		}
	}
	if m.Stuck() {
		b.WriteString(" stuck")
	}
	if at, ok := m.Deadline(); ok {
		fmt.Fprintf(&b, "\n  deadline %s, in %s", at, at-m.now)
	}
	for _, a := range actions {
		fmt.Fprintf(&b, "\n  %s gen=%d", a.Kind, a.ClientGen)
		switch {
		case a.Kind == StartHeartbeat:
			fmt.Fprintf(&b, " attempt=%d", a.Attempt)
		case a.Kind == CheckSilence, a.Kind == ShutSilent:
			fmt.Fprintf(&b, " after=%s", a.After)
		case a.Why != RenewNone:
			fmt.Fprintf(&b, " because: %s", a.Why)
		}
	}
	return b.String() + "\n"
}

func parse[T any](t *testing.T, v string, f func(string) (T, error)) T {
	t.Helper()
	x, err := f(v)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func parseName(t *testing.T, names []string, v string) uint8 {
	t.Helper()
	for i, n := range names {
		if n == v {
			return uint8(i)
		}
	}
	t.Fatalf("%q is none of %v", v, names)
	return 0
}

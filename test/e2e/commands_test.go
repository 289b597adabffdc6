//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands are described in scenarios/README.md.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"kafka":       command((*scenario).kafka),
	"names":       command((*scenario).ownNames),
	"host":        command((*scenario).hostCommand),
	"registry":    command((*scenario).registryCommand),
	"log":         command((*scenario).logRecords),
	"chunk":       command((*scenario).chunk),
	"rate":        command((*scenario).rate),
	"pause":       command((*scenario).pause),
	"state":       command((*scenario).state),
	"expect-log":  command((*scenario).expectLog),
	"no-log":      command((*scenario).noLog),
	"delivered":   command((*scenario).delivered),
	"records":     command((*scenario).records),
	"audit":       command((*scenario).audit),
	"letters":     command((*scenario).letters),
	"answered":    command((*scenario).answered),
	"metric":      command((*scenario).metric),
	"resources":   command((*scenario).resources),
	"retries":     command((*scenario).retries),
	"rhythm":      command((*scenario).rhythm),
	"connections": command((*scenario).connections),
	"telemetry":   command((*scenario).telemetry),
	"schedule":    command((*scenario).schedule),
}

// command makes a method a command of testscript.
func command(do func(*scenario, *words) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command can't be negated")
		}
		s, ok := ts.Value(scenarioKey{}).(*scenario)
		if !ok {
			ts.Fatalf("there is no scenario")
		}
		w := &words{ts: ts, left: args}
		err := do(s, w)
		if err == nil {
			err = w.wrong
		}
		if err == nil && len(w.left) > 0 {
			err = fmt.Errorf("%q is not understood", w.left)
		}
		ts.Check(err)
	}
}

// words are the arguments of a command. What goes wrong is kept, so that a command can ask for all before it looks.
type words struct {
	ts    *testscript.TestScript
	left  []string
	wrong error
}

func (w *words) fail(format string, args ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf(format, args...)
	}
}

// next takes the first word.
func (w *words) next(what string) string {
	if len(w.left) == 0 {
		w.fail("%s is missing", what)
		return ""
	}
	word := w.left[0]
	w.left = w.left[1:]
	return word
}

// has takes a word, wherever it stands, and tells whether it was there.
func (w *words) has(word string) bool {
	i := slices.Index(w.left, word)
	if i >= 0 {
		w.left = slices.Delete(slices.Clone(w.left), i, i+1)
	}
	return i >= 0
}

// option takes a word and the one behind it, which is its value.
func (w *words) option(name, fallback string) string {
	i := slices.Index(w.left, name)
	if i < 0 {
		return fallback
	}
	if i+1 == len(w.left) {
		w.fail("the value of %s is missing", name)
		return fallback
	}
	value := w.left[i+1]
	w.left = slices.Delete(slices.Clone(w.left), i, i+2)
	return value
}

func (w *words) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		w.fail("%q is no number", text)
	}
	return n
}

func (w *words) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		w.fail("%q is no duration such as 500ms or 2s", text)
	}
	return d
}

// patience bounds what has no time of its own in the scenario: starts of Kafka, posts, questions to the host.
const patience = time.Minute

func patiently() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// checkTime is what a check may take when its time is over before it begins: what should be there must be there already.
const checkTime = 2 * time.Second

// within is the time that a check has, counted from the end of what was done last.
func (s *scenario) within(d time.Duration) (context.Context, context.CancelFunc) {
	deadline := s.fromTime.Add(d)
	if soon := time.Now().Add(checkTime); deadline.Before(soon) {
		deadline = soon
	}
	return context.WithDeadline(context.Background(), deadline)
}

// act does something to a Kafka or to the host: checks count from here.
func (s *scenario) act(do func(context.Context) error) error {
	ctx, cancel := patiently()
	defer cancel()
	if s.host != nil {
		s.fromLine = s.host.LogLines().Len()
	}
	err := do(ctx)
	s.fromTime = time.Now()
	return err
}

// pass is act for what leaves both alone: the lines of the log count from where they did.
func (s *scenario) pass(do func(context.Context) error) error {
	ctx, cancel := patiently()
	defer cancel()
	err := do(ctx)
	s.fromTime = time.Now()
	return err
}

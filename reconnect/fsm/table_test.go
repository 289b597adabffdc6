package fsm

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

// rewriting is datadriven's own flag, used here for doc.go as well.
func rewriting() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

func TestTable_IsInThePackageComment(t *testing.T) {
	var b strings.Builder
	for line := range strings.Lines(FormatTable()) {
		b.WriteString("//\t" + line)
	}
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	re := regexp.MustCompile(`(?s)(middle of its jitter\.\n//\n).*(package fsm\n)`)
	want := re.ReplaceAllString(string(source), "${1}"+b.String()+"${2}")
	if want == string(source) {
		return
	}
	if !rewriting() {
		t.Fatal("the table in doc.go is not what the machine does; if the change is meant, run go test ./reconnect/fsm -run TestTable -rewrite")
	}
	if err := os.WriteFile("doc.go", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every state must be met with every kind of event; this fails when a state or an event
// is added and the table does not try it.
func TestTable_TriesEveryPair(t *testing.T) {
	states, kinds := map[State]bool{}, map[EventKind]bool{}
	for _, s := range situations() {
		states[s.state] = true
		if got := s.machine().State(); got != s.state {
			t.Errorf("the path to %s (%s) ends in %s", s.state, s.when, got)
		}
	}
	for _, in := range inputs() {
		kinds[in.event.Kind] = true
	}
	if want := numStates - 1; len(states) != want { // Closed does nothing
		t.Errorf("the table starts from %d states, want %d", len(states), want)
	}
	if len(kinds) != numEvents {
		t.Errorf("the table tries %d kinds of events, want %d", len(kinds), numEvents)
	}
}

func TestNames(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{AllDown.String(), "all_down"},
		{State(200).String(), "unknown(200)"},
		{ClassAuthentication.String(), "authentication"},
		{Class(200).String(), "unknown(200)"},
		{Admit.String(), "admit"},
		{ConnSweep.String(), "sweep"},
		{IdleKeepalive.String(), "keepalive"},
		{ChunkArrived.String(), "chunk_arrived"},
		{EventKind(99).String(), "unknown(99)"},
		{FailOutstanding.String(), "fail_outstanding"},
		{RenewFiles.String(), "files changed"},
		{Renewal(99).String(), "unknown(99)"},
		{State(200).Gate().String(), "refuse"},
		{State(200).ConnGate().String(), "shut"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func TestWorse(t *testing.T) {
	order := []Class{
		ClassNone, ClassNetwork, ClassTimeout, ClassStalled, ClassResolve,
		ClassAuthorization, ClassTLS, ClassAuthentication, ClassFatal,
	}
	for i := range order {
		for j := range order {
			want := order[max(i, j)]
			if got := Worse(order[i], order[j]); got != want {
				t.Errorf("Worse(%s, %s) = %s, want %s", order[i], order[j], got, want)
			}
		}
	}
	for _, c := range []Class{ClassTopic, ClassRecord, ClassTransient, Class(200)} {
		if got := Worse(ClassNone, c); got != ClassNone {
			t.Errorf("%s became the reason of an outage", c)
		}
	}
}

func TestConfig_Validate(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	err := Config{BackoffMin: 10, BackoffMax: 5, StallTimeout: -1, RenewAfter: -1, IdlePolicy: 9}.Validate()
	for _, want := range []string{"BackoffMin 10ns is above BackoffMax 5ns", "StallTimeout -1ns is negative", "RenewAfter -1 is negative", "IdlePolicy unknown(9)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell %q", err, want)
		}
	}
	if d := DefaultConfig(); d.ConnectTimeout != d.ProbeTimeout || d.ConnectTimeout == 0 {
		t.Errorf("ConnectTimeout %s, ProbeTimeout %s", d.ConnectTimeout, d.ProbeTimeout)
	}
}

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

func TestParse_SaysWhatIsWrong(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", ""},
		{"-host-kind chost -down 3s", ""},
		{"-host-kind docker", "allowed: auto, chost, fluent-bit"},
		{"-rate 0", "allowed: 1 to 10000"},
		{"-after 10ms", "must be 1s at least"},
		{"more", `unexpected argument "more"`},
	} {
		var stderr bytes.Buffer
		_, err := parse(strings.Fields(test.args), &stderr)
		if got := stderr.String(); (err != nil) != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%q: got %v and %q, want %q", test.args, err, got, test.want)
		}
	}
}

func TestFind_SaysHowToGetWhatIsMissing(t *testing.T) {
	s, err := parse([]string{"-plugin", t.TempDir() + "/no.so"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := find(t.Context(), s); err == nil || !strings.Contains(err.Error(), "run: make build") {
		t.Errorf("got %v", err)
	}
}

func TestScreen_Status(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, begin: time.Now()}
	s.status(rig.Progress{State: "starting"}, 20, 0)
	s.status(rig.Progress{State: "starting"}, 20, 20)
	s.status(rig.Progress{State: "down", Attempt: 3, Next: time.Now().Add(1200 * time.Millisecond)}, 60, 20)
	s.status(rig.Progress{State: "down", Attempt: 3, Next: time.Now()}, 60, 20)
	s.status(rig.Progress{State: "up"}, 60, 61)
	want := []string{
		"starting - - 20 0 20", "up - - 20 20 0", "down 3 in 1.2s 60 20 40", "down 3 now 60 20 40", "up - - 60 61 0",
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %d lines:\n%s", len(lines), out.String())
	}
	for i, line := range lines {
		if got := strings.Join(strings.Fields(line)[1:], " "); got != want[i] {
			t.Errorf("line %d is %q, want %q", i, got, want[i])
		}
	}
}

func TestScreen_KeepsTheStatusBelowOtherLines(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, begin: time.Now(), terminal: true}
	s.status(rig.Progress{State: "up"}, 1, 1)
	s.happens("something")
	got := out.String()
	if !strings.HasPrefix(got, "\r\x1b[K") || !strings.Contains(got, "\r\x1b[K   0.0s  === something\n") || !s.due() {
		t.Errorf("got %q", got)
	}
}

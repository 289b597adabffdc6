package rig

import (
	"testing"
	"time"
)

// said is a line of the plugin, arriving a second after it was made.
func said(t *testing.T, text string) Message {
	t.Helper()
	at := time.Date(2026, 11, 29, 12, 0, 1, 0, time.Local)
	m, ok := ParseMessage(Line{At: at, Text: text})
	if !ok {
		t.Fatalf("not understood: %s", text)
	}
	return m
}

func TestParseMessage(t *testing.T) {
	m := said(t, `[2026/11/29 12:00:00.900] [error] [output:kafka_reconnect:kafka_reconnect.1] all brokers down, again`+
		` err="127.0.0.1:9: Connect failed: k=v \"x\"" state=all_down outage=2 next_in=96ms empty="" at=11:59:59.750`)
	if m.Level != "error" || m.Instance != "kafka_reconnect.1" || m.Text != "all brokers down, again" {
		t.Errorf("got %+v", m)
	}
	if got := m.Attrs["err"]; got != `127.0.0.1:9: Connect failed: k=v "x"` {
		t.Errorf("err is %q", got)
	}
	if m.Int("outage") != 2 || m.Duration("next_in") != 96*time.Millisecond || m.Attrs["empty"] != "" || m.Duration("none") != 0 {
		t.Errorf("attributes are %q", m.Attrs)
	}
	if want := time.Date(2026, 11, 29, 11, 59, 59, 750e6, time.Local); !m.Made.Equal(want) {
		t.Errorf("made at %s, want %s", m.Made, want)
	}
	if m := said(t, `[2026/11/29 12:00:00.900] [ info] [output:kafka_reconnect:kafka_reconnect.0] stopped`); m.Text != "stopped" ||
		!m.Made.Equal(time.Date(2026, 11, 29, 12, 0, 0, 900e6, time.Local)) {
		t.Errorf("got %+v", m)
	}
	for _, text := range []string{"", "[2026/11/29 12:00:00.900] [ info] [engine] started", "VIOLATION"} {
		if _, ok := ParseMessage(Line{Text: text}); ok {
			t.Errorf("%q was taken for a line of the plugin", text)
		}
	}
}

func TestParseMessage_MadeBeforeMidnight(t *testing.T) {
	m := said(t, `[2026/11/29 00:00:00.300] [ info] [output:kafka_reconnect:kafka_reconnect.0] stopped at=23:59:59.900`)
	if want := time.Date(2026, 11, 28, 23, 59, 59, 900e6, time.Local); !m.Made.Equal(want) {
		t.Errorf("made at %s, want %s", m.Made, want)
	}
}

func TestProgress_FollowsAnOutage(t *testing.T) {
	const head = `[2026/11/29 12:00:00.000] [ info] [output:kafka_reconnect:kafka_reconnect.0] `
	var p Progress
	for _, step := range []struct{ text, state string }{
		{"starting version=dev", "starting"},
		{"all brokers down state=all_down outage=1 reason=network next_in=100ms", "down"},
		{"reconnect attempt failed outage=1 attempt=1 reason=network next_in=200ms step=200ms", "down"},
		{"connected again outage=1 down_s=1.5 attempts=2", "up"},
	} {
		m := said(t, head+step.text)
		if !p.Take(m) || p.State != step.state {
			t.Errorf("after %q: %+v", step.text, p)
		}
		if m.Text == "reconnect attempt failed" && (p.Attempt != 1 || !p.Next.Equal(m.Made.Add(200*time.Millisecond))) {
			t.Errorf("after %q: %+v", step.text, p)
		}
	}
	if p.Take(said(t, head+"probing outage=1 attempt=1")) || p.State != "up" {
		t.Errorf("a line that is not about the state changed it: %+v", p)
	}
}

package rig

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// outage makes the messages and connects of a client that keeps to the rule: steps of 100ms, 200ms and 400ms, at most that.
func outage(begin time.Time, delays ...time.Duration) ([]Message, Connects) {
	const limit = 400 * time.Millisecond
	c := Connects{Addr: "a:1", Times: []time.Time{begin}}
	made := begin.Add(time.Millisecond).Truncate(time.Millisecond)
	step := 100 * time.Millisecond
	messages := []Message{{Made: made, Text: "all brokers down", Attrs: map[string]string{"next_in": step.String()}}}
	for i, delay := range delays {
		at := made.Add(clockStep + step + delay)
		c.Times = append(c.Times, at)
		made = at.Add(time.Millisecond).Truncate(time.Millisecond)
		step = min(2*step, limit)
		messages = append(messages, Message{Made: made, Text: "reconnect attempt failed", Attrs: map[string]string{
			"attempt": fmt.Sprint(i + 1), "next_in": min(step, limit).String(), "step": step.String(),
		}})
	}
	return messages, c
}

func TestSchedule_Check(t *testing.T) {
	begin := time.Date(2026, 11, 29, 12, 0, 0, 123456, time.Local)
	const soon = 10 * time.Millisecond
	tests := []struct {
		name  string
		spoil func([]Message, *Connects)
		want  string // part of the error, or empty
	}{
		{"as it should be", func([]Message, *Connects) {}, ""},
		{"too early", func(_ []Message, c *Connects) { c.Times[2] = c.Times[2].Add(-50 * time.Millisecond) }, "before the wait of 200ms was over"},
		{"twice", func(_ []Message, c *Connects) { c.Times = append(c.Times, c.Times[3].Add(-time.Millisecond)) }, "2 connects to a:1"},
		{"not at all", func(_ []Message, c *Connects) { c.Times = append(c.Times[:2:2], c.Times[3:]...) }, "attempt 2: no connect"},
		{"step stays", func(m []Message, _ *Connects) { m[2].Attrs["step"] = "200ms" }, "the step is 200ms, want 400ms"},
		{"wait above the maximum", func(m []Message, _ *Connects) { m[3].Attrs["next_in"] = "500ms" }, "the wait is 500ms, want 300ms to 400ms"},
		{"wait too short", func(m []Message, _ *Connects) { m[1].Attrs["next_in"] = "100ms" }, "the wait is 100ms, want 150ms to 300ms"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			messages, connects := outage(begin, soon, soon, soon, soon, soon)
			test.spoil(messages, &connects)
			s := Schedule{Min: 100 * time.Millisecond, Max: 400 * time.Millisecond, Lateness: time.Second, Until: begin.Add(time.Minute)}
			n, err := s.Check([]Connects{connects}, messages)
			switch {
			case n != 5:
				t.Errorf("%d rounds were compared, want 5: %v", n, err)
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("want an error with %q, got %v", test.want, err)
			}
		})
	}
}

func TestSchedule_LateConnectsAndOpenRounds(t *testing.T) {
	begin := time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)
	messages, connects := outage(begin, 0, 1200*time.Millisecond, 0)
	s := Schedule{Min: 100 * time.Millisecond, Max: 400 * time.Millisecond, Lateness: time.Second, Until: begin.Add(time.Minute)}
	if _, err := s.Check([]Connects{connects}, messages); err == nil || !strings.Contains(err.Error(), "1.2s after its due time") {
		t.Errorf("a late connect: %v", err)
	}
	s.Until = messages[1].Made.Add(10 * time.Millisecond)
	if n, err := s.Check([]Connects{connects}, messages); n != 1 || err != nil {
		t.Errorf("with one round over: %d, %v", n, err)
	}
	if _, err := s.Check(nil, messages[:1]); err == nil {
		t.Error("an outage without attempts is no error")
	}
}

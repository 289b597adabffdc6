package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// A screen is where the story appears: lines in a pipe, a last line that changes in place on a terminal.
type screen struct {
	out      io.Writer
	terminal bool
	begin    time.Time
	next     time.Time // when the next status is due
	standing bool      // a status stands in the last line of the terminal
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	return &screen{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, begin: time.Now()}
}

// redraw is how often a status changes on a terminal.
const redraw = 200 * time.Millisecond

// due tells whether it is time for a status.
func (s *screen) due() bool { return !time.Now().Before(s.next) }

// print writes a line above the status, if one stands there.
func (s *screen) print(line string) {
	if s.standing {
		_, _ = fmt.Fprint(s.out, "\r\x1b[K")
		s.standing = false
	}
	_, _ = fmt.Fprintln(s.out, line)
}

func (s *screen) title(text string) {
	s.print(text)
	s.print("")
	s.print("   time  plugin    attempt  next try  logged  delivered  waiting")
}

// at is a time as seconds since the begin.
func (s *screen) at(t time.Time) string { return fmt.Sprintf("%6.1fs", t.Sub(s.begin).Seconds()) }

// happens tells what the demo does or notices.
func (s *screen) happens(text string) {
	s.print(s.at(time.Now()) + "  === " + text)
	s.next = time.Now()
}

// width is where lines of the plugin are cut: the reason at the end of some is long.
const width = 150

// said shows a line of the plugin, with the time at which it was made.
func (s *screen) said(m rig.Message) {
	text := m.Text
	for _, key := range []string{"version", "librdkafka", "state", "outage", "attempt", "reason", "next_in", "step", "down_s", "attempts", "refused", "outstanding"} {
		if value, ok := m.Attrs[key]; ok {
			text += " " + key + "=" + value
		}
	}
	if len(text) > width {
		text = text[:width] + "…"
	}
	s.print(fmt.Sprintf("%s      [%s] %s", s.at(m.Made), m.Level, text))
}

// status shows where things stand.
func (s *screen) status(p rig.Progress, logged, delivered int) {
	state, attempt, next := p.State, "-", "-"
	switch {
	case state == "down":
		attempt = fmt.Sprint(p.Attempt)
		next = "now"
		if left := time.Until(p.Next); left > 50*time.Millisecond {
			next = fmt.Sprintf("in %.1fs", left.Seconds())
		}
	case state == "starting" && delivered > 0:
		state = "up" // only outages are told
	}
	line := fmt.Sprintf("%s  %-8s  %7s  %8s  %6d  %9d  %7d", s.at(time.Now()), state, attempt, next, logged, delivered, max(0, logged-delivered))
	if !s.terminal {
		s.next = time.Now().Add(tick).Truncate(look)
		s.print(line)
		return
	}
	s.next = time.Now().Add(redraw)
	_, _ = fmt.Fprint(s.out, "\r\x1b[K"+line)
	s.standing = true
}

// end is the last line.
func (s *screen) end(text string) {
	s.print("")
	s.print(strings.TrimSpace(text))
}

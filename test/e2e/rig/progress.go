package rig

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Message is a line of the plugin, taken apart.
type Message struct {
	// Made is when the plugin made it, which may be a second before it was printed.
	Made     time.Time
	Level    string            // error, warn, info, debug
	Instance string            // such as kafka_reconnect.0
	Text     string            // the constant part
	Attrs    map[string]string // what follows, key=value
}

var (
	pluginLine = regexp.MustCompile(`^\[([0-9/]+ [0-9:.]+)\] \[ *([a-z]+)\] \[output:kafka_reconnect:([^]]+)\] (.*)$`)
	attrStart  = regexp.MustCompile(` [a-z_]+=`)
)

// ParseMessage takes a line of the plugin apart; ok is false for any other line.
func ParseMessage(line Line) (m Message, ok bool) {
	match := pluginLine.FindStringSubmatch(line.Text)
	if match == nil {
		return m, false
	}
	m = Message{Made: line.At, Level: match[2], Instance: match[3], Text: match[4]}
	if at := attrStart.FindStringIndex(m.Text); at != nil {
		m.Attrs = parseAttrs(m.Text[at[0]+1:])
		m.Text = m.Text[:at[0]]
	}
	if printed, err := time.ParseInLocation("2006/01/02 15:04:05.000", match[1], time.Local); err == nil {
		m.Made = printed
	}
	if at, err := time.ParseInLocation("2006/01/02 15:04:05.000", m.Made.Format("2006/01/02 ")+m.Attrs["at"], time.Local); err == nil {
		if at.After(m.Made) { // midnight lies between the two
			at = at.AddDate(0, 0, -1)
		}
		m.Made = at
	}
	return m, true
}

// parseAttrs reads key=value pairs; a value may be quoted as Go quotes.
func parseAttrs(text string) map[string]string {
	attrs := map[string]string{}
	for text != "" {
		key, rest, found := strings.Cut(text, "=")
		if !found {
			break
		}
		value, after := rest, ""
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			after = rest[len(quoted):]
			value, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
		} else if i := strings.IndexByte(rest, ' '); i >= 0 {
			value, after = rest[:i], rest[i:]
		}
		attrs[strings.TrimSpace(key)] = value
		text = strings.TrimLeft(after, " ")
	}
	return attrs
}

// Duration reads an attribute that is a duration; 0 when it is none.
func (m Message) Duration(key string) time.Duration {
	d, _ := time.ParseDuration(m.Attrs[key]) // absent or odd: 0
	return d
}

// Int reads an attribute that is a number; 0 when it is none.
func (m Message) Int(key string) int {
	n, _ := strconv.Atoi(m.Attrs[key]) // absent or odd: 0
	return n
}

// Progress is where one instance of the plugin stands, as its log lines tell.
type Progress struct {
	// State is "starting", "down" or "up". Nothing tells of the first time that a broker is reached: an instance counts as
	// starting until its first outage.
	State   string
	Outage  int
	Attempt int
	// Next is when the next attempt is due, in an outage.
	Next   time.Time
	Reason string
}

// Take reads one message; it returns false when the message is not about the state.
func (p *Progress) Take(m Message) bool {
	switch m.Text {
	case "starting":
		*p = Progress{State: "starting"}
	case "all brokers down", "all brokers down again, nothing was acknowledged in between":
		*p = Progress{State: "down", Outage: m.Int("outage"), Reason: m.Attrs["reason"], Next: m.Made.Add(m.Duration("next_in"))}
	case "reconnect attempt failed":
		*p = Progress{State: "down", Outage: m.Int("outage"), Attempt: m.Int("attempt"), Reason: m.Attrs["reason"], Next: m.Made.Add(m.Duration("next_in"))}
	case "connected again":
		*p = Progress{State: "up", Outage: m.Int("outage"), Attempt: m.Int("attempts")}
	default:
		return false
	}
	return true
}

// Messages returns what an instance has said from one index of the log on; an empty name means all instances.
func (l *Log) Messages(from int, instance string) []Message {
	var messages []Message
	for _, line := range l.Since(from) {
		if m, ok := ParseMessage(line); ok && (instance == "" || m.Instance == instance) {
			messages = append(messages, m)
		}
	}
	return messages
}

// WaitState waits until the lines from one index on bring an instance into a state, and returns the message that tells so;
// p then says where it stands.
func (l *Log) WaitState(ctx context.Context, from int, instance string, p *Progress, state string) (Message, error) {
	line, err := l.lines.wait(ctx, from, func(line Line) bool {
		m, ok := ParseMessage(line)
		return ok && m.Instance == instance && p.Take(m) && p.State == state
	})
	m, _ := ParseMessage(line) // it was understood a moment ago
	return m, err
}

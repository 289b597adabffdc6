// Package flblog writes slog records as lines of Fluent Bit's log.
//
// A line that another thread than Fluent Bit's own prints through the host goes to
// standard error even when log_file is set. So a Relay queues every line, and the next
// call of Fluent Bit on one of its threads prints what is queued. When no such call comes
// within a second (an agent without traffic), the relay prints by itself: late in the
// right file is good, never is not.
package flblog

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Host is the log of the program that loaded us.
type Host interface {
	// Enabled tells whether a line of this level would be kept.
	Enabled(level slog.Level) bool
	// Print writes one line; it is called with the relay's lock held.
	Print(level slog.Level, line string)
}

const (
	// LevelTrace is Fluent Bit's level below debug.
	LevelTrace = slog.LevelDebug - 4

	maxQueued = 1000        // lines; beyond that the oldest are dropped and counted
	maxLine   = 3950        // bytes; the host cuts at 4 KB with its own prefix
	patience  = time.Second // how long a line waits for a thread of the host
	late      = 20 * time.Millisecond
)

// Relay queues lines for one instance of the plugin.
type Relay struct {
	host Host

	mu      sync.Mutex
	queue   []line
	dropped int
	timer   *time.Timer
	closed  bool
}

type line struct {
	level slog.Level
	text  string
	at    time.Time
}

// NewRelay returns an empty relay to the host.
func NewRelay(host Host) *Relay {
	return &Relay{host: host}
}

// Logger returns a logger whose lines begin with the prefix in square brackets.
func (r *Relay) Logger(prefix string) *slog.Logger {
	return slog.New(&handler{relay: r, prefix: "[" + prefix + "] "})
}

// Drain prints what is queued. Call it on threads of the host only.
func (r *Relay) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print()
}

// Close prints what is queued and makes every later line go out at once.
func (r *Relay) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print()
	r.closed = true
}

func (r *Relay) add(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.host.Print(l.level, l.text)
		return
	}
	if len(r.queue) == maxQueued {
		r.queue = append(r.queue[:0], r.queue[1:]...)
		r.dropped++
	}
	r.queue = append(r.queue, l)
	if r.timer == nil {
		r.timer = time.AfterFunc(patience, r.Drain)
	}
}

// print empties the queue; mu is held.
func (r *Relay) print() {
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	now := time.Now()
	for _, l := range r.queue {
		// The host stamps a line when it is printed; a reader needs to know when it was made.
		if now.Sub(l.at) > late {
			l.text += l.at.Format(" at=15:04:05.000")
		}
		r.host.Print(l.level, l.text)
	}
	r.queue = r.queue[:0]
	if r.dropped > 0 {
		r.host.Print(slog.LevelWarn, "[kafka_reconnect] "+strconv.Itoa(r.dropped)+" log lines were dropped")
		r.dropped = 0
	}
}

// handler formats records as "[prefix] message key=value …".
type handler struct {
	relay  *Relay
	prefix string
	attrs  string // already formatted, from WithAttrs
	group  string // "a.b." from WithGroup
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return h.relay.host.Enabled(level)
}

// Handle implements slog.Handler.
func (h *handler) Handle(_ context.Context, rec slog.Record) error {
	var b strings.Builder
	b.WriteString(h.prefix)
	b.WriteString(rec.Message)
	b.WriteString(h.attrs)
	rec.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, h.group, a)
		return true
	})
	text := b.String()
	if len(text) > maxLine {
		text = text[:maxLine] + "…"
	}
	h.relay.add(line{rec.Level, text, time.Now()})
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range attrs {
		appendAttr(&b, h.group, a)
	}
	c := *h
	c.attrs = b.String()
	return &c
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	c := *h
	c.group += name + "."
	return &c
}

func appendAttr(b *strings.Builder, group string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		for _, g := range v.Group() {
			appendAttr(b, group+a.Key+".", g)
		}
		return
	}
	b.WriteByte(' ')
	b.WriteString(group)
	b.WriteString(a.Key)
	b.WriteByte('=')
	s := v.String()
	if v.Kind() == slog.KindDuration {
		s = shortDuration(v.Duration())
	}
	if s == "" || strings.ContainsAny(s, " \"=\n\t\r") {
		s = strconv.Quote(s)
	}
	b.WriteString(s)
}

// shortDuration rounds to what a reader of a log needs.
func shortDuration(d time.Duration) string {
	if d >= time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

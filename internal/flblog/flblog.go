// Package flblog writes slog records as lines of Fluent Bit's log.
//
// A line that another thread than Fluent Bit's own prints through the host goes to
// standard error even when log_file is set. So a Relay queues every line, and the next
// call of Fluent Bit on one of its threads prints what is queued. When no such call comes
// within a second (an agent without traffic), the relay prints by itself: late in the
// right file is good, never is not.
//
// A relay outlives the instance of the host that it prints for: a hot reload makes a new
// one. Between the two it has no host, and keeps what comes up until it is bound again.
package flblog

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
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
	mu      sync.Mutex
	host    Host   // nil while there is none
	prefix  string // of every line, in square brackets
	queue   []line
	dropped int
	timer   *time.Timer
	closed  bool
	mask    *strings.Replacer // nil while there is nothing to hide
}

type line struct {
	level slog.Level
	text  string
	at    time.Time
}

// NewRelay returns an empty relay to the host. Its lines begin with the prefix in square
// brackets.
func NewRelay(host Host, prefix string) *Relay {
	r := &Relay{}
	r.Bind(host, prefix)
	return r
}

// Hide has every later line hold *** in place of the values, as they are or with the escapes of
// a quoted text. A library may print what it was given.
func (r *Relay) Hide(values ...string) {
	if len(values) == 0 {
		return
	}
	values = slices.Clone(values)
	for _, v := range values[:len(values):len(values)] {
		q := strconv.Quote(v)
		values = append(values, q[1:len(q)-1])
	}
	// Of two at the same place the longer one is meant.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, "***")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mask = strings.NewReplacer(pairs...)
}

// masked is a text without what is to be hidden.
func (r *Relay) masked(text string) string {
	r.mu.Lock()
	mask := r.mask
	r.mu.Unlock()
	if mask == nil {
		return text
	}
	return mask.Replace(text)
}

// Bind has the relay print through another host, or through none.
func (r *Relay) Bind(host Host, prefix string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host, r.prefix = host, "["+prefix+"] "
	if len(r.queue) > 0 && host != nil {
		r.schedule()
	}
}

// Unbind prints what is queued and forgets the host, which is about to end.
func (r *Relay) Unbind() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print()
	r.host = nil
}

// Logger returns the logger of the relay.
func (r *Relay) Logger() *slog.Logger { return slog.New(&handler{relay: r}) }

// enabled tells whether a line of this level would be kept. Without a host it is as with
// the host's default.
func (r *Relay) enabled(level slog.Level) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.host == nil {
		return standardError{}.Enabled(level)
	}
	return r.host.Enabled(level)
}

// Drain prints what is queued. Call it on threads of the host only.
func (r *Relay) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print()
}

// Close prints what is queued and makes every later line go out at once. Without a host,
// which none is bound to any more, they go to standard error.
func (r *Relay) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.host == nil {
		r.host = standardError{}
	}
	r.print()
	r.closed = true
}

func (r *Relay) add(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed && r.host != nil {
		r.host.Print(l.level, r.prefix+l.text)
		return
	}
	if len(r.queue) == maxQueued {
		r.queue = append(r.queue[:0], r.queue[1:]...)
		r.dropped++
	}
	r.queue = append(r.queue, l)
	r.schedule()
}

// schedule has what is queued printed in time; mu is held.
func (r *Relay) schedule() {
	if r.timer == nil && r.host != nil {
		r.timer = time.AfterFunc(patience, r.Drain)
	}
}

// print empties the queue; mu is held.
func (r *Relay) print() {
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if r.host == nil {
		return
	}
	now := time.Now()
	for _, l := range r.queue {
		// The host stamps a line when it is printed; a reader needs to know when it was made.
		if now.Sub(l.at) > late {
			l.text += l.at.Format(" at=15:04:05.000")
		}
		r.host.Print(l.level, r.prefix+l.text)
	}
	r.queue = r.queue[:0]
	if r.dropped > 0 {
		r.host.Print(slog.LevelWarn, r.prefix+strconv.Itoa(r.dropped)+" log lines were dropped")
		r.dropped = 0
	}
}

// standardError is the host of an instance that ends when Fluent Bit has ended: its lines look
// like Fluent Bit's.
type standardError struct{}

// Enabled implements Host with Fluent Bit's default.
func (standardError) Enabled(level slog.Level) bool { return level >= slog.LevelInfo }

// Print implements Host.
func (standardError) Print(level slog.Level, text string) {
	name := strings.ToLower(level.String())
	fmt.Fprintf(os.Stderr, "[%s] [%5s] %s\n", time.Now().Format("2006/01/02 15:04:05.000000000"), name, text)
}

// handler formats records as "[prefix] message key=value …".
type handler struct {
	relay *Relay
	attrs string // already formatted, from WithAttrs
	group string // "a.b." from WithGroup
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return h.relay.enabled(level)
}

// Handle implements slog.Handler.
func (h *handler) Handle(_ context.Context, rec slog.Record) error {
	var b strings.Builder
	b.WriteString(rec.Message)
	b.WriteString(h.attrs)
	rec.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, h.group, a)
		return true
	})
	text := h.relay.masked(b.String())
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

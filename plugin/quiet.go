package plugin

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// quietPeriod is how often one kind of line may appear.
const quietPeriod = time.Minute

// quiet writes each kind of line at most once a minute, so that a fault that comes with every
// chunk does not bury the log. What came in between is told by one more line when the minute
// is over, or at the end.
type quiet struct {
	mu    sync.Mutex
	log   *slog.Logger
	kinds map[string]*quietKind // by message
}

// quietKind is a kind of line that was written less than a minute ago.
type quietKind struct {
	more  int // cases since
	args  []any
	timer *time.Timer // ends the minute
}

func newQuiet(log *slog.Logger) *quiet {
	return &quiet{log: log, kinds: map[string]*quietKind{}}
}

// moveTo has the lines go to another log: another instance goes on for the one that had it.
func (q *quiet) moveTo(log *slog.Logger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.log = log
}

// warn writes the line, or counts n cases of it. The kind is the message: a constant text.
func (q *quiet) warn(msg string, n int, args ...any) {
	q.mu.Lock()
	if k := q.kinds[msg]; k != nil {
		k.more += n
		k.args = own(args)
		q.mu.Unlock()
		return
	}
	q.kinds[msg] = &quietKind{timer: time.AfterFunc(quietPeriod, func() { q.over(msg) })}
	q.mu.Unlock()
	q.write(msg, n, args)
}

// own copies the texts of attributes that are kept: a tag is a view of the host's memory, which
// dies with the flush.
func own(args []any) []any {
	kept := slices.Clone(args)
	for i, a := range kept {
		if text, ok := a.(string); ok {
			kept[i] = strings.Clone(text)
		}
	}
	return kept
}

// over ends the minute of a kind, or begins another one with what came in it.
func (q *quiet) over(msg string) {
	q.mu.Lock()
	k := q.kinds[msg]
	if k == nil { // close was quicker
		q.mu.Unlock()
		return
	}
	n, args := k.more, k.args
	if n == 0 {
		delete(q.kinds, msg)
	} else {
		k.more, k.args = 0, nil
		k.timer.Reset(quietPeriod)
	}
	q.mu.Unlock()
	if n > 0 {
		q.write(msg, n, args)
	}
}

// close writes what is left.
func (q *quiet) close() {
	q.mu.Lock()
	kinds := q.kinds
	q.kinds = map[string]*quietKind{}
	q.mu.Unlock()
	for msg, k := range kinds {
		k.timer.Stop()
		if k.more > 0 {
			q.write(msg, k.more, k.args)
		}
	}
}

// write writes a line for n cases; the attributes are those of the last one.
func (q *quiet) write(msg string, n int, args []any) {
	q.mu.Lock()
	log := q.log
	q.mu.Unlock()
	log.Warn(msg, append(slices.Clone(args), "count", n)...) //nolint:sloglint // the text is a constant at every call of warn
}

package plugin

import (
	"log/slog"
	"sync"
	"time"
)

// quietPeriod is how often one kind of line may appear.
const quietPeriod = time.Minute

// quiet writes each kind of line at most once a minute and counts what it left out, so
// that a fault that comes with every chunk does not bury the log.
type quiet struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*quietKind
}

type quietKind struct {
	last time.Time
	more int
}

func newQuiet(log *slog.Logger) *quiet {
	return &quiet{log: log, kinds: map[string]*quietKind{}}
}

// warn writes the line, or counts n cases of it. The kind is the message: a constant text.
func (q *quiet) warn(msg string, n int, args ...any) {
	q.mu.Lock()
	k := q.kinds[msg]
	if k == nil {
		k = &quietKind{}
		q.kinds[msg] = k
	}
	now := time.Now()
	if !k.last.IsZero() && now.Sub(k.last) < quietPeriod {
		k.more += n
		q.mu.Unlock()
		return
	}
	more := k.more
	k.last, k.more = now, 0
	q.mu.Unlock()
	args = append(args, "count", n)
	if more > 0 {
		args = append(args, "not_logged_since", more)
	}
	q.log.Warn(msg, args...) //nolint:sloglint // the text is a constant at every call of warn
}

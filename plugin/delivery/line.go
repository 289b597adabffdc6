package delivery

import (
	"slices"
	"sync"
	"time"
)

// Line keeps the order of chunks that had to be refused: a later chunk may not pass before
// one that came first and was turned away for want of room. Its lock is held by the caller
// over Turn and what follows from it.
type Line struct {
	sync.Mutex
	patience time.Duration
	waiting  []place
}

// place is a chunk that was turned away.
type place struct {
	key  Key
	seen time.Time
}

// NewLine returns an empty line. A chunk that has not come back for patience is not waited
// for any longer: Fluent Bit has given it up, or waits very long between its attempts.
func NewLine(patience time.Duration) *Line { return &Line{patience: patience} }

// Turn tells whether the chunk may pass now. If it may not, it is in the line from now on.
// The number is how many chunks before it were given up.
func (l *Line) Turn(k Key) (may bool, skipped int) {
	now := time.Now()
	for len(l.waiting) > 0 && now.Sub(l.waiting[0].seen) > l.patience && l.waiting[0].key != k {
		l.waiting = l.waiting[1:]
		skipped++
	}
	if len(l.waiting) == 0 || l.waiting[0].key == k {
		return true, skipped
	}
	l.Refused(k)
	return false, skipped
}

// Refused notes that a chunk was turned away.
func (l *Line) Refused(k Key) {
	now := time.Now()
	if i := slices.IndexFunc(l.waiting, func(p place) bool { return p.key == k }); i >= 0 {
		l.waiting[i].seen = now
		return
	}
	l.waiting = append(l.waiting, place{k, now})
}

// Passed notes that the chunk whose turn it was is in.
func (l *Line) Passed(k Key) {
	if len(l.waiting) > 0 && l.waiting[0].key == k {
		l.waiting = l.waiting[1:]
	}
}

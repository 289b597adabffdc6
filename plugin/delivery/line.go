package delivery

import (
	"slices"
	"sync"
	"time"
)

// Line keeps the order of chunks when some had to be turned away for want of room: what came
// later waits in the courier until what came before it is back. Its lock is held by the
// caller from Place to Refused or Passed.
type Line struct {
	sync.Mutex
	patience time.Duration
	courier  *Courier
	skipped  func(n int)

	last   uint64 // number of the last place
	places []place
	timer  *time.Timer // ends the wait for the first one
	closed bool
}

// place is a chunk that was turned away, or one that is in and came after such a one.
type place struct {
	key     Key
	number  uint64
	seen    time.Time
	receipt *Receipt // nil: turned away
}

// Place is where a chunk stands.
type Place struct {
	// First tells that nothing before it is missing. Awaited tells in addition that it was turned
	// away before and others wait for it: it is to be taken even if there is no room.
	First, Awaited bool
	number         uint64
}

// NewLine returns an empty line in front of a courier. A chunk that has not come back for
// patience is not waited for any longer: Fluent Bit has given it up, or waits very long
// between its attempts. Skipped is told how many those are; it must not block.
func NewLine(patience time.Duration, c *Courier, skipped func(n int)) *Line {
	return &Line{patience: patience, courier: c, skipped: skipped}
}

// Place returns the place of a chunk that is not in: the one that it has, or the next.
func (l *Line) Place(k Key) Place {
	l.skip()
	if i := l.find(k); i >= 0 {
		return Place{First: i == 0, Awaited: i == 0, number: l.places[i].number}
	}
	l.last++
	return Place{First: len(l.places) == 0, number: l.last}
}

// Has tells whether the chunk was turned away and has a place.
func (l *Line) Has(k Key) bool {
	l.Lock()
	defer l.Unlock()
	return l.find(k) >= 0
}

// find is the index of the chunk among those that were turned away, or -1.
func (l *Line) find(k Key) int {
	return slices.IndexFunc(l.places, func(p place) bool { return p.key == k && p.receipt == nil })
}

// Refused notes that the chunk was turned away.
func (l *Line) Refused(k Key, at Place) {
	now := time.Now()
	if i := l.find(k); i >= 0 {
		l.places[i].seen = now
	} else {
		l.places = append(l.places, place{key: k, number: at.number, seen: now})
	}
	l.arm()
}

// Passed notes that the chunk is in, or with a nil receipt that there is nothing in it. If it
// was first, all go on that stand behind it without a gap.
func (l *Line) Passed(k Key, at Place, r *Receipt) {
	i := l.find(k)
	switch {
	case i >= 0 && r == nil:
		l.places = slices.Delete(l.places, i, i+1)
	case i >= 0:
		l.places[i].receipt = r
	case r != nil && len(l.places) > 0:
		l.places = append(l.places, place{key: k, number: at.number, receipt: r})
	}
	l.advance()
	l.arm()
}

// advance lets go on what has nothing missing before it.
func (l *Line) advance() {
	for len(l.places) > 0 && l.places[0].receipt != nil {
		l.courier.release(l.places[0].receipt)
		l.places = l.places[1:]
	}
}

// skip gives up those at the front that have not come back.
func (l *Line) skip() {
	n := 0
	for len(l.places) > 0 && l.places[0].receipt == nil && time.Since(l.places[0].seen) >= l.patience {
		l.places = l.places[1:]
		n++
		l.advance()
	}
	if n > 0 {
		l.skipped(n)
	}
}

// arm sets the timer for the first one, if that is missing.
func (l *Line) arm() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if len(l.places) > 0 && l.places[0].receipt == nil && !l.closed {
		l.timer = time.AfterFunc(time.Until(l.places[0].seen.Add(l.patience)), l.expire)
	}
}

func (l *Line) expire() {
	l.Lock()
	defer l.Unlock()
	l.skip()
	l.arm()
}

// Close ends the timer.
func (l *Line) Close() {
	l.Lock()
	defer l.Unlock()
	l.closed = true
	l.arm()
}

package delivery

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// errFull: the client took nothing of a part.
var errFull = errors.New("delivery: the queue of the client is full")

// queueFull is what is told of a message that is larger than the client's whole queue, in the number of
// librdkafka.
var queueFull = reconnect.Failure{Class: fsm.ClassTransient, Code: -184, Text: "the queue of the client is too small for the record", Refused: true}

// maxUnfit is how often a part is offered to a client that holds nothing before its first message
// gives way, as it is larger than the whole queue. Once tells nothing: a client makes room only
// some time after it has reported.
const maxUnfit = 3

// full tells of a client whose queue is full, because its configuration bounds it: nothing goes out
// until the client has reported something. That is no failure of a record.
type full struct {
	is    bool
	until time.Time // when to try in any case, as no report is to come; else zero
}

// now tells whether nothing may go out at this moment.
func (f *full) now(now time.Time) bool {
	if f.is && !f.until.IsZero() && !now.Before(f.until) {
		*f = full{}
	}
	return f.is
}

// foundFull notes that the client took nothing of a part, which it has no longer.
func (c *Courier) foundFull(s Sender, p *part) {
	if c.sender != s {
		return
	}
	c.full = full{is: true}
	if len(c.hands) == 0 {
		p.unfit++
		c.full.until = time.Now().Add(againMin)
	}
}

// cut has what the client has left out of a part wait in front of all others.
func (c *Courier) cut(s Sender, p *part, taken int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full.is = c.full.is || c.sender == s // until p is reported, at the latest
	p.receipt.pieces = true
	// In halves if it is much more than was taken: what is left out again and again is copied each time.
	middle := p.messages
	if rest := p.messages - taken; rest > 2*taken {
		middle = taken + rest/2
	}
	halves := p.split(upTo(taken, middle), upTo(middle, p.messages))
	var size int64
	for _, q := range slices.Backward(halves) {
		size += q.size
		q.alone, q.probe = p.alone, p.probe
		c.putBack(q)
	}
	c.shrink(p, taken, size)
}

// shrink takes all but the first messages out of a part in the client's hands, which wait as parts of
// that size.
func (c *Courier) shrink(p *part, taken int, size int64) {
	p.messages = taken
	if p.index != nil {
		p.index = p.index[:taken]
	}
	if p.origin != nil {
		p.origin = p.origin[:taken]
	}
	freed := min(size, p.size)
	p.size -= freed
	c.queued += size - freed
	if !p.sent.IsZero() {
		c.window.out -= freed
	}
}

// giveWay lets all others pass a message that does not fit into the client's queue, and tries it from
// time to time.
func (c *Courier) giveWay(p *part) {
	c.mu.Lock()
	c.queued -= p.size
	parts := p.split([]int{0}, upTo(1, p.messages))
	for _, q := range parts {
		c.queued += q.size
	}
	first := parts[0]
	first.unfit, first.due = p.unfit, time.Now().Add(againMax)
	c.delay(first)
	c.returned = slices.Insert(c.returned, 0, parts[1:]...)
	c.full = full{}
	o := c.o
	c.mu.Unlock()
	o.Trouble(Trouble{Tag: p.receipt.tag, Topic: first.topics[0], Count: 1, Failure: queueFull})
}

// comeBack has a part wait that is to be sent again, until it is due if it has a time. What follows it in a
// chunk that was handed over in pieces keeps its place behind it.
func (c *Courier) comeBack(p *part) {
	pieces := []*part{p}
	if p.receipt.pieces {
		take := func(q *part) bool {
			same := q.receipt == p.receipt && (q.letters == nil) == (p.letters == nil)
			if same {
				pieces = append(pieces, q)
			}
			return same
		}
		c.returned, c.ready = slices.DeleteFunc(c.returned, take), slices.DeleteFunc(c.ready, take)
		c.delayed = slices.DeleteFunc(c.delayed, take)
		slices.SortStableFunc(pieces, func(a, b *part) int { return cmp.Compare(a.at(0), b.at(0)) })
	}
	last := slices.MaxFunc(pieces, func(a, b *part) int { return a.due.Compare(b.due) }).due
	if last.IsZero() {
		for _, q := range pieces {
			c.enqueue(&c.returned, q)
		}
		return
	}
	for _, q := range pieces {
		q.due = last
	}
	c.delay(pieces...)
}

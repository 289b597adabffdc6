package delivery

import (
	"slices"
	"time"

	"out_kafka_reconnect/reconnect"
)

// messageOverhead is what a message needs in the client's hands besides key and value: 250 bytes,
// measured, of which librdkafka's own structure is most.
const messageOverhead = 256

// sizeOf is what a batch counts against the limit, in bytes.
func sizeOf(b *reconnect.Batch) int64 {
	return int64(len(b.Data)) + messageOverhead*int64(len(b.Messages))
}

// part is some messages of one receipt that travel together: a whole chunk at first, what
// is left of it later.
type part struct {
	receipt  *Receipt
	batch    *reconnect.Batch // nil while the client has it
	messages int
	index    []int    // of each message in its chunk; nil means 0, 1, 2, …
	topics   []string // of the messages
	size     int64
	// alone: to be sent while no other message for its topic is in the client's hands.
	alone bool
	// probe: sent to find out whether its topic works again.
	probe bool
	// letters is set for copies that go to the dead-letter topic; origin lists the messages of the
	// chunk that they stand for, nil if those are entries without a message.
	letters any
	origin  []int
	// sent is when the pump handed the part over; zero if the flush itself did.
	sent time.Time
	// tries counts how often the messages came back; due is when to send them again.
	tries int
	due   time.Time
	// unfit counts how often the client's queue was full for the part though it held nothing.
	unfit int
}

func newPart(r *Receipt, b *reconnect.Batch, index []int) *part {
	return &part{receipt: r, batch: b, messages: len(b.Messages), index: index, topics: slices.Clone(b.Topics), size: sizeOf(b)}
}

// inHands notes that the client gets the part, or has it no longer.
func (p *part) inHands(gets bool) {
	switch {
	case p.letters != nil: // they are no messages of the chunk
	case gets:
		p.receipt.lent = append(p.receipt.lent, p)
	default:
		p.receipt.lent = slices.DeleteFunc(p.receipt.lent, func(q *part) bool { return q == p })
	}
}

// at is the index in the chunk of the i-th message of the part.
func (p *part) at(i int) int {
	if p.index == nil {
		return i
	}
	return p.index[i]
}

// chunkIndexes lists the messages by their index in the chunk.
func (p *part) chunkIndexes() []int {
	if p.index != nil {
		return p.index
	}
	return upTo(0, p.messages)
}

// standsFor lists the messages of the chunk that are open because of the part; nil if those are
// entries without a message.
func (p *part) standsFor() []int {
	if p.letters != nil {
		return p.origin
	}
	return p.chunkIndexes()
}

// rejected turns a part that is in no list into a Rejected whose failures say nothing yet but the
// index.
func (p *part) rejected() Rejected {
	rej := Rejected{
		Tag: p.receipt.tag, Batch: p.batch, Failures: make([]reconnect.Failure, p.messages), Letters: p.letters,
		receipt: p.receipt, count: p.messages, size: p.size, origin: p.origin,
	}
	for i := range rej.Failures {
		rej.Failures[i].Index = p.at(i)
	}
	return rej
}

// needed lists the messages of the chunk that must be supplied again when the bytes of the
// part are given up; nil if that can't be done.
func (p *part) needed() []int {
	if p.receipt.owned {
		return nil
	}
	return p.standsFor()
}

// pick makes a part of some messages of a batch that holds those of the part, by position
// in the part and in the batch.
func (p *part) pick(b *reconnect.Batch, inPart, inBatch []int) *part {
	index := make([]int, len(inPart))
	for i, x := range inPart {
		index[i] = p.at(x)
	}
	q := newPart(p.receipt, b.Pick(inBatch), index)
	if p.origin != nil {
		for _, x := range inPart {
			q.origin = append(q.origin, p.origin[x])
		}
	}
	q.letters, q.tries = p.letters, p.tries
	return q
}

// split makes parts of the part's messages, one for each list of positions.
func (p *part) split(lists ...[]int) []*part {
	parts := make([]*part, 0, len(lists))
	for _, l := range lists {
		if len(l) > 0 {
			parts = append(parts, p.pick(p.batch, l, l))
		}
	}
	return parts
}

// upTo lists the numbers from first to before end.
func upTo(first, end int) []int {
	out := make([]int, 0, end-first)
	for i := first; i < end; i++ {
		out = append(out, i)
	}
	return out
}

// topicOf is the topic of a message of a batch.
func topicOf(b *reconnect.Batch, i int) string { return b.Topics[b.Messages[i].Topic] }

package rig

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"out_kafka_reconnect/test/e2e/audit"
)

// Topic is the topic that scenarios write to.
const Topic = "app"

// A Tally gives the records of a scenario their numbers, from 1, and keeps account of them over all runs of a host. Any
// goroutine may use it.
type Tally struct {
	mu       sync.Mutex
	last     int64            // guarded by mu; the last number given out
	numbers  map[int64]state  // guarded by mu
	accepted int              // guarded by mu
	sent     map[int64]string // guarded by mu; the destination of records that are not for Topic
	history  []Mark           // guarded by mu
	chunks   map[int64]int64  // guarded by mu; records of each chunk that the host has told of
}

// A Mark says how many records the host had accepted at a time.
type Mark struct {
	At       time.Time
	Accepted int
}

// state is what is known of a number.
type state uint8

const (
	unsure   state = iota + 1 // sent, but the host died before it answered
	accepted                  // the host has said that it has the record
)

// NewTally returns an empty one.
func NewTally() *Tally {
	return &Tally{numbers: map[int64]state{}, sent: map[int64]string{}, chunks: map[int64]int64{}}
}

// take gives out n numbers.
func (t *Tally) take(n int) (first, last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first = t.last + 1
	t.last += int64(n)
	return first, t.last
}

// accept notes that the host has these records. Saying so again changes nothing.
func (t *Tally) accept(first, last int64) { t.set(first, last, accepted) }

// doubt notes that the host may have these records; what was accepted stays so.
func (t *Tally) doubt(first, last int64) { t.set(first, last, unsure) }

func (t *Tally) set(first, last int64, s state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, last)
	for n := first; n <= last; n++ {
		if t.numbers[n] >= s {
			continue
		}
		t.numbers[n] = s
		if s == accepted {
			t.accepted++
		}
	}
	if n := len(t.history); t.accepted > 0 && (n == 0 || t.history[n-1].Accepted < t.accepted) {
		t.history = append(t.history, Mark{At: time.Now(), Accepted: t.accepted})
	}
}

// History tells how the number of accepted records grew. The C host tells of a rate once a second.
func (t *Tally) History() []Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.history)
}

// chunk notes how many records a chunk holds.
func (t *Tally) chunk(id, records int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chunks[id] = records
}

// ChunkEnds returns the last number of each chunk, in order. It is nil unless the host has told of every chunk and its
// records are those with the numbers from 1 to the last accepted one: so not after a kill, and not from Fluent Bit.
func (t *Tally) ChunkEnds() []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ends []int64
	var end int64
	for _, id := range slices.Sorted(maps.Keys(t.chunks)) {
		end += t.chunks[id]
		ends = append(ends, end)
	}
	if end != int64(t.accepted) || end != t.last {
		return nil
	}
	return ends
}

// Aside is the destination of records that are to arrive in no topic.
const Aside = "-"

// send notes where records are to arrive, if that is not Topic.
func (t *Tally) send(first, last int64, destination string) {
	if destination == "" || destination == Topic {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := first; n <= last; n++ {
		t.sent[n] = destination
	}
}

// Accepted is how many records the host has taken.
func (t *Tally) Accepted() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.accepted
}

// expected are the numbers that were accepted and are to arrive in a topic. A topic that nobody has sent records to, other
// than Topic, is one that gets a copy of what Topic gets.
func (t *Tally) expected(topic string) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		named := slices.Contains(slices.Collect(maps.Values(t.sent)), topic)
		for n, s := range t.numbers {
			destination, ok := t.sent[n]
			if s == accepted && (ok && destination == topic || !ok && !named) && !yield(n) {
				return
			}
		}
	}
}

// Audit reads Topic of a broker that is up and compares it with the tally. The error says what was lost, doubled or is
// there though nobody sent it. Records that the host may or may not have taken are right either way, but not twice.
func (t *Tally) Audit(ctx context.Context, b Broker) (*audit.Result, error) {
	return t.AuditTopic(ctx, b, Topic)
}

// AuditTopic is Audit for another topic.
func (t *Tally) AuditTopic(ctx context.Context, b Broker, topic string) (*audit.Result, error) {
	res, err := t.Compare(ctx, audit.Options{Brokers: b.AuditAddrs(), Topic: topic})
	if err != nil {
		return res, err
	}
	return res, res.Err()
}

// Compare is Audit for any topic; only a topic that can't be read is an error.
func (t *Tally) Compare(ctx context.Context, opts audit.Options) (*audit.Result, error) {
	opts.Expected = t.expected(opts.Topic)
	res, err := audit.Read(ctx, opts)
	if err != nil {
		return res, err
	}
	t.mu.Lock()
	for n := range res.Delivered {
		if t.numbers[n] == unsure {
			res.Stray--
		}
	}
	t.mu.Unlock()
	return res, nil
}

// WaitDelivered waits until n different records are in a topic.
func WaitDelivered(ctx context.Context, b Broker, topic string, n int) error {
	if n <= 0 {
		return errors.New("waiting for deliveries: the number must be above 0")
	}
	_, err := audit.WaitFor(ctx, audit.Options{Brokers: b.AuditAddrs(), Topic: topic}, n)
	return err
}

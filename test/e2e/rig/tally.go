package rig

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"

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
}

// state is what is known of a number.
type state uint8

const (
	unsure   state = iota + 1 // sent, but the host died before it answered
	accepted                  // the host has said that it has the record
)

// NewTally returns an empty one.
func NewTally() *Tally { return &Tally{numbers: map[int64]state{}, sent: map[int64]string{}} }

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
	res, err := audit.Read(ctx, audit.Options{Brokers: b.AuditAddrs(), Topic: topic, Expected: t.expected(topic)})
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
	return res, res.Err()
}

// WaitDelivered waits until n different records are in a topic.
func WaitDelivered(ctx context.Context, b Broker, topic string, n int) error {
	if n <= 0 {
		return errors.New("waiting for deliveries: the number must be above 0")
	}
	_, err := audit.WaitFor(ctx, audit.Options{Brokers: b.AuditAddrs(), Topic: topic}, n)
	return err
}

package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Options says what is read. Brokers and Topic are needed.
type Options struct {
	// Brokers are bootstrap addresses.
	Brokers []string
	// Topic is the topic to read.
	Topic string
	// Field is the key of the number in a value that is a JSON object. Empty means "seq".
	Field string
	// Extract replaces Field for values that are not JSON.
	Extract func(*kgo.Record) (int64, error)
	// Expected is the set of numbers that should be there, each once; Range makes one. Nil means that nothing is
	// expected, and then nothing is lost.
	Expected iter.Seq[int64]
	// Visit is called for each record with a number, in the order of offsets in each partition.
	Visit func(number int64, record *kgo.Record)
	// Client is for TLS and authentication.
	Client []kgo.Opt
}

// Range yields the numbers from first to last, both included.
func Range(first, last int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for n := first; n <= last; n++ {
			if !yield(n) {
				return
			}
		}
	}
}

// Read reads the topic from its first record to the end it has now. When ctx ends first, the result holds what was read
// until then and the error says how far that was.
func Read(ctx context.Context, opts Options) (*Result, error) {
	r, err := newReader(opts)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.findBounds(ctx); err != nil {
		return r.result(), fmt.Errorf("reading the bounds of topic %q: %w", opts.Topic, err)
	}
	for !r.reachedEnd() {
		if err := r.poll(ctx); err != nil {
			return r.result(), fmt.Errorf("reading topic %q, %d records so far: %w", opts.Topic, r.records, err)
		}
	}
	return r.result(), nil
}

// WaitFor reads the topic until it holds n different numbers. It does not go on to the end, and so it may not see copies
// that come later: judge with Read once everything has settled. The topic need not exist yet.
func WaitFor(ctx context.Context, opts Options, n int) (*Result, error) {
	r, err := newReader(opts)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for len(r.delivered) < n {
		if err := r.poll(ctx); err != nil {
			return r.result(), fmt.Errorf("waiting for %d numbers in topic %q, have %d: %w",
				n, opts.Topic, len(r.delivered), err)
		}
	}
	return r.result(), nil
}

// A Result is what a topic holds.
type Result struct {
	// Topic is the topic that was read.
	Topic string
	// Records is how many records were read, copies and unreadable ones included.
	Records int
	// Delivered maps each number to how often it is there.
	Delivered map[int64]int
	// Lost are the expected numbers that are not there, in order.
	Lost []int64
	// Doubled maps each number that is there more than once to how often it is there.
	Doubled map[int64]int
	// Late are the numbers whose first copy stands behind a larger number in its partition, in the order of partitions
	// and offsets. The first copy is the one in the lowest partition, then at the lowest offset, so a copy alone is
	// never late.
	Late []int64
	// Stray is how many different numbers are there that were not expected.
	Stray int
	// Unreadable describes records without a number, the first few of them.
	Unreadable []string
	// Unreadables is how many records have no number.
	Unreadables int
	// FirstAppend and LastAppend are when the broker appended the first and the last record. They are zero when the
	// topic does not say so: it needs message.timestamp.type LogAppendTime, or AppendTime on an embedded broker.
	FirstAppend, LastAppend time.Time
	// Partitions says what each partition holds, in order.
	Partitions []Partition
}

// A Partition is the part of a Result that is about one partition.
type Partition struct {
	ID int32
	// Records is how many records were read from it.
	Records int
	// Next is the offset behind the last record that was read.
	Next int64
}

// result sums up what was read so far.
func (r *reader) result() *Result {
	res := &Result{
		Topic:       r.opts.Topic,
		Records:     r.records,
		Delivered:   r.delivered,
		Doubled:     map[int64]int{},
		Unreadable:  r.unreadable,
		Unreadables: r.unreadables,
		FirstAppend: r.firstAppend,
		LastAppend:  r.lastAppend,
	}
	for number, copies := range r.delivered {
		if copies > 1 {
			res.Doubled[number] = copies
		}
	}
	res.Late = r.late()
	if r.opts.Expected != nil {
		res.Lost, res.Stray = compare(r.opts.Expected, r.delivered)
	}
	for _, id := range r.ids() {
		p := r.partitions[id]
		res.Partitions = append(res.Partitions, Partition{ID: id, Records: p.records, Next: p.next})
	}
	return res
}

// late goes through the partitions again, one after the other, since the order in which a client happens to receive from
// several partitions means nothing.
func (r *reader) late() []int64 {
	var late []int64
	seen := make(map[int64]bool, len(r.delivered))
	for _, id := range r.ids() {
		var largest int64
		for i, number := range r.partitions[id].numbers {
			first := !seen[number]
			seen[number] = true
			switch {
			case i == 0 || number > largest:
				largest = number
			case first:
				late = append(late, number)
			}
		}
	}
	return late
}

// compare returns the expected numbers that were not delivered and how many were delivered without being expected.
func compare(expected iter.Seq[int64], delivered map[int64]int) (lost []int64, stray int) {
	found := make(map[int64]bool, len(delivered))
	for number := range expected {
		if delivered[number] > 0 {
			found[number] = true
		} else {
			lost = append(lost, number)
		}
	}
	slices.Sort(lost)
	return slices.Compact(lost), len(delivered) - len(found)
}

// Err returns nil when every expected number is there once and nothing else is. Late records are no error: whether the
// order matters is up to the test.
func (r *Result) Err() error {
	if len(r.Lost)+len(r.Doubled)+r.Stray+r.Unreadables == 0 {
		return nil
	}
	return errors.New("auditing " + r.String())
}

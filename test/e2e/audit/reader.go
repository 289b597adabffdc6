package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Brokers under test come and go; the reader asks again often, so that its own waiting does not show in a test's times.
const retryEvery = 100 * time.Millisecond

// examples is how many unreadable records are described.
const examples = 3

// A reader goes through a topic once. It is used by one goroutine.
type reader struct {
	opts   Options
	client *kgo.Client
	admin  *kadm.Client

	partitions  map[int32]*progress
	records     int
	delivered   map[int64]int
	unreadable  []string
	unreadables int
	firstAppend time.Time
	lastAppend  time.Time
}

// progress is how far one partition was read.
type progress struct {
	next    int64   // the offset of the next record
	end     int64   // where Read stops; unused by WaitFor
	records int     // without control records
	numbers []int64 // in the order of offsets
}

func newReader(opts Options) (*reader, error) {
	if len(opts.Brokers) == 0 || opts.Topic == "" {
		return nil, errors.New("auditing: brokers and topic are needed")
	}
	if opts.Extract == nil {
		field := opts.Field
		if field == "" {
			field = "seq"
		}
		opts.Extract = func(record *kgo.Record) (int64, error) { return numberIn(record.Value, field) }
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(opts.Brokers...),
		kgo.ConsumeTopics(opts.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.KeepControlRecords(), // they have offsets too: without them the end may never be reached
		kgo.DisableFetchCRCValidation(),
		kgo.MetadataMinAge(retryEvery),
		kgo.RetryBackoffFn(func(int) time.Duration { return retryEvery }),
		kgo.FetchMaxWait(retryEvery),
	}, opts.Client...)...)
	if err != nil {
		return nil, fmt.Errorf("auditing topic %q: %w", opts.Topic, err)
	}
	return &reader{
		opts:       opts,
		client:     client,
		admin:      kadm.NewClient(client),
		partitions: map[int32]*progress{},
		delivered:  map[int64]int{},
	}, nil
}

func (r *reader) close() { r.client.Close() }

func (r *reader) ids() []int32 { return slices.Sorted(maps.Keys(r.partitions)) }

func (r *reader) partition(id int32) *progress {
	p := r.partitions[id]
	if p == nil {
		p = &progress{}
		r.partitions[id] = p
	}
	return p
}

// findBounds asks where each partition begins and ends. A partition without a leader has no answer yet, so it asks again
// until all have one.
func (r *reader) findBounds(ctx context.Context) error {
	for {
		err := r.askBounds(ctx)
		if err == nil || !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %w)", ctx.Err(), err)
		case <-time.After(retryEvery):
		}
	}
}

func (r *reader) askBounds(ctx context.Context) error {
	starts, err := r.admin.ListStartOffsets(ctx, r.opts.Topic)
	if err = errors.Join(err, starts.Error()); err != nil {
		return err
	}
	ends, err := r.admin.ListEndOffsets(ctx, r.opts.Topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		return err
	}
	starts.Each(func(o kadm.ListedOffset) { r.partition(o.Partition).next = o.Offset })
	ends.Each(func(o kadm.ListedOffset) { r.partition(o.Partition).end = o.Offset })
	return nil
}

func (r *reader) reachedEnd() bool {
	for _, p := range r.partitions {
		if p.next < p.end {
			return false
		}
	}
	return true
}

// poll takes in what the client has fetched. It returns only errors that waiting does not mend.
func (r *reader) poll(ctx context.Context) error {
	fetches := r.client.PollFetches(ctx)
	fetches.EachRecord(r.take)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, e := range fetches.Errors() {
		if !transient(e.Err) {
			return fmt.Errorf("partition %d: %w", e.Partition, e.Err)
		}
	}
	return nil
}

// transient tells what goes away when brokers and leaders are back. A missing topic is transient too, since a test may
// look before the topic is there; its context ends the wait.
func transient(err error) bool {
	var fromBroker *kerr.Error
	if errors.As(err, &fromBroker) {
		return fromBroker.Retriable || errors.Is(err, kerr.UnknownTopicOrPartition)
	}
	return true
}

func (r *reader) take(record *kgo.Record) {
	p := r.partition(record.Partition)
	if record.Offset < p.next {
		return // fetched again after an error
	}
	p.next = record.Offset + 1
	if record.Attrs.IsControl() {
		return
	}
	r.records++
	p.records++
	if record.Attrs.TimestampType() == 1 {
		r.noteAppend(record.Timestamp)
	}
	number, err := r.opts.Extract(record)
	if err != nil {
		r.unreadables++
		if len(r.unreadable) < examples {
			r.unreadable = append(r.unreadable, fmt.Sprintf("partition %d offset %d: %v", record.Partition, record.Offset, err))
		}
		return
	}
	p.numbers = append(p.numbers, number)
	r.delivered[number]++
	if r.opts.Visit != nil {
		r.opts.Visit(number, record)
	}
}

func (r *reader) noteAppend(at time.Time) {
	if r.firstAppend.IsZero() || at.Before(r.firstAppend) {
		r.firstAppend = at
	}
	if at.After(r.lastAppend) {
		r.lastAppend = at
	}
}

// numberIn returns the whole number under a key of a JSON object. A number written as 1.0 or 1e3 is refused: a test that
// sends whole numbers wants to know.
func numberIn(value []byte, field string) (int64, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil {
		return 0, fmt.Errorf("decoding %.80q: %w", value, err)
	}
	raw, ok := object[field]
	if !ok {
		return 0, fmt.Errorf("looking up %q in %.80q: it is not there", field, value)
	}
	number, err := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %q in %.80q: %w", field, value, err)
	}
	return number, nil
}

package outage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/test/e2e/audit"
)

// A delivery is one record in the topic.
type delivery struct {
	number    int64
	partition int32
	logged    time.Time // when the host got it, as the record says
	appended  time.Time // when the broker wrote it
}

// A harvest is a topic, read to its end.
type harvest struct {
	deliveries []delivery // partition by partition, in the order of offsets
	result     *audit.Result
}

// numbers is how many different records there are.
func (h *harvest) numbers() int {
	if h == nil {
		return 0
	}
	return len(h.result.Delivered)
}

// harvest reads the topic and compares it with what was accepted, together with what an earlier topic held.
func (w *world) harvest(ctx context.Context) (*harvest, error) {
	h := &harvest{}
	var wrong error
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	res, err := w.tally.Compare(ctx, w.audited(func(number int64, r *kgo.Record) {
		logged, err := loggedAt(r.Value)
		if err != nil && wrong == nil {
			wrong = err
		}
		h.deliveries = append(h.deliveries, delivery{number, r.Partition, logged, r.Timestamp})
	}))
	if err == nil {
		err = wrong
	}
	if err != nil {
		return nil, fmt.Errorf("auditing: %w", err)
	}
	h.result = res
	slices.SortStableFunc(h.deliveries, func(a, b delivery) int { return int(a.partition) - int(b.partition) })
	return h.after(w.earlier), nil
}

// after adds what an earlier topic held.
func (h *harvest) after(earlier *harvest) *harvest {
	if earlier == nil {
		return h
	}
	h.deliveries = append(slices.Clone(earlier.deliveries), h.deliveries...)
	h.result.Records += earlier.result.Records
	h.result.Lost = slices.DeleteFunc(h.result.Lost, func(n int64) bool { return earlier.result.Delivered[n] > 0 })
	for n, copies := range earlier.result.Delivered {
		h.result.Delivered[n] += copies
		if h.result.Delivered[n] > 1 {
			h.result.Doubled[n] = h.result.Delivered[n]
		}
	}
	return h
}

// loggedAt reads the time that the plugin has put into a record.
func loggedAt(value []byte) (time.Time, error) {
	var record struct {
		Time float64 `json:"@timestamp"`
	}
	if err := json.Unmarshal(value, &record); err != nil {
		return time.Time{}, fmt.Errorf("decoding %.80q: %w", value, err)
	}
	return time.UnixMicro(int64(record.Time * 1e6)), nil
}

// firstCopies returns when each record was first written, in order of time.
func (h *harvest) firstCopies() []time.Time {
	first := map[int64]time.Time{}
	for _, d := range h.deliveries {
		if at, seen := first[d.number]; !seen || d.appended.Before(at) {
			first[d.number] = d.appended
		}
	}
	times := make([]time.Time, 0, len(first))
	for _, at := range first {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// appendedBetween counts different records that were written in one of some spans.
func (h *harvest) appendedBetween(spans []span) int {
	found := map[int64]bool{}
	for _, d := range h.deliveries {
		for _, s := range spans {
			if !d.appended.Before(s.from) && !d.appended.After(s.to) {
				found[d.number] = true
			}
		}
	}
	return len(found)
}

// lateInChunk counts records that stand behind a larger number of their own chunk in the same partition; a copy is not
// late. Without the ends of the chunks it counts those that stand behind a record that is at most a flush younger, which
// may be of the next chunk: so exact is false, unless there are none.
func (h *harvest) lateInChunk(ends []int64, flush time.Duration) (late int, exact bool) {
	type place struct {
		partition int32
		chunk     int
	}
	largest := map[place]delivery{}
	seen := map[int64]bool{}
	for _, d := range h.deliveries {
		if seen[d.number] {
			continue
		}
		seen[d.number] = true
		at := place{partition: d.partition}
		if ends != nil {
			at.chunk = sort.Search(len(ends), func(i int) bool { return ends[i] >= d.number })
		}
		before := largest[at]
		switch {
		case d.number > before.number:
			largest[at] = d
		case ends != nil || before.logged.Sub(d.logged) <= flush:
			late++
		}
	}
	return late, ends != nil || late == 0
}

package outage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	producer  int64     // the client that wrote it: each life of the agent has its own
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
		h.deliveries = append(h.deliveries, delivery{number, r.Partition, r.ProducerID, logged, r.Timestamp})
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

// firstCopies returns when each record was first written, in order of time; loggedTimes returns when each was logged.
func (h *harvest) firstCopies() []time.Time {
	return h.earliest(func(d delivery) time.Time { return d.appended })
}

func (h *harvest) loggedTimes() []time.Time {
	return h.earliest(func(d delivery) time.Time { return d.logged })
}

func (h *harvest) earliest(of func(delivery) time.Time) []time.Time {
	first := map[int64]time.Time{}
	for _, d := range h.deliveries {
		if at, seen := first[d.number]; !seen || of(d).Before(at) {
			first[d.number] = of(d)
		}
	}
	return slices.SortedFunc(maps.Values(first), time.Time.Compare)
}

// pause is the longest time during a fault in which nothing was written. A fault that stops the deliveries does so for half of
// its time; one that is shorter than mustStop passes.
func (h *harvest) pause(o *Outage) (longest time.Duration, stopped bool) {
	last := o.Fault
	for _, d := range slices.SortedFunc(slices.Values(h.deliveries), func(a, b delivery) int { return a.appended.Compare(b.appended) }) {
		if d.appended.After(o.Fault) && d.appended.Before(o.Back) {
			longest, last = max(longest, d.appended.Sub(last)), d.appended
		}
	}
	longest = max(longest, o.Back.Sub(last))
	length := o.Back.Sub(o.Fault)
	return longest, length < mustStop || longest >= length/2
}

// inFlight counts the records that may be written again after the agent has ended, since it did not live to hear that they
// were written: those that had left it and were still on their way; those that were written just before a fault that was
// going on, or had ended so shortly before that they were being sent again; and after a kill also those that were written less than a while before, of which the host did not know yet.
func (h *harvest) inFlight(gone []gap, outages []*Outage) int {
	found := map[int64]bool{}
	for _, g := range gone {
		dead := map[int64]bool{}
		for _, d := range h.deliveries {
			if d.appended.Before(g.to) {
				dead[d.producer] = true
			}
		}
		since := g.from
		for _, o := range outages {
			if !o.Fault.After(g.from) && (o.Ready.IsZero() || o.Ready.After(g.from.Add(-unheard))) {
				since = o.Fault.Add(-unanswered)
			}
		}
		if known := g.from.Add(-unheard); g.killed && known.Before(since) {
			since = known
		}
		for _, d := range h.deliveries {
			if dead[d.producer] && d.appended.After(since) {
				found[d.number] = true
			}
		}
	}
	return len(found)
}

// copies says when doubled records were written first, and when again.
func (h *harvest) copies() string {
	times := map[int64][]time.Time{}
	for _, d := range h.deliveries {
		if h.result.Doubled[d.number] > 0 {
			times[d.number] = append(times[d.number], d.appended)
		}
	}
	var first, again []time.Time
	for _, all := range times {
		slices.SortFunc(all, time.Time.Compare)
		first, again = append(first, all[0]), append(again, all[1:]...)
	}
	stretch := func(times []time.Time) string {
		const clock = "15:04:05.000"
		return slices.MinFunc(times, time.Time.Compare).Format(clock) + " to " + slices.MaxFunc(times, time.Time.Compare).Format(clock)
	}
	if len(first) == 0 || len(again) == 0 {
		return "when is not known"
	}
	return "they were written first from " + stretch(first) + ", again from " + stretch(again)
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

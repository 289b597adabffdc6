package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// latencyRate is how many records a second are logged.
const latencyRate = 1000

// latency logs at a steady rate and takes the time from the moment at which a line is written to the one at which the
// broker writes the record.
func (b *bench) latency(ctx context.Context, o output) (l latency, err error) {
	l.Output = o.name
	topic, err := b.topic(ctx)
	if err != nil {
		return l, err
	}
	path := filepath.Join(b.dir, "steady")
	f, err := os.Create(path)
	if err != nil {
		return l, err
	}
	defer func() { _ = f.Close() }()
	a, _, done, err := b.start(ctx, o, codecs[0], source{path: path, limit: allOfIt}, topic)
	if err != nil {
		return l, err
	}
	defer done()
	defer func() {
		if stopped := a.stop(); err == nil {
			err = stopped
		}
	}()
	if err := a.pause(ctx, 2*time.Second); err != nil {
		return l, err
	}
	n, err := logSteadily(ctx, f, b.latencyFor)
	if err != nil {
		return l, err
	}
	took, err := b.read(ctx, topic, n)
	if err != nil {
		return l, err
	}
	slices.Sort(took)
	l.P50, l.P99, l.Max = milliseconds(took[n/2]), milliseconds(took[n*99/100]), milliseconds(took[n-1])
	return l, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// logSteadily writes lines that say when they were written, a hundred times a second.
func logSteadily(ctx context.Context, f *os.File, during time.Duration) (int, error) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	n, began := 0, time.Now()
	var b []byte
	for time.Since(began) < during {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return n, ctx.Err()
		}
		b = b[:0]
		now := time.Now()
		for due := int(now.Sub(began).Seconds() * latencyRate); n < due; n++ {
			b = fmt.Appendf(b, `{"at":%d,"message":"%0250d"}`+"\n", now.UnixMicro(), n)
		}
		if _, err := f.Write(b); err != nil {
			return n, err
		}
	}
	return n, nil
}

// read reads a topic until it has given n records, and returns how long each was on its way.
func (b *bench) read(ctx context.Context, topic string, n int) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.RigBrokers()...), kgo.ConsumeTopics(topic))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var took []time.Duration
	for len(took) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("reading the topic, %d of %d records so far: %w", len(took), n, err)
		}
		for _, r := range fetches.Records() {
			var record struct {
				At int64 `json:"at"`
			}
			if err := json.Unmarshal(r.Value, &record); err != nil {
				return nil, fmt.Errorf("decoding %.80q: %w", r.Value, err)
			}
			took = append(took, r.Timestamp.Sub(time.UnixMicro(record.At)))
		}
	}
	return took, nil
}

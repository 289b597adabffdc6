package outage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"out_kafka_reconnect/test/e2e/rig"
)

// A meter reads the plugin's own counters once a second, so that they can be compared with the audit.
type meter struct {
	url    string
	pid    *atomic.Int64 // the agent's process
	client *http.Client
	stop   context.CancelFunc
	done   sync.WaitGroup

	samples []sample // owned by watch until it has ended
}

// A sample is what the counters said at a time.
type sample struct {
	at                     time.Time
	pid                    int64 // of the agent
	acknowledged, possible int
}

// Names of the counters that are compared.
const (
	acknowledgedTotal = "kafka_reconnect_records_acknowledged_total"
	possibleTotal     = "kafka_reconnect_possible_duplicates_total"
)

// readMeter begins to read what is served at an address.
func readMeter(addr string, pid *atomic.Int64) *meter {
	m := newMeter("http://"+addr, pid)
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	m.done.Go(func() { m.watch(ctx) })
	return m
}

func newMeter(url string, pid *atomic.Int64) *meter {
	return &meter{url: url + "/metrics", pid: pid, client: &http.Client{Timeout: time.Second}}
}

func (m *meter) watch(ctx context.Context) {
	for {
		if s, err := m.read(ctx); err == nil { // there is none while the agent is away
			m.samples = append(m.samples, s)
		}
		if rig.Pause(ctx, time.Second) != nil {
			return
		}
	}
}

func (m *meter) read(ctx context.Context) (sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		return sample{}, err
	}
	answer, err := m.client.Do(req)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return sample{}, fmt.Errorf("reading %s: %w", m.url, err)
	}
	sum := func(name string) int {
		total := 0.0
		for _, metric := range families[name].GetMetric() {
			total += metric.GetCounter().GetValue()
		}
		return int(total)
	}
	if families[acknowledgedTotal] == nil {
		return sample{}, errors.New("reading " + m.url + ": there is no " + acknowledgedTotal)
	}
	return sample{time.Now(), m.pid.Load(), sum(acknowledgedTotal), sum(possibleTotal)}, nil
}

// end ends the reading and returns what was read.
func (m *meter) end() []sample {
	m.stop()
	m.done.Wait()
	m.client.CloseIdleConnections()
	return m.samples
}

// reportDelay is how much later than the broker writes a record its acknowledgement may be counted.
const reportDelay = time.Second

// counted sums a counter up over the lives of the agent and of the plugin in it, each of which begins at 0. Blind are the times whose records may
// or may not be in it: from shortly before the last sample of a life to the first of the next.
func counted(samples []sample, of func(sample) int, until time.Time) (sum int, blind []span) {
	for i, now := range samples {
		switch {
		case i+1 == len(samples):
			sum += of(now)
			blind = append(blind, span{from: now.at.Add(-reportDelay), to: until})
		case samples[i+1].pid != now.pid || of(samples[i+1]) < of(now):
			sum += of(now)
			blind = append(blind, span{from: now.at.Add(-reportDelay), to: samples[i+1].at})
		}
	}
	return sum, blind
}

// compare returns what the counters and the audit disagree about. When the agent has ended, what was in flight then may have
// been written without anybody's knowledge, and may be there twice.
func compare(samples []sample, h *harvest, until time.Time, ended bool) []string {
	if len(samples) == 0 {
		return []string{"the plugin's counters could not be read"}
	}
	var wrong []string
	acknowledged, blind := counted(samples, func(s sample) int { return s.acknowledged }, until)
	unseen := 0
	for _, d := range h.deliveries {
		for _, s := range blind {
			if !d.appended.Before(s.from) && !d.appended.After(s.to) {
				unseen++
				break
			}
		}
	}
	if ended {
		unseen += len(h.result.Doubled)
	}
	if all := len(h.deliveries); acknowledged > all || acknowledged < all-unseen {
		wrong = append(wrong, fmt.Sprintf("%s says %d, the topic holds %d records, %d of them from times without a sample",
			acknowledgedTotal, acknowledged, all, unseen))
	}
	possible, _ := counted(samples, func(s sample) int { return s.possible }, until)
	if doubled := len(h.result.Doubled); doubled > possible && !ended {
		wrong = append(wrong, fmt.Sprintf("%s says %d, %d records are doubled", possibleTotal, possible, doubled))
	}
	return wrong
}

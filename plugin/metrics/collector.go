package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"out_kafka_reconnect/reconnect/fsm"
)

const prefix = "kafka_reconnect_"

// put gives one value, with the values of the labels in their order.
type put func(value float64, labels ...string)

// family is one metric.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// values calls put for each value in the sample.
	values func(s *Sample, p put)
}

func gauge(name, help string, values func(*Sample, put), labels ...string) family {
	return family{prometheus.NewDesc(prefix+name, help, labels, nil), prometheus.GaugeValue, values}
}

func counter(name, help string, values func(*Sample, put), labels ...string) family {
	return family{prometheus.NewDesc(prefix+name, help, labels, nil), prometheus.CounterValue, values}
}

// families is the table of all metrics but the histogram. The label that names the instance
// is not in it: the registry of a server adds it. A new row needs one in docs/metrics.md.
var families = []family{
	gauge("state", "1 for the state of the connection to the cluster, 0 for every other.", func(s *Sample, p put) {
		for _, state := range fsm.States() {
			p(is(state == s.State), state.String())
		}
	}, "state"),
	counter("outages_total", "Outages, the current one included: times when no broker could be reached.", func(s *Sample, p put) {
		p(float64(s.Outages))
	}),
	counter("outage_seconds_total", "Time in outages, the current one included.", func(s *Sample, p put) {
		p(s.OutageTime.Seconds())
	}),
	counter("connect_attempts_total", "Connection attempts, failed look-ups included, by how they ended.", func(s *Sample, p put) {
		p(float64(s.ConnectSuccesses), "success")
		p(float64(s.ConnectFailures), "failure")
	}, "result"),
	counter("records_acknowledged_total", "Records that the brokers have acknowledged.", func(s *Sample, p put) {
		p(float64(s.Acknowledged))
	}),
	gauge("records_open", "Records that were handed to the client and are not acknowledged yet.", func(s *Sample, p put) {
		p(float64(s.Open))
	}),
	counter("records_rejected_total", "Records that can never be written, by class of the reason.", func(s *Sample, p put) {
		each(s.Rejected, p)
	}, "class"),
	counter("records_returned_total", "Records that came back and are sent again, each time they do, by class of the error.", func(s *Sample, p put) {
		each(s.Returned, p)
	}, "class"),
	counter("fields_left_out_total", "Fields that the schema has no name for, of records that were written without them.", func(s *Sample, p put) {
		p(float64(s.FieldsLeftOut))
	}),
	counter("duplicates_avoided_total", "Records that a retry did not send again, as an attempt before it had delivered them.", func(s *Sample, p put) {
		p(float64(s.DuplicatesAvoided))
	}),
	counter("possible_duplicates_total", "Records that were sent again although a broker may have written them.", func(s *Sample, p put) {
		p(float64(s.PossibleDuplicates))
	}),
	counter("dead_letters_total", "Rejected records that were kept, by target.", func(s *Sample, p put) {
		each(s.DeadLetters, p)
	}, "target"),
	gauge("queue_bytes", "Bytes in the hands of the client, its overhead included.", func(s *Sample, p put) {
		p(float64(s.QueueBytes))
	}),
	gauge("receipts", "Chunks that were answered with retry and whose next attempt is waited for.", func(s *Sample, p put) {
		p(float64(s.Receipts))
	}),
	gauge("forgotten_chunks", "Chunks in state_path that no section delivers, as found after the start.", func(s *Sample, p put) {
		p(float64(s.Forgotten))
	}),
	counter("left_out_chunks_total", "Chunks of metrics or traces that were not written, as the format has no form for them.", func(s *Sample, p put) {
		p(float64(s.LeftOut))
	}),
	counter("chunks_total", "Flush calls by what Fluent Bit was answered.", func(s *Sample, p put) {
		p(float64(s.ChunksOK), "ok")
		p(float64(s.ChunksRetried), "retry")
		p(float64(s.ChunksError), "error")
	}, "result"),
}

func is(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// each puts the counts of a map with one label.
func each(counts map[string]int64, p put) {
	for label, n := range counts {
		p(float64(n), label)
	}
}

// latencyBuckets reach from a broker next door to an outage that a chunk waited through.
var latencyBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// Latency is the histogram of how long chunks take from being handed over to the
// acknowledgement of their last record.
type Latency struct{ histogram prometheus.Histogram }

// NewLatency makes the histogram of one instance.
func NewLatency() *Latency {
	return &Latency{prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    prefix + "ack_latency_seconds",
		Help:    "Time from handing a chunk to the client to the acknowledgement of its last record, one observation a chunk.",
		Buckets: latencyBuckets,
	})}
}

// Observe notes one chunk. It takes no lock.
func (l *Latency) Observe(d time.Duration) { l.histogram.Observe(d.Seconds()) }

// collector reads one instance when it is asked.
type collector struct {
	source  Source
	latency *Latency
}

// Describe implements prometheus.Collector.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	for i := range families {
		descs <- families[i].desc
	}
	c.latency.histogram.Describe(descs)
}

// Collect implements prometheus.Collector. The registry calls it on a goroutine of its own,
// where a panic would end the host process.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("metrics: panic while reading an instance: %v", p)
			metrics <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		}
	}()
	s := c.source.Metrics()
	for i := range families {
		f := &families[i]
		f.values(&s, func(value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
		})
	}
	c.latency.histogram.Collect(metrics)
}

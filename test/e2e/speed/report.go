package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"out_kafka_reconnect/test/chart"
	"out_kafka_reconnect/test/e2e/rig"
)

// A report is the figures of one run of this command, every round on its own.
type report struct {
	Day        string       `json:"day"`
	Machine    string       `json:"machine"`
	FluentBit  string       `json:"fluent_bit"`
	Throughput []throughput `json:"throughput,omitempty"`
	Held       []throughput `json:"held_back,omitempty"` // the same with the input held back
	Latency    []latency    `json:"latency,omitempty"`
	Produce    []produce    `json:"produce,omitempty"`
}

// A throughput is the delivery of one file, from the first record in the topic to the last.
type throughput struct {
	Shape     string  `json:"shape"`
	Codec     string  `json:"codec"`
	Output    string  `json:"output"`
	Records   int     `json:"records"`
	Seconds   float64 `json:"seconds"`
	CPU       float64 `json:"cpu_s"` // of the whole process
	BrokerCPU float64 `json:"broker_cpu_s"`
	PeakMiB   float64 `json:"peak_rss_mib"`
}

func (t throughput) perSecond() float64 { return float64(t.Records) / t.Seconds }

// cpuPerMillion is the CPU of the whole process for a million records, in seconds.
func (t throughput) cpuPerMillion() float64 { return t.CPU / float64(t.Records) * 1e6 }

func (t throughput) String() string {
	return fmt.Sprintf("%s, %s, %s: %.0f records/s, %.2f CPU s per million, broker %.2f, peak %.0f MiB",
		t.Shape, t.Codec, t.Output, t.perSecond(), t.cpuPerMillion(), t.BrokerCPU/float64(t.Records)*1e6, t.PeakMiB)
}

// A latency is the way from the log line to the broker's log, in milliseconds.
type latency struct {
	Output string  `json:"output"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

func (l latency) String() string {
	return fmt.Sprintf("latency, %s: median %.0f ms, p99 %.0f ms, most %.0f ms", l.Output, l.P50, l.P99, l.Max)
}

// A produce is the half that hands records over that are ready.
type produce struct {
	Shape   string `json:"shape"`
	Codec   string `json:"codec"`
	Kind    string `json:"kind"`
	Records int    `json:"records"`
	cost
}

// A cost is what something took.
type cost struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_s"`
}

func (p produce) perSecond() float64     { return float64(p.Records) / p.Seconds }
func (p produce) cpuPerMillion() float64 { return p.CPU / float64(p.Records) * 1e6 }

func (p produce) String() string {
	return fmt.Sprintf("produce half in %s, %s, %s: %.0f records/s, %.2f CPU s per million", p.Kind, p.Shape, p.Codec, p.perSecond(), p.cpuPerMillion())
}

func newReport(fluentBit string) *report {
	return &report{Day: time.Now().Format("2 January 2006"), Machine: rig.Machine(), FluentBit: fluentBit}
}

func readReport(path string) (*report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r report
	return &r, json.Unmarshal(data, &r)
}

// complete takes the parts that were not measured from the report at path, if there is one.
func (r *report) complete(path string) error {
	old, err := readReport(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r.FluentBit = cmp.Or(r.FluentBit, old.FluentBit)
	keep(&r.Throughput, old.Throughput)
	keep(&r.Held, old.Held)
	keep(&r.Latency, old.Latency)
	keep(&r.Produce, old.Produce)
	return nil
}

func keep[T any](part *[]T, old []T) {
	if len(*part) == 0 {
		*part = old
	}
}

func (r *report) write(path string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// of returns a figure of the runs that are meant, as their median; 0 if there are none.
func of[T any](all []T, meant func(T) bool, figure func(T) float64) float64 {
	var values []float64
	for _, one := range all {
		if meant(one) {
			values = append(values, figure(one))
		}
	}
	if len(values) == 0 {
		return 0
	}
	return chart.Median(values)
}

// Markdown is the report for people: medians of the rounds, and ratios.
func (r *report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "One run of %s: %s", r.Day, r.Machine)
	if r.FluentBit != "" {
		b.WriteString("; Fluent Bit " + r.FluentBit)
	}
	b.WriteString(".\n")
	r.throughputTable(&b)
	r.heldTable(&b)
	if len(r.Latency) > 0 {
		b.WriteString("\n| from the log line to the broker's log, 1,000 records/s | median ms | p99 ms | most ms |\n|---|---|---|---|\n")
		for _, l := range r.Latency {
			fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.0f |\n", l.Output, l.P50, l.P99, l.Max)
		}
	}
	r.produceTable(&b)
	return b.String()
}

// outputNames are those that are compared with null, in the order of the tables.
var outputNames = []string{builtIn, ours, oursFour, oursEngine}

// codecs are the compressions that are measured.
var codecs = []string{"none", "lz4"}

// A cell is the runs of one shape and compression.
type cell []throughput

func cellOf(all []throughput, shape, codec string) cell {
	return slices.DeleteFunc(slices.Clone(all), func(t throughput) bool { return t.Shape != shape || t.Codec != codec })
}

func (c cell) figure(output string, f func(throughput) float64) float64 {
	return of(c, func(t throughput) bool { return t.Output == output }, f)
}

// rate is records a second.
func (c cell) rate(output string) float64 { return c.figure(output, throughput.perSecond) }

// process is the CPU of the whole process for a million records, cpu what of it is the output's; in seconds.
func (c cell) process(output string) float64 { return c.figure(output, throughput.cpuPerMillion) }
func (c cell) cpu(output string) float64     { return c.process(output) - c.process(nowhere) }

// peak is the largest resident size, in MiB.
func (c cell) peak(output string) float64 {
	return c.figure(output, func(t throughput) float64 { return t.PeakMiB })
}

func (r *report) throughputTable(b *strings.Builder) {
	if len(r.Throughput) == 0 {
		return
	}
	b.WriteString("\n| record, compression | output | records/s | × built-in | output's CPU s per million | × built-in | peak RSS MiB |\n|---|---|---|---|---|---|---|\n")
	for _, s := range shapes() {
		for _, codec := range codecs {
			c := cellOf(r.Throughput, s.name, codec)
			if len(c) == 0 {
				continue
			}
			fmt.Fprintf(b, "| %s, %s | %s (whole process: %.2f) | %.0f | | 0 | | %.0f |\n", s.name, codec, nowhere, c.process(nowhere), c.rate(nowhere), c.peak(nowhere))
			for _, o := range outputNames {
				if c.rate(o) > 0 {
					fmt.Fprintf(b, "| | %s | %.0f | %.2f | %.2f | %.2f | %.0f |\n", o, c.rate(o), c.rate(o)/c.rate(builtIn), c.cpu(o), c.cpu(o)/c.cpu(builtIn), c.peak(o))
				}
			}
		}
	}
}

// heldTable is of the runs with the input held back.
func (r *report) heldTable(b *strings.Builder) {
	if len(r.Held) == 0 {
		return
	}
	b.WriteString("\n| input held back, no compression | output | output's CPU s per million | × built-in | peak RSS MiB | above built-in |\n|---|---|---|---|---|---|\n")
	for _, s := range shapes() {
		c := cellOf(r.Held, s.name, codecs[0])
		if len(c) == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %s (whole process: %.2f) | 0 | | %.0f | |\n", s.name, nowhere, c.process(nowhere), c.peak(nowhere))
		for _, o := range outputNames {
			if c.peak(o) > 0 {
				fmt.Fprintf(b, "| | %s | %.2f | %.2f | %.0f | %+.0f |\n", o, c.cpu(o), c.cpu(o)/c.cpu(builtIn), c.peak(o), c.peak(o)-c.peak(builtIn))
			}
		}
	}
}

// halves are the runs of the produce half for one shape and compression.
type halves []produce

func (r *report) halves(shape, codec string) halves {
	return slices.DeleteFunc(slices.Clone(r.Produce), func(p produce) bool { return p.Shape != shape || p.Codec != codec })
}

func (h halves) figure(kind string, f func(produce) float64) float64 {
	return of(h, func(p produce) bool { return p.Kind == kind }, f)
}

// rate is records a second.
func (h halves) rate(kind string) float64 { return h.figure(kind, produce.perSecond) }

// cpu is for a million records, in seconds.
func (h halves) cpu(kind string) float64 { return h.figure(kind, produce.cpuPerMillion) }

func (r *report) produceTable(b *strings.Builder) {
	if len(r.Produce) == 0 {
		return
	}
	b.WriteString("\n| produce half | loop in C, records/s | ours | ratio | loop in C, CPU s per million | ours | ratio |\n|---|---|---|---|---|---|---|\n")
	for _, s := range shapes() {
		for _, codec := range codecs {
			if h := r.halves(s.name, codec); len(h) > 0 {
				fmt.Fprintf(b, "| %s, %s | %.0f | %.0f | %.2f | %.2f | %.2f | %.2f |\n", s.name, codec,
					h.rate(halfC), h.rate(halfGo), h.rate(halfGo)/h.rate(halfC), h.cpu(halfC), h.cpu(halfGo), h.cpu(halfGo)/h.cpu(halfC))
			}
		}
	}
}

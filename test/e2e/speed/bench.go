package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"out_kafka_reconnect/test/e2e/kafka"
	"out_kafka_reconnect/test/e2e/kafka/freeport"
	"out_kafka_reconnect/test/e2e/rig"
)

// bench is the machinery that all runs share.
type bench struct {
	settings
	dir, program string
	cluster      *kafka.Cluster
	admin        *kadm.Client
	log          io.Writer
	runs         int // so far; each has a topic of its own
}

// An output is a section to be measured.
type output struct {
	name  string // in the report
	lines string // of the section, besides brokers and topics; empty for null
	own   bool   // this project's
}

// outputs are those that are compared.
func outputs() []output {
	return []output{
		{name: nowhere},
		{name: builtIn, lines: "name kafka\nretry_limit no_limits\n"},
		{name: ours, lines: "name kafka_reconnect\nretry_limit no_limits\nworkers 1\n", own: true},
		{name: oursFour, lines: "name kafka_reconnect\nretry_limit no_limits\nworkers 4\n", own: true},
		{name: oursEngine, lines: "name kafka_reconnect\nretry_limit no_limits\n", own: true},
	}
}

// The names of the outputs in the report.
const (
	nowhere    = "null"
	builtIn    = "kafka (built-in)"
	ours       = "kafka_reconnect, 1 worker"
	oursFour   = "kafka_reconnect, 4 workers"
	oursEngine = "kafka_reconnect, no worker"
)

// Limits of what the input may have read and no output has delivered: more than a file, and a part of it.
const (
	allOfIt  = "2G"
	heldBack = "64M"
)

// A source is what a run delivers.
type source struct {
	path, limit string
	records     int
}

const (
	partitions = 3
	// runPatience is how long a run may take.
	runPatience = 5 * time.Minute
	// lookEvery is how often the topic is asked how much it holds: the times are that exact.
	lookEvery = 20 * time.Millisecond
)

// hosts makes the runs in Fluent Bit.
func (b *bench) hosts(ctx context.Context, r *report) error {
	for _, s := range shapes() {
		if err := b.deliveries(ctx, r, s); err != nil {
			return err
		}
	}
	for _, o := range outputs() {
		if (b.only == "" || b.only == "latency") && o.name != nowhere {
			l, err := b.latency(ctx, o)
			if err != nil {
				return fmt.Errorf("latency, %s: %w", o.name, err)
			}
			r.Latency = append(r.Latency, l)
			b.say("%s", l)
		}
	}
	return nil
}

// deliveries makes the runs that deliver a file: as fast as it can be read, and with the input held back.
func (b *bench) deliveries(ctx context.Context, r *report, s shape) error {
	path := filepath.Join(b.dir, "lines")
	n, err := s.writeLines(path, b.megabytes<<20)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	turns := func(what, codec, limit string) (all []throughput, err error) {
		if b.only != "" && b.only != what {
			return nil, nil
		}
		for round := range b.rounds {
			for _, o := range outputs() {
				if !b.match.MatchString(s.name + ", " + codec + ", " + o.name) {
					continue
				}
				t, err := b.throughput(ctx, o, source{path, limit, n}, codec)
				if err != nil {
					return nil, fmt.Errorf("%s, %s, %s: %w", s.name, codec, o.name, err)
				}
				t.Shape, t.Codec, t.Output, t.Records = s.name, codec, o.name, n
				all = append(all, t)
				b.say("%s, round %d: %s", what, round+1, t)
			}
		}
		return all, nil
	}
	for _, codec := range codecs {
		all, err := turns("throughput", codec, allOfIt)
		if err != nil {
			return err
		}
		r.Throughput = append(r.Throughput, all...)
	}
	all, err := turns("memory", codecs[0], heldBack)
	r.Held = append(r.Held, all...)
	return err
}

func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.log, format+"\n", args...) }

// topic makes a topic for the next run; the broker notes when it writes a record.
func (b *bench) topic(ctx context.Context) (string, error) {
	b.runs++
	name := "run-" + strconv.Itoa(b.runs)
	return name, b.cluster.CreateTopic(ctx, name, partitions, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
}

// start runs Fluent Bit with one output on a file of lines. The address is that of its server.
func (b *bench) start(ctx context.Context, o output, codec string, from source, topic string) (a *agent, server string, done func(), err error) {
	lease, err := freeport.Take(1)
	if err != nil {
		return nil, "", nil, err
	}
	dir := filepath.Join(b.dir, topic)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		lease.Release()
		return nil, "", nil, err
	}
	done = func() {
		lease.Release()
		_ = os.RemoveAll(dir)
	}
	parsers, conf := filepath.Join(dir, "parsers.conf"), filepath.Join(dir, "fluent-bit.conf")
	section := "name null\n"
	if o.lines != "" {
		section = o.lines + "brokers " + strings.Join(b.cluster.Brokers(), ",") + "\ntopics " + topic + "\nrdkafka.compression.codec " + codec + "\n"
	}
	port := strconv.Itoa(lease.Ports()[0])
	server = net.JoinHostPort("127.0.0.1", port)
	service := "flush 1\ngrace 5\nlog_level warn\nscheduler.base 1\nscheduler.cap 1\nhttp_server on\nhttp_listen 127.0.0.1\nhttp_port " + port +
		"\nparsers_file " + parsers + "\n"
	input := "name tail\ntag app\npath " + from.path + "\nparser json\nread_from_head true\nmem_buf_limit " + from.limit + "\nrefresh_interval 1\n"
	text := "[SERVICE]\n" + indent(service) + "[INPUT]\n" + indent(input) + "[OUTPUT]\n" + indent("match *\n"+section)
	err = os.WriteFile(parsers, []byte("[PARSER]\n"+indent("name json\nformat json\n")), 0o644)
	if err == nil {
		err = os.WriteFile(conf, []byte(text), 0o644)
	}
	if err == nil {
		args := []string{"-c", conf}
		if o.own { // the library costs memory also where no section uses it
			args = append(args, "-e", b.plugin)
		}
		a, err = startAgent(ctx, b.program, args...)
	}
	if err != nil {
		done()
	}
	return a, server, done, err
}

// indent makes lines those of a section.
func indent(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// throughput delivers a file.
func (b *bench) throughput(ctx context.Context, o output, from source, codec string) (t throughput, err error) {
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	topic, err := b.topic(ctx)
	if err != nil {
		return t, err
	}
	broker, err := rig.ResourcesOf(b.cluster.PID(1))
	if err != nil {
		return t, err
	}
	began := time.Now()
	a, server, done, err := b.start(ctx, o, codec, from, topic)
	if err != nil {
		return t, err
	}
	defer done()
	defer func() {
		if stopped := a.stop(); err == nil {
			err = stopped
		}
		_, _ = b.admin.DeleteTopics(context.WithoutCancel(ctx), topic)
	}()
	count := func(ctx context.Context) (int, error) { return b.held(ctx, topic) }
	if o.lines == "" {
		count = func(ctx context.Context) (int, error) { return processed(ctx, server) }
	}
	first, n := began, from.records
	for held := 0; held < n; {
		before := held
		if held, err = count(ctx); err != nil {
			return t, fmt.Errorf("after %d of %d records: %w", before, n, err)
		}
		if before == 0 && held > 0 && held < n { // else all of it came between two looks
			first = time.Now()
		}
		if held < n {
			if err := a.pause(ctx, lookEvery); err != nil {
				return t, fmt.Errorf("%d of %d records: %w", held, n, err)
			}
		}
	}
	t.Seconds = time.Since(first).Seconds()
	u, err := rig.ResourcesOf(a.pid())
	if err != nil {
		return t, err
	}
	after, err := rig.ResourcesOf(b.cluster.PID(1))
	t.CPU, t.PeakMiB, t.BrokerCPU = u.CPU.Seconds(), rig.MiB(u.Peak), (after.CPU - broker.CPU).Seconds()
	return t, err
}

// held is how many records a topic holds.
func (b *bench) held(ctx context.Context, topic string) (int, error) {
	ends, err := b.admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("asking for the end of the topic: %w", err)
	}
	total := 0
	ends.Each(func(o kadm.ListedOffset) { total += int(o.Offset) })
	return total, nil
}

// processed asks Fluent Bit how many records its outputs have taken; none as long as its server is not there.
func processed(ctx context.Context, server string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server+"/api/v1/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ctx.Err() // not up yet
	}
	defer func() { _ = answer.Body.Close() }()
	var page struct {
		Output map[string]struct {
			Records int `json:"proc_records"`
		} `json:"output"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil && !errors.Is(err, io.EOF) { // it has no page in the first seconds
		return 0, fmt.Errorf("reading the metrics of Fluent Bit: %w", err)
	}
	total := 0
	for _, o := range page.Output {
		total += o.Records
	}
	return total, nil
}

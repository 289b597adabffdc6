package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"out_kafka_reconnect/plugin"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/rdkafka"
)

// The paths that are measured.
const (
	// alone is the plugin over the client in memory: what is its own.
	alone = "plugin alone"
	// client is librdkafka alone, given records that are ready, over the binding: what the plugin can't change.
	client = "client alone"
	// whole is the way to a broker in another process, whose work is not counted.
	whole = "to a broker"
)

// The series, by what grows.
const (
	byChunk     = "records in a chunk"
	byTopics    = "topics"
	byInstances = "instances"
	byCallers   = "flushes at once"
	byBacklog   = "chunks waiting"
)

// A point is one measurement of a series: the cheapest of some rounds, as nothing makes a run cheaper by chance.
type point struct {
	Series  string  `json:"series"`
	Path    string  `json:"path"`
	X       int     `json:"x"`
	Records int     `json:"records"`
	CPU     float64 `json:"cpu_ns"`  // of the process for each record
	Wall    float64 `json:"wall_ns"` // for each record
	Allocs  float64 `json:"allocs"`  // of Go for each chunk
}

func (p point) String() string {
	return fmt.Sprintf("%s, %s, %d: %.0f CPU ns a record, %.0f ns, %.1f allocations a chunk", p.Path, p.Series, p.X, p.CPU, p.Wall, p.Allocs)
}

// A shape is what is the same for all points of a series but for one thing.
type shape struct {
	series             string
	perChunk, topics   int
	instances, callers int
}

// usual is the shape from which each series departs in one direction. Four flushes at once are four workers.
var usual = shape{perChunk: 1000, topics: 0, instances: 1, callers: 4}

// shapes lists every point of a series but the backlog.
func shapes() map[string][]shape {
	all := map[string][]shape{}
	add := func(series string, sizes []int, set func(*shape, int)) {
		for _, n := range sizes {
			s := usual
			s.series = series
			set(&s, n)
			all[series] = append(all[series], s)
		}
	}
	add(byChunk, []int{10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000}, func(s *shape, n int) { s.perChunk = n })
	add(byTopics, []int{1, 2, 5, 10, 20, 50, 100, 200}, func(s *shape, n int) { s.topics = n })
	add(byInstances, []int{1, 2, 5, 10, 20, 50}, func(s *shape, n int) { s.instances, s.callers = n, max(n, usual.callers) })
	add(byCallers, []int{1, 2, 4, 8}, func(s *shape, n int) { s.callers = n })
	return all
}

// x is the place of the shape in its series.
func (s shape) x() int {
	switch s.series {
	case byChunk:
		return s.perChunk
	case byTopics:
		return s.topics
	case byInstances:
		return s.instances
	default:
		return s.callers
	}
}

// series measures all points of the series.
func (b *bench) series(ctx context.Context, r *report) error {
	all := shapes()
	for _, name := range []string{byChunk, byTopics, byInstances, byCallers} {
		for _, path := range []string{alone, client, whole} {
			for _, s := range all[name] {
				p, err := b.point(ctx, s, path)
				if err != nil {
					return fmt.Errorf("%s, %s, %d: %w", path, name, s.x(), err)
				}
				r.Points = append(r.Points, p)
				b.say("%s", p)
			}
		}
	}
	return b.backlogs(ctx, r)
}

// A subject is what a point measures: it brings chunks to their end, so many in all.
type subject struct {
	deliver func(ctx context.Context, chunks int) error
	close   func()
}

// mostChunks bounds the chunks of a round: each waits for its acknowledgement, and small ones are many.
const mostChunks = 3000

// point measures one shape.
func (b *bench) point(ctx context.Context, s shape, path string) (p point, err error) {
	opened, err := b.subject(ctx, s, path)
	if err != nil {
		return p, err
	}
	defer opened.close()
	chunks := max(min(b.records/s.perChunk, mostChunks), s.callers)
	if err := opened.deliver(ctx, 2*s.callers); err != nil { // connected, topics known, buffers grown
		return p, err
	}
	p = point{Series: s.series, Path: path, X: s.x(), Records: chunks * s.perChunk}
	for round := range b.rounds {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := measured(func() error { return opened.deliver(ctx, chunks) })
		if err != nil {
			return p, err
		}
		runtime.ReadMemStats(&after)
		cpu, wall := float64(c.CPU)/float64(p.Records), float64(c.Wall)/float64(p.Records)
		if round == 0 || cpu < p.CPU {
			p.CPU, p.Allocs = cpu, float64(after.Mallocs-before.Mallocs)/float64(chunks)
		}
		if round == 0 || wall < p.Wall {
			p.Wall = wall
		}
	}
	return p, nil
}

// subject opens what is measured.
func (b *bench) subject(ctx context.Context, s shape, path string) (*subject, error) {
	own := section{"brokers": "memory:1", "topics": topicName(0), "queue_limit": "1GiB"}
	for i := 1; i < s.topics; i++ {
		own["topics"] += "," + topicName(i)
	}
	if s.topics > 0 {
		own["topic_key"] = "topic"
	}
	if path == alone {
		return b.flushes(s, own, openMemory(func(*memory) {}, false))
	}
	broker, err := startBroker(ctx, max(s.topics, 1))
	if err != nil {
		return nil, err
	}
	own["brokers"] = broker.addr
	var opened *subject
	if path == client {
		opened, err = readyRecords(s, own)
	} else {
		opened, err = b.flushes(s, own, nil)
	}
	if err != nil {
		broker.stop()
		return nil, err
	}
	end := opened.close
	opened.close = func() {
		end()
		broker.stop()
	}
	return opened, nil
}

// flushes is the plugin.
func (b *bench) flushes(s shape, own section, opener reconnect.Opener) (*subject, error) {
	var instances []*plugin.Instance
	end := func() {
		for _, in := range instances {
			in.Close()
		}
	}
	for range s.instances {
		in, err := open(own, opener, b.log)
		if err != nil {
			end()
			return nil, err
		}
		instances = append(instances, in)
	}
	like := makeChunk(s.perChunk, s.topics)
	return &subject{func(ctx context.Context, chunks int) error { return flushAll(ctx, instances, s.callers, chunks, like) }, end}, nil
}

// readyRecords is the client, which gets the same records again and again.
func readyRecords(s shape, own section) (*subject, error) {
	cfg, err := decode(own)
	if err != nil {
		return nil, err
	}
	var clients []*rdkafka.Client
	end := func() {
		for _, c := range clients {
			_ = c.Close(time.Second) // nothing is outstanding
		}
	}
	for range s.instances {
		c, err := rdkafka.Open(clientOptions(cfg), 1, nil)
		if err != nil {
			end()
			return nil, err
		}
		clients = append(clients, c)
	}
	batch := &reconnect.Batch{Data: make([]byte, s.perChunk*recordSize)}
	for i := range max(s.topics, 1) {
		batch.Topics = append(batch.Topics, topicName(i))
	}
	for i := range s.perChunk {
		batch.Messages = append(batch.Messages, reconnect.Message{
			Topic: int32(i % len(batch.Topics)), Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey,
			ValOff: int32(i * recordSize), ValLen: recordSize,
		})
	}
	return &subject{func(ctx context.Context, chunks int) error {
		return each(ctx, s.callers, chunks, func(caller, _ int) error {
			d := clients[caller%len(clients)].Produce(batch)
			<-d.Done()
			if len(d.Failures()) > 0 {
				return errFlush
			}
			return nil
		})
	}, end}, nil
}

// A backlog is an outage in which so many chunks come and wait, and what follows. Times are of one chunk.
type backlog struct {
	Chunks  int     `json:"chunks"`
	Ordered bool    `json:"ordered"`
	Take    float64 `json:"take_ns"`    // its first flush, during the outage
	Refuse  float64 `json:"refuse_ns"`  // its next one
	Drain   float64 `json:"drain_ns"`   // its delivery after the outage
	Collect float64 `json:"collect_ns"` // the flush that hears of it
}

func (l backlog) String() string {
	return fmt.Sprintf("%d chunks waiting, ordered %v: taking one %.0f CPU ns, refusing it %.0f, delivering it %.0f, telling of it %.0f",
		l.Chunks, l.Ordered, l.Take, l.Refuse, l.Drain, l.Collect)
}

// backlogs measures those that are as long as shown. The chunks are small ones, as that makes the most of them.
func (b *bench) backlogs(ctx context.Context, r *report) error {
	for _, ordered := range []bool{false, true} {
		for _, n := range []int{100, 200, 500, 1000, 2000, 5000, 10_000} {
			var l backlog
			for round := range b.rounds {
				next, err := b.backlog(ctx, n, ordered)
				if err != nil {
					return fmt.Errorf("%d chunks waiting: %w", n, err)
				}
				if round == 0 {
					l = next
				}
				l = l.cheapest(next)
			}
			r.Backlogs = append(r.Backlogs, l)
			b.say("%s", l)
		}
	}
	return nil
}

// cheapest takes each figure from the one where it is lower.
func (l backlog) cheapest(o backlog) backlog {
	l.Take, l.Refuse, l.Drain, l.Collect = min(l.Take, o.Take), min(l.Refuse, o.Refuse), min(l.Drain, o.Drain), min(l.Collect, o.Collect)
	return l
}

const backlogRecords = 10

func (b *bench) backlog(ctx context.Context, n int, ordered bool) (l backlog, err error) {
	var kafka *memory
	own := section{"brokers": "memory:1", "topics": topicName(0), "queue_limit": "1GiB", "ordered": strconv.FormatBool(ordered)}
	in, err := open(own, openMemory(func(m *memory) { kafka = m }, true), io.Discard)
	if err != nil {
		return l, err
	}
	defer in.Close()
	for in.Metrics().State.String() == "connecting" {
		time.Sleep(time.Millisecond)
	}
	chunks := make([][]byte, n)
	for i := range chunks {
		chunks[i] = makeChunk(backlogRecords, 0)
		number(chunks[i], i)
	}
	l = backlog{Chunks: n, Ordered: ordered}
	flushEach := func(want plugin.Result) (float64, error) {
		c, err := measured(func() error {
			for _, chunk := range chunks {
				if got := in.Flush(chunk, "app", false); got != want {
					return fmt.Errorf("a flush gave %d, want %d", got, want)
				}
			}
			return ctx.Err()
		})
		return float64(c.CPU) / float64(n), err
	}
	if l.Take, err = flushEach(plugin.Retry); err != nil {
		return l, err
	}
	if l.Refuse, err = flushEach(plugin.Retry); err != nil {
		return l, err
	}
	c, err := measured(func() error {
		kafka.set(false)
		for in.Metrics().Open > 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	if err != nil {
		return l, err
	}
	l.Drain = float64(c.CPU) / float64(n)
	l.Collect, err = flushEach(plugin.OK)
	return l, err
}

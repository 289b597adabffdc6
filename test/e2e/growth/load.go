package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/plugin"
	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/rdkafka"
)

// section is the [OUTPUT] section of an instance.
type section map[string]string

// librdkafka lets the configuration ask the client.
type librdkafka struct{}

func (librdkafka) CheckFile(name, path string) error      { return rdkafka.CheckFile(name, path) }
func (librdkafka) CheckProperty(name, value string) error { return rdkafka.CheckProperty(name, value) }
func (librdkafka) Features() string                       { return rdkafka.Features() }

// quietLog takes the log of an instance; what goes wrong shows in the results of the flushes.
type quietLog struct{ w io.Writer }

func (quietLog) Enabled(level slog.Level) bool { return level >= slog.LevelWarn }
func (l quietLog) Print(_ slog.Level, line string) {
	_, _ = fmt.Fprintln(l.w, line)
}

// open starts an instance in this process. The opener makes its client; nil stands for librdkafka.
func open(s section, opener reconnect.Opener, log io.Writer) (*plugin.Instance, error) {
	cfg, err := decode(s)
	if err != nil {
		return nil, err
	}
	if opener == nil {
		opener = rdkafka.Opener(clientOptions(cfg))
	}
	return plugin.New(plugin.Options{
		Config: cfg, Open: opener, Memory: rdkafka.Memory{}, Relay: flblog.NewRelay(quietLog{log}, "growth"), Name: "growth",
	})
}

func decode(s section) (*config.Config, error) {
	return config.Decode(config.GetterFunc(func(name string) string { return s[name] }), librdkafka{})
}

// clientOptions are the client's settings of a section.
func clientOptions(cfg *config.Config) (o rdkafka.Options) {
	for _, p := range cfg.Properties() {
		o.Properties = append(o.Properties, rdkafka.Property{Name: p.Name, Value: p.Value})
	}
	return o
}

// words fill the text of a record.
var words = strings.Fields("order accepted for customer payment shipped item warehouse retry gateway answered within budget queue")

// recordSize is about that of a record of makeChunk, as JSON.
const recordSize = 300

// makeChunk returns a chunk of n records. With topics above zero each names one of so many, in turn.
func makeChunk(n, topics int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for i := range n {
		b = chunktest.Head(b, 1_700_000_000, uint32(i))
		fields := 7
		if topics > 0 {
			fields++
		}
		b = chunktest.Map(b, fields)
		if topics > 0 {
			b = chunktest.Str(chunktest.Str(b, "topic"), topicName(i%topics))
		}
		b = chunktest.Uint(chunktest.Str(b, "seq"), uint64(i))
		b = chunktest.Str(chunktest.Str(b, "level"), "info")
		b = chunktest.Str(chunktest.Str(b, "method"), "GET")
		b = chunktest.Str(chunktest.Str(b, "path"), "/api/v1/orders")
		b = chunktest.Uint(chunktest.Str(b, "status"), 200)
		b = chunktest.Float64(chunktest.Str(b, "took"), 0.01734)
		text := make([]byte, 0, 256)
		for len(text) < recordSize-110 {
			text = append(append(text, words[random.IntN(len(words))]...), ' ')
		}
		b = chunktest.Str(chunktest.Str(b, "message"), string(text))
	}
	return b
}

func topicName(i int) string { return "topic-" + strconv.Itoa(i) }

// number makes a chunk differ from others of the same bytes: it overwrites the seconds of the first record.
func number(chunk []byte, n int) {
	const seconds = 4 // behind the heads of two arrays and of the time
	binary.BigEndian.PutUint32(chunk[seconds:], uint32(1_700_000_000+n))
}

// A cost is what something took.
type cost struct {
	CPU, Wall time.Duration
}

// measured takes the time and this process's CPU of f.
func measured(f func() error) (cost, error) {
	cpu, began := cpuOfSelf(), time.Now()
	err := f()
	return cost{cpuOfSelf() - cpu, time.Since(began)}, err
}

func cpuOfSelf() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // can't fail for these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// errFlush is a flush that was not acknowledged although it may be tried many times.
var errFlush = errors.New("a chunk was not acknowledged")

// each calls f for that many chunks in all, from callers at once, and with the number of the chunk.
func each(ctx context.Context, callers, chunks int, f func(caller, chunk int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, callers)
	for c := range callers {
		wg.Go(func() {
			for i := c; i < chunks && errs[c] == nil; i += callers {
				if errs[c] = ctx.Err(); errs[c] == nil {
					errs[c] = f(c, i)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// flushAll flushes chunks that are like the one given; the callers share the instances.
func flushAll(ctx context.Context, instances []*plugin.Instance, callers, chunks int, like []byte) error {
	own := make([][]byte, callers)
	for c := range own {
		own[c] = append([]byte(nil), like...)
	}
	return each(ctx, callers, chunks, func(c, i int) error {
		number(own[c], i)
		return flush(instances[c%len(instances)], own[c])
	})
}

// flush hands a chunk over until it is acknowledged.
func flush(in *plugin.Instance, chunk []byte) error {
	for range 100 {
		switch in.Flush(chunk, "app", true) {
		case plugin.OK:
			return nil
		case plugin.Error:
			return errFlush
		case plugin.Retry:
			time.Sleep(10 * time.Millisecond)
		}
	}
	return errFlush
}

package main

/*
#include <stdint.h>
#include <stdlib.h>

// The part of librdkafka's public API that the loop calls. The library comes with package rdkafka.
struct rd_kafka_s;
struct rd_kafka_conf_s;
struct rd_kafka_topic_s;
struct message {
	int err;
	struct rd_kafka_topic_s *rkt;
	int32_t partition;
	void *payload;
	size_t len;
	void *key;
	size_t key_len;
	int64_t offset;
	void *opaque;
};
struct rd_kafka_conf_s *rd_kafka_conf_new(void);
int rd_kafka_conf_set(struct rd_kafka_conf_s *, const char *, const char *, char *, size_t);
void rd_kafka_conf_set_dr_msg_cb(struct rd_kafka_conf_s *, void (*)(struct rd_kafka_s *, const struct message *, void *));
struct rd_kafka_s *rd_kafka_new(unsigned, struct rd_kafka_conf_s *, char *, size_t);
struct rd_kafka_topic_s *rd_kafka_topic_new(struct rd_kafka_s *, const char *, void *);
int rd_kafka_produce_batch(struct rd_kafka_topic_s *, int32_t, int, struct message *, int);
int rd_kafka_poll(struct rd_kafka_s *, int);
int rd_kafka_flush(struct rd_kafka_s *, int);
void rd_kafka_topic_destroy(struct rd_kafka_topic_s *);
void rd_kafka_destroy(struct rd_kafka_s *);

static long reported, failed;

static void on_report(struct rd_kafka_s *rk, const struct message *m, void *opaque)
{
	(void)rk, (void)opaque;
	reported++;
	if (m->err)
		failed++;
}

static struct rd_kafka_s *ceiling_open(char **settings, int n, char *text, size_t size)
{
	struct rd_kafka_conf_s *conf = rd_kafka_conf_new();

	for (int i = 0; i < n; i += 2) {
		if (rd_kafka_conf_set(conf, settings[i], settings[i + 1], text, size))
			return NULL;
	}
	rd_kafka_conf_set_dr_msg_cb(conf, on_report);
	return rd_kafka_new(0, conf, text, size);
}

// Produces records that are ready, a batch at a time, with at most two batches without a report. librdkafka does not copy
// them. Returns the number of failures when all are reported.
static long ceiling_loop(struct rd_kafka_s *rk, const char *topic, char *data, int size, int batch, long records)
{
	struct rd_kafka_topic_s *rkt = rd_kafka_topic_new(rk, topic, NULL);
	struct message *m = calloc((size_t)batch, sizeof(*m));

	reported = failed = 0;

	for (long sent = 0; sent < records; ) {
		int n = records - sent < batch ? (int)(records - sent) : batch;

		for (int i = 0; i < n; i++)
			m[i] = (struct message){ .payload = data + (size_t)i * size, .len = (size_t)size };
		failed += n - rd_kafka_produce_batch(rkt, -1, 0, m, n);
		sent += n;
		while (sent - reported > batch)
			rd_kafka_poll(rk, 100);
	}
	rd_kafka_flush(rk, 60000);
	rd_kafka_topic_destroy(rkt);
	free(m);
	return failed + records - reported;
}
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/rdkafka"
)

// The produce half runs in a process of its own, this command with -half, so that its CPU is counted apart. The loop in C
// calls librdkafka as it comes, ours the one that the plugin brings.
const (
	halfC  = "c"
	halfGo = "go"
	// perChunk is how many records are handed over at once, about what a chunk of Fluent Bit holds.
	perChunk = 5000
	// halfMegabytes is how many MiB a run delivers at most: of more, the time is that of the broker's disk. Such runs are short, so
	// there are halfRounds for each round.
	halfMegabytes = 300
	halfRounds    = 3
)

// halves compares the two.
func (b *bench) halves(ctx context.Context, r *report) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	programs := map[string]string{halfC: self, halfGo: b.private}
	for _, s := range shapes() {
		n := (min(b.megabytes, halfMegabytes) << 20) / s.size
		for _, codec := range codecs {
			for range b.rounds * halfRounds {
				for _, kind := range []string{halfC, halfGo} {
					h, err := b.half(ctx, programs[kind], kind, codec, s, n)
					if err != nil {
						return err
					}
					r.Produce = append(r.Produce, h)
					b.say("%s", h)
				}
			}
		}
	}
	return nil
}

// half runs one process to its end.
func (b *bench) half(ctx context.Context, program, kind, codec string, s shape, n int) (produce, error) {
	h := produce{Shape: s.name, Codec: codec, Kind: kind, Records: n}
	topic, err := b.topic(ctx)
	if err != nil {
		return h, err
	}
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-half", kind, "-brokers", strings.Join(b.cluster.Brokers(), ","), "-topic", topic,
		"-codec", codec, "-records", strconv.Itoa(n), "-size", strconv.Itoa(s.size))
	cmd.Stderr = b.log
	out, err := cmd.Output()
	if err != nil {
		return h, fmt.Errorf("the produce half in %s: %w", kind, err)
	}
	if _, err := b.admin.DeleteTopics(ctx, topic); err != nil {
		return h, err
	}
	return h, json.Unmarshal(out, &h.cost)
}

// A loop delivers records that are ready; close ends its client.
type loop struct {
	deliver func(records int) error
	close   func() error
}

// runHalf is the child process: it produces and prints what that took. The first chunk is not counted: the client connects.
func runHalf(s settings, stdout io.Writer) error {
	open := openC
	if s.half == halfGo {
		open = openGo
	}
	l, err := open(s, payload(s.size))
	if err != nil {
		return err
	}
	if err := l.deliver(perChunk); err != nil {
		return err
	}
	before, began := cpuOfSelf(), time.Now()
	if err := l.deliver(s.records); err != nil {
		return err
	}
	c := cost{Seconds: time.Since(began).Seconds(), CPU: (cpuOfSelf() - before).Seconds()}
	if err := l.close(); err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(c)
}

func cpuOfSelf() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // can't fail for these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// payload is a chunk of records that are ready.
func payload(size int) []byte {
	all := shapes()
	s := all[0]
	if size != s.size {
		s = all[1]
	}
	random := rand.New(rand.NewPCG(1, 2))
	var data []byte
	for i := range perChunk {
		data = s.line(data, int64(i), random)
		for len(data) < (i+1)*size {
			data = append(data, ' ')
		}
		data = data[:(i+1)*size]
	}
	return data
}

// clientSettings are the same for both, and the plugin's own.
func clientSettings(s settings) []rdkafka.Property {
	return []rdkafka.Property{
		{Name: "linger.ms", Value: "1"},
		{Name: "bootstrap.servers", Value: s.brokers},
		{Name: "compression.codec", Value: s.codec},
		{Name: "enable.idempotence", Value: "true"},
		{Name: "queue.buffering.max.messages", Value: "0"},
		{Name: "queue.buffering.max.kbytes", Value: "2147483647"},
	}
}

func openC(s settings, data []byte) (*loop, error) {
	var text [512]C.char
	var words []*C.char
	for _, p := range clientSettings(s) {
		words = append(words, C.CString(p.Name), C.CString(p.Value))
	}
	list := (**C.char)(C.malloc(C.size_t(len(words)) * C.size_t(unsafe.Sizeof(words[0]))))
	copy(unsafe.Slice(list, len(words)), words)
	defer func() {
		for _, w := range words {
			C.free(unsafe.Pointer(w))
		}
		C.free(unsafe.Pointer(list))
	}()
	rk := C.ceiling_open(list, C.int(len(words)), &text[0], C.size_t(len(text)))
	if rk == nil {
		return nil, errors.New(C.GoString(&text[0]))
	}
	topic, ready := C.CString(s.topic), C.CBytes(data)
	return &loop{
		deliver: func(records int) error {
			if failed := C.ceiling_loop(rk, topic, (*C.char)(ready), C.int(s.size), perChunk, C.long(records)); failed != 0 {
				return fmt.Errorf("%d records failed", failed)
			}
			return nil
		},
		close: func() error {
			C.rd_kafka_destroy(rk)
			C.free(ready)
			C.free(unsafe.Pointer(topic))
			return nil
		},
	}, nil
}

// ready fills memory that is lent as an encoder does, which is not to be measured here: a block that was used before has
// the records still.
func ready(block, data []byte) []byte {
	block = block[:len(data)]
	const each = 1000 // bytes between those that are looked at
	for i := 0; i < len(data); i += each {
		if block[i] != data[i] {
			copy(block, data)
			break
		}
	}
	return block
}

func openGo(s settings, data []byte) (*loop, error) {
	client, err := rdkafka.Open(rdkafka.Options{Properties: clientSettings(s)}, 1, nil)
	if err != nil {
		return nil, err
	}
	deliver := func(records int) error {
		memory := rdkafka.Memory{}
		var waiting []*reconnect.Delivery
		await := func(d *reconnect.Delivery) error {
			<-d.Done()
			if failed := len(d.Failures()); failed > 0 {
				return fmt.Errorf("%d records failed", failed)
			}
			return nil
		}
		batch := reconnect.Batch{Topics: []string{s.topic}}
		for sent := 0; sent < records; {
			n := min(perChunk, records-sent)
			batch.Messages, batch.Data, batch.Lent = batch.Messages[:0], ready(memory.Lend(len(data)), data)[:n*s.size], true
			for i := range n {
				batch.Messages = append(batch.Messages, reconnect.Message{
					Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValOff: int32(i * s.size), ValLen: int32(s.size),
				})
			}
			waiting = append(waiting, client.Produce(&batch))
			sent += n
			if len(waiting) > 1 {
				if err := await(waiting[0]); err != nil {
					return err
				}
				waiting = waiting[1:]
			}
		}
		for _, d := range waiting {
			if err := await(d); err != nil {
				return err
			}
		}
		return nil
	}
	return &loop{deliver: deliver, close: func() error { return client.Close(time.Minute) }}, nil
}

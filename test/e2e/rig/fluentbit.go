package rig

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/test/e2e/kafka/freeport"
)

// A fluentBit is the real one. Records go in through in_http, whose answer 201 means that the record is stored, and whole
// chunks through in_forward, which says as much.
type fluentBit struct {
	base
	client *http.Client
	lease  *freeport.Lease
	rate   *rate // nil while there is none

	reloading atomic.Bool // posts may fail: the input closes and opens again
}

// A rate runs in the background.
type rate struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// askEvery is how often a starting or reloading host is asked.
const askEvery = 50 * time.Millisecond

func newFluentBit(opts HostOptions) (*fluentBit, error) {
	lease, err := freeport.Take(3)
	if err != nil {
		return nil, err
	}
	// One connection for each request: the input closes them when it is paused.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return &fluentBit{base: base{opts: opts}, lease: lease, client: client}, nil
}

// Kind implements Host.
func (h *fluentBit) Kind() string { return "fluent-bit" }

func (h *fluentBit) inputPort() string  { return strconv.Itoa(h.lease.Ports()[0]) }
func (h *fluentBit) serverPort() string { return strconv.Itoa(h.lease.Ports()[1]) }
func (h *fluentBit) chunkPort() string  { return strconv.Itoa(h.lease.Ports()[2]) }

// server is the address of a page of Fluent Bit's own server.
func (h *fluentBit) server(path string) string {
	return "http://" + net.JoinHostPort("127.0.0.1", h.serverPort()) + path
}

// Configure implements Host.
func (h *fluentBit) Configure(c Conf) error {
	own := map[string]string{"http_server": "on", "http_listen": "127.0.0.1", "http_port": h.serverPort()}
	input := "[INPUT]\n    name http\n    listen 127.0.0.1\n    port " + h.inputPort() +
		"\n    tag app\n    successful_response_code 201\n    storage.type filesystem\n" +
		"\n[INPUT]\n    name forward\n    listen 127.0.0.1\n    port " + h.chunkPort() + "\n    storage.type filesystem\n"
	text, err := c.render(h.storage(), own, input)
	if err != nil {
		return err
	}
	return h.writeConf(c.file(), text)
}

// SecondOutput implements Host. A file shows each flush by its growth.
func (h *fluentBit) SecondOutput() string {
	return "[OUTPUT]\n    name file\n    alias " + secondName + "\n    match *\n    path " + h.opts.Dir + "\n    file " + secondName + "\n"
}

// Start implements Host.
func (h *fluentBit) Start(ctx context.Context, args ...string) error {
	if err := h.launch(args, nil, h.log.add); err != nil {
		return err
	}
	return h.waitReady(ctx, "starting Fluent Bit")
}

// waitReady asks the server of Fluent Bit, which it starts when all outputs are made, and then the input.
func (h *fluentBit) waitReady(ctx context.Context, doing string) error {
	for {
		if h.process.Ended() {
			return h.diedEarly(doing)
		}
		_, err := h.get(ctx, "/api/v1/uptime")
		if err == nil {
			var c net.Conn
			if c, err = net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", h.inputPort()), time.Second); err == nil {
				return c.Close()
			}
		}
		if stopped := Pause(ctx, askEvery); stopped != nil {
			return fmt.Errorf("%s: %w (last: %w); its last lines:\n%s", doing, stopped, err, h.log.Tail(logTail))
		}
	}
}

func (h *fluentBit) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.server(path), nil)
	if err != nil {
		return nil, err
	}
	answer, err := h.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("getting %s: %s", path, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// Run implements Host.
func (h *fluentBit) Run(ctx context.Context, args ...string) (Exit, error) {
	return h.run(ctx, args, nil, h.log.add)
}

// batch is how many records go into one request, which large ones end earlier: Fluent Bit takes 4 MB.
const (
	batch        = 200
	requestBytes = 1 << 20
)

// Log implements Host.
func (h *fluentBit) Log(ctx context.Context, n int) error { return h.LogShaped(ctx, n, Shape{}) }

// LogShaped implements Host.
func (h *fluentBit) LogShaped(ctx context.Context, n int, shape Shape) error {
	if !h.Running() {
		return fmt.Errorf("logging %d records: %w", n, errNotRunning)
	}
	if shape.Junk {
		return errors.New("logging junk: the input of Fluent Bit takes records only")
	}
	most := batch
	if shape.Size > 0 {
		most = min(batch, 1+requestBytes/shape.Size)
	}
	for left := n; left > 0; left -= most {
		if err := h.post(ctx, min(left, most), shape); err != nil {
			return fmt.Errorf("logging %d records: %w", n, err)
		}
	}
	return nil
}

// post hands over some records in one request. Without an answer they are in doubt.
func (h *fluentBit) post(ctx context.Context, n int, shape Shape) error {
	first, last := h.opts.Tally.take(n)
	h.opts.Tally.send(first, last, shape.Destination)
	fields := shape.fields()
	var body bytes.Buffer
	for seq := first; seq <= last; seq++ {
		sep := byte(',')
		if seq == first {
			sep = '['
		}
		body.WriteByte(sep)
		fmt.Fprintf(&body, `{"seq":%d,"log":%q%s}`, seq, shape.text(seq), fields)
	}
	body.WriteByte(']')
	url := "http://" + net.JoinHostPort("127.0.0.1", h.inputPort()) + "/app"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := h.client.Do(req)
	if err != nil {
		h.opts.Tally.doubt(first, last)
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		h.opts.Tally.doubt(first, last)
		return fmt.Errorf("posting to %s: %s", url, answer.Status)
	}
	h.opts.Tally.accept(first, last)
	return nil
}

// Chunk implements Host. The forward protocol has a mode in which the entries come as they are to be stored.
func (h *fluentBit) Chunk(ctx context.Context, tag string, chunk []byte) error {
	if !h.Running() {
		return fmt.Errorf("handing over a chunk: %w", errNotRunning)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", h.chunkPort()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	message := chunktest.Bin(chunktest.Str(chunktest.Array(nil, 3), tag), string(chunk))
	message = chunktest.Str(chunktest.Str(chunktest.Map(message, 1), "chunk"), "one")
	if _, err := conn.Write(message); err != nil {
		return err
	}
	ack := chunktest.Str(chunktest.Str(chunktest.Map(nil, 1), "ack"), "one")
	if _, err := io.ReadFull(conn, make([]byte, len(ack))); err != nil {
		return fmt.Errorf("handing over a chunk: waiting for the acknowledgement: %w", err)
	}
	return nil
}

// plainSize is the size of the log text unless something else is asked for, as in the C host.
const plainSize = 300

// text is that of the log field.
func (s Shape) text(seq int64) string {
	text := fmt.Sprintf("record %d ", seq)
	return text + strings.Repeat("x", max(0, cmp.Or(s.Size, plainSize)-len(text)))
}

// fields are the further keys as JSON, each behind a comma.
func (s Shape) fields() string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s.Fields)) {
		fmt.Fprintf(&text, ",%q:%q", key, s.Fields[key])
	}
	return text.String()
}

// ticks is how many times a second a rate hands records over.
const ticks = 10

// Rate implements Host.
func (h *fluentBit) Rate(_ context.Context, perSecond int, during time.Duration) error {
	if h.rate != nil {
		return errors.New("logging at a rate: one is under way")
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &rate{cancel: cancel, done: make(chan struct{})}
	h.rate = r
	go func() {
		defer close(r.done)
		begin, sent := time.Now(), 0
		total := int(during.Seconds() * float64(perSecond))
		for sent < total && r.err == nil {
			due := min(total, int(time.Since(begin).Seconds()*float64(perSecond)))
			if due > sent {
				before := h.reloading.Load()
				if err := h.Log(ctx, due-sent); err == nil {
					sent = due
				} else if !before && !h.reloading.Load() {
					r.err = err // an input that reloads gets its records, with new numbers, once it is back
				}
			}
			if Pause(ctx, time.Second/ticks) != nil {
				return
			}
		}
	}()
	return nil
}

// RateOver implements Host.
func (h *fluentBit) RateOver(ctx context.Context) error {
	if h.rate == nil {
		return nil
	}
	select {
	case <-h.rate.done:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the end of the rate: %w", ctx.Err())
	}
	return h.endRate()
}

// EndRate implements Host.
func (h *fluentBit) EndRate(context.Context) error { return h.endRate() }

// endRate ends a rate, if there is one, and returns what went wrong in it.
func (h *fluentBit) endRate() error {
	if h.rate == nil {
		return nil
	}
	h.rate.cancel()
	<-h.rate.done
	err := h.rate.err
	h.rate = nil
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

var reloaded = regexp.MustCompile(`\[reload\] (start everything|.*Reloading is halted)|reloading in progress`)

// Reload implements Host.
func (h *fluentBit) Reload(ctx context.Context) (time.Duration, error) {
	if !h.Running() {
		return 0, fmt.Errorf("reloading: %w", errNotRunning)
	}
	h.reloading.Store(true)
	defer h.reloading.Store(false)
	for {
		begin, from := time.Now(), h.log.Len()
		if err := h.process.signal(syscall.SIGHUP); err != nil {
			return 0, err
		}
		line, err := h.log.Wait(ctx, from, reloaded)
		switch {
		case err != nil:
			return 0, fmt.Errorf("reloading: %w", err)
		case strings.Contains(line.Text, "halted"):
			return time.Since(begin), ErrRefused
		case strings.Contains(line.Text, "start everything"):
			return time.Since(begin), h.waitReady(ctx, "reloading")
		}
		// The last reload is not over yet, though the new pipeline runs.
		if err := Pause(ctx, askEvery); err != nil {
			return 0, fmt.Errorf("reloading: %w", err)
		}
	}
}

// Stop implements Host. A rate ends first: what is posted to a host that stops is in doubt.
func (h *fluentBit) Stop(ctx context.Context) (Exit, error) {
	if err := h.endRate(); err != nil {
		return Exit{}, err
	}
	return h.terminate(ctx)
}

// Kill implements Host.
func (h *fluentBit) Kill() error {
	if !h.Running() {
		return fmt.Errorf("killing Fluent Bit: %w", errNotRunning)
	}
	h.process.Kill()
	_ = h.endRate() // its last request has failed
	return nil
}

// Counts implements Host. The figures are up to a second old.
func (h *fluentBit) Counts(ctx context.Context) (map[string]Counts, error) {
	page, err := h.get(ctx, "/api/v1/metrics")
	if err != nil {
		return nil, err
	}
	var metrics struct {
		Output map[string]struct {
			Records int `json:"proc_records"`
			Retries int `json:"retries"`
			Dropped int `json:"dropped_records"`
		} `json:"output"`
	}
	if err := json.Unmarshal(page, &metrics); err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	counts := map[string]Counts{}
	for name, o := range metrics.Output {
		counts[name] = Counts{Records: o.Records, Retries: o.Retries, Dropped: o.Dropped}
	}
	return counts, nil
}

// Rhythm implements Host.
func (h *fluentBit) Rhythm(ctx context.Context, during time.Duration) (time.Duration, error) {
	var size int64
	var longest time.Duration
	begin, flushes := time.Now(), 0
	last := begin
	for now := begin; now.Sub(begin) < during; now = time.Now() {
		info, err := os.Stat(filepath.Join(h.opts.Dir, secondName))
		if err == nil && info.Size() != size {
			if flushes > 0 {
				longest = max(longest, now.Sub(last))
			}
			size, last, flushes = info.Size(), now, flushes+1
		}
		if err := Pause(ctx, askEvery); err != nil {
			return 0, err
		}
	}
	if flushes < 2 {
		return 0, fmt.Errorf("watching the rhythm: output %q flushed less than twice in %s", secondName, during)
	}
	return max(longest, time.Since(last)), nil
}

// Close implements Host.
func (h *fluentBit) Close() error {
	if h.Running() {
		h.process.Kill()
	}
	_ = h.endRate() // its last request may have failed
	h.lease.Release()
	return nil
}

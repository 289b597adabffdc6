package plugin

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host collects the lines of an instance.
type host struct {
	mu    sync.Mutex
	lines []string
}

func (h *host) Enabled(slog.Level) bool { return true }

func (h *host) Print(l slog.Level, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, l.String()+" "+text)
}

func (h *host) count(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, l := range h.lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

// sum adds up the counts of the lines with a text.
func (h *host) sum(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := 0
	for _, l := range h.lines {
		var n int
		if _, count, ok := strings.Cut(l, " count="); ok && strings.Contains(l, text) {
			if _, err := fmt.Sscan(count, &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// bench is an instance on a network of fakes, inside a synctest bubble.
type bench struct {
	*Instance
	t    *testing.T
	net  *reconnecttest.Network
	host *host
}

type settings map[string]string

func decode(t testing.TB, s settings) *config.Config {
	t.Helper()
	cfg, err := config.Decode(config.GetterFunc(func(name string) string {
		if v, ok := s[name]; ok {
			return v
		}
		if name == "brokers" {
			return "a:1"
		}
		return ""
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// inBubble runs f with an instance whose client has had the time to connect.
func inBubble(t *testing.T, s settings, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		relay := flblog.NewRelay(h, "test")
		net := reconnecttest.NewNetwork("a:1")
		in, err := New(Options{Config: decode(t, s), Open: net.Open, Memory: reconnecttest.Memory{}, Relay: relay})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{Instance: in, t: t, net: net, host: h}
		time.Sleep(time.Second)
		defer func() {
			in.Close()
			// The timers of the supervisor's own lines end with the bubble's time.
			time.Sleep(time.Minute)
		}()
		f(b)
	})
}

// records is a chunk of n records with numbers from first on.
func records(first, n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, record(fmt.Sprint(first+i))...)
	}
	return b
}

func record(text string) []byte {
	b := header(1700000000)
	b = chunktest.Map(b, 1)
	b = chunktest.Str(b, "seq")
	return chunktest.Str(b, text)
}

// header begins an entry: what follows is its body.
func header(sec uint32) []byte {
	b := chunktest.Array(chunktest.Array(nil, 2), 2)
	return chunktest.Map(chunktest.Time(b, sec, 0), 0)
}

func (b *bench) flush(chunk []byte, worker bool, want Result) {
	b.t.Helper()
	if got := b.Flush(chunk, "tag", worker); got != want {
		b.t.Fatalf("flush: %v, want %v; log %q", got, want, b.host.lines)
	}
}

// stored counts how often each value stands in the topic.
func (b *bench) stored() map[string]int { return countValues(b.net.Messages()) }

func countValues(messages []reconnecttest.Message) map[string]int {
	m := map[string]int{}
	for _, msg := range messages {
		m[msg.Value]++
	}
	return m
}

func (b *bench) wantStored(n int) {
	b.t.Helper()
	wantOnce(b.t, b.net.Messages(), n)
}

// wantOnce checks that there are n values, each once.
func wantOnce(t *testing.T, messages []reconnecttest.Message, n int) {
	t.Helper()
	s := countValues(messages)
	for v, times := range s {
		if times != 1 {
			t.Fatalf("%s was stored %d times", v, times)
		}
	}
	if len(s) != n {
		t.Fatalf("%d records stored, want %d", len(s), n)
	}
}

func TestInstance_OKMeansAcknowledged(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.flush(records(1, 20), true, OK)
		b.wantStored(20)
		m := b.net.Messages()[0]
		if m.Topic != "fluent-bit" || m.Value != `{"@timestamp":1700000000.0,"seq":"1"}` || !m.NullKey {
			t.Errorf("%+v", m)
		}
	})
}

func TestInstance_SlowAcknowledgementIsCollectedByTheRetry(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.net.AckDelay = 300 * time.Millisecond
		start := time.Now()
		b.flush(records(1, 5), false, Retry)
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("on the engine thread the flush took %v", took)
		}
		b.flush(records(1, 5), false, Retry)
		time.Sleep(time.Second)
		b.flush(records(1, 5), false, OK)
		b.wantStored(5)
		if b.ledger.Len() != 0 {
			t.Error("the receipt was not consumed")
		}
		// The same bytes again are another chunk.
		b.net.AckDelay = time.Millisecond
		b.flush(records(1, 5), false, OK)
		if s := b.stored(); len(s) != 5 || s[`{"@timestamp":1700000000.0,"seq":"1"}`] != 2 {
			t.Errorf("equal bytes are two deliveries: %v", s)
		}
	})
}

func TestInstance_OutageRefusesAtOnceAndDoublesNothing(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.net.AckDelay = 100 * time.Millisecond
		done := make(chan Result)
		go func() { done <- b.Flush(records(1, 5), "tag", true) }()
		time.Sleep(10 * time.Millisecond)
		b.net.Set(reconnecttest.Down)
		if r := <-done; r != Retry {
			t.Fatalf("the waiting flush got %v", r)
		}
		if b.sup.Admit() {
			t.Fatal("still admitted")
		}
		start := time.Now()
		b.flush(records(100, 5), true, Retry)
		b.flush(records(1, 5), true, Retry) // its receipt waits
		if took := time.Since(start); took != 0 {
			t.Errorf("refusals took %v", took)
		}
		time.Sleep(10 * time.Minute)
		b.net.Set(reconnecttest.Serving)
		time.Sleep(7 * time.Second)
		b.wantStored(10) // went out by themselves
		b.flush(records(1, 5), true, OK)
		b.flush(records(100, 5), true, OK)
		b.wantStored(10)
		if n := b.host.count("ERROR"); n != 1 {
			t.Errorf("%d error lines for one outage", n)
		}
		if n := b.host.count("ERROR") + b.host.count("WARN"); n > 20 {
			t.Errorf("%d warnings and errors in ten minutes", n)
		}
	})
}

// After one wait that timed out nobody waits long: at a stop the host works off a
// worker's queue, one wait after the other.
func TestInstance_AfterATimeOutWaitsAreShort(t *testing.T) {
	inBubble(t, settings{"stall_timeout": "1h"}, func(b *bench) {
		b.net.Set(reconnecttest.Mute)
		start := time.Now()
		b.flush(records(1, 1), true, Retry)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("first wait %v", took)
		}
		for i := range 5 {
			b.flush(records(10*i+10, 1), true, Retry)
		}
		if took := time.Since(start); took > 10*time.Second+5*50*time.Millisecond {
			t.Errorf("six waits took %v", took)
		}
		b.net.Set(reconnecttest.Serving)
		b.net.Cut()
		time.Sleep(time.Second)
		b.flush(records(1, 1), true, OK)
		if b.slow.Load() {
			t.Error("still slow after an acknowledgement")
		}
	})
}

func TestInstance_QueueLimitAnswersRetry(t *testing.T) {
	inBubble(t, settings{"queue_limit": "1MiB"}, func(b *bench) {
		b.net.AckDelay = time.Hour
		big := record(strings.Repeat("x", 800_000))
		b.flush(big, false, Retry)
		b.flush(record(strings.Repeat("y", 800_000)), false, Retry)
		if b.ledger.Len() != 1 {
			t.Errorf("%d receipts: the second chunk must not be in the queue", b.ledger.Len())
		}
		if q := b.courier.Status().Queued; q < 800_000 || q > 1<<20 {
			t.Errorf("%d bytes queued", q)
		}
	})
}

func TestInstance_RejectedRecordIsLeftOutAndTold(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if strings.Contains(m.Value, `"3"`) {
				return &reconnect.Failure{Class: fsm.ClassRecord, Code: 87, Text: "Broker: invalid record"}
			}
			return nil
		}
		b.flush(records(1, 5), true, OK)
		b.wantStored(4)
		if b.counts.rejectedInAll() != 1 || b.host.count("records can never be written") != 1 {
			t.Errorf("rejected %d, log %q", b.counts.rejectedInAll(), b.host.lines)
		}
		b.flush(records(1, 5), true, OK)
		b.flush(records(1, 5), true, OK)
		if n := b.host.count("records can never be written"); n != 1 {
			t.Errorf("%d lines within a minute", n)
		}
		time.Sleep(quietPeriod + 2*time.Second)
		if b.host.count("records can never be written") != 2 || b.host.count("count=2") != 1 {
			t.Errorf("what came in the minute is not told: %q", b.host.lines)
		}
	})
}

func TestInstance_OperatorFixableFailureIsTriedAgain(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		var missing atomic.Bool
		missing.Store(true)
		b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if missing.Load() && strings.Contains(m.Value, `"3"`) {
				return &reconnect.Failure{Class: fsm.ClassTopic, Code: 3, Text: "unknown topic"}
			}
			return nil
		}
		start := time.Now()
		b.flush(records(1, 5), true, Retry)
		if took := time.Since(start); took > time.Second {
			t.Errorf("waited %v for an operator", took)
		}
		b.wantStored(4)
		missing.Store(false)
		time.Sleep(5 * time.Second)
		b.wantStored(5) // by itself
		b.flush(records(1, 5), true, OK)
	})
}

func TestInstance_ChunksWithoutRecords(t *testing.T) {
	group := chunktest.Map(header(0xFFFFFFFF), 0)
	inBubble(t, nil, func(b *bench) {
		b.flush(nil, true, OK)
		b.flush(group, true, OK)
		b.flush([]byte{0x01}, true, Error)
		b.flush(append(records(1, 2), 0xc1, 0xff), true, OK)
		b.wantStored(2)
		if b.host.count("bytes of a chunk are no record") != 1 {
			t.Errorf("%q", b.host.lines)
		}
	})
}

func TestInstance_PanicIsLoggedOnceAndRetried(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.net.Reject = func(reconnecttest.Message) *reconnect.Failure { return nil }
		in := b.Instance
		cfg := *in.cfg
		cfg.Topics = nil // no encoder can be made of it: the attempt runs into a nil pointer
		in.cfg = &cfg
		b.flush(records(1, 1), true, Retry)
		b.flush(records(1, 1), true, Retry)
		if n := b.host.count("panic in the plugin"); n != 1 {
			t.Errorf("%d panic lines", n)
		}
	})
}

func TestInstance_CloseAnswersWaitingFlushes(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.net.Set(reconnecttest.Mute)
		done := make(chan Result)
		go func() { done <- b.Flush(records(1, 5), "tag", true) }()
		time.Sleep(time.Second)
		start := time.Now()
		b.Close()
		if r := <-done; r != Retry {
			t.Errorf("%v", r)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("close took %v", took)
		}
		b.flush(records(1, 1), true, Retry)
	})
}

func TestInstance_ManyFlushesAtOnce(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				chunk := records(1000*i, 20)
				for b.Flush(chunk, "tag", i%2 == 0) != OK {
					time.Sleep(time.Second)
				}
			})
		}
		time.Sleep(5 * time.Millisecond)
		b.net.Set(reconnecttest.Down)
		time.Sleep(30 * time.Second)
		b.net.Set(reconnecttest.Serving)
		wg.Wait()
		b.wantStored(1000)
	})
}

func TestResultOf(t *testing.T) {
	for o, want := range map[outcome]Result{
		delivered: OK, takenOver: OK, noRecords: OK, undecodable: Error,
		refused: Retry, queueFull: Retry, notInTurn: Retry, waiting: Retry, panicked: Retry, outcome(200): Retry,
	} {
		if got := resultOf(o); got != want {
			t.Errorf("%d: %v, want %v", o, got, want)
		}
	}
}

// A broker judges batches, and a batch holds records of several chunks: good records must
// not go down with a bad one, whoever shares their batch.
func TestInstance_RefusedBatchesLoseOnlyTheBadRecord(t *testing.T) {
	for _, worker := range []bool{true, false} {
		inBubble(t, nil, func(b *bench) {
			b.net.AckDelay = 20 * time.Millisecond
			b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
				// Whatever is on its way with others is refused, and one record always.
				if b.inFlight() > 1 || strings.Contains(m.Value, `"7"`) {
					return &reconnect.Failure{Class: fsm.ClassRecord, Code: 10, Text: "Broker: Message size too large"}
				}
				return nil
			}
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					chunk := records(10*i, 10)
					for b.Flush(chunk, "tag", worker) != OK {
						time.Sleep(time.Second)
					}
				})
			}
			wg.Wait()
			b.wantStored(79)
			if n := b.counts.rejectedInAll(); n != 1 {
				t.Errorf("%d records rejected", n)
			}
		})
	}
}

// inFlight is how many messages are in the client's hands.
func (b *bench) inFlight() int { return b.sup.Outstanding() }

// While acknowledgements are overdue the engine's thread does not wait for each chunk anew.
func TestInstance_EngineWaitsOnceForABrokerThatHangs(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.net.Set(reconnecttest.Mute)
		start := time.Now()
		for i := range 100 {
			b.flush(records(10*i, 1), false, Retry)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("a hundred flushes kept the engine for %v", took)
		}
	})
}

package reconnect_test

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// rig is a supervisor on a fake network, inside a bubble.
type rig struct {
	*testing.T
	net *reconnecttest.Network
	sup *reconnect.Supervisor
	rec *recorder
	log *lines
}

type setup struct {
	addrs []string
	mode  reconnecttest.Mode
	cfg   fsm.Config
	// prepare changes the network before the first client is opened.
	prepare func(*reconnecttest.Network)
}

// bubble runs f in fake time with a supervisor, and closes it.
func bubble(t *testing.T, s setup, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if len(s.addrs) == 0 {
			s.addrs = []string{"a:9092"}
		}
		if s.cfg.Rand == nil {
			s.cfg.Rand = rand.New(rand.NewPCG(1, 1)).Float64
		}
		r := &rig{T: t, net: reconnecttest.NewNetwork(s.addrs...), rec: &recorder{}, log: &lines{}}
		r.net.Set(s.mode)
		if s.prepare != nil {
			s.prepare(r.net)
		}
		logger := r.log.logger()
		sup, err := reconnect.New(reconnect.Options{
			Config: s.cfg, Open: r.net.Open, Logger: logger,
			Observer: both{r.rec, reconnect.NewLogObserver(logger)},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.sup = sup
		defer func() { // also after a Fatal: the bubble must be left empty
			if err := sup.Close(context.Background()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}()
		synctest.Wait()
		f(r)
	})
}

// sleep lets time pass and everything that is due happen.
func (r *rig) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) want(s fsm.State) {
	r.Helper()
	synctest.Wait()
	if got := r.sup.State(); got != s {
		r.Fatalf("at %s: state %s, want %s\n%s", r.net.Now(), got, s, r.log)
	}
}

// wantWithin waits until the state is reached and returns how long it took.
func (r *rig) wantWithin(s fsm.State, limit time.Duration) time.Duration {
	r.Helper()
	start := time.Now()
	for r.sup.State() != s {
		if time.Since(start) > limit {
			r.Fatalf("at %s: state %s, want %s within %s\n%s", r.net.Now(), r.sup.State(), s, limit, r.log)
		}
		r.sleep(time.Millisecond)
	}
	return time.Since(start)
}

// produce hands n messages over.
func (r *rig) produce(n int) *reconnect.Delivery {
	r.Helper()
	d, err := r.sup.Produce(batchOf(n))
	if err != nil {
		r.Fatalf("at %s in %s: %v", r.net.Now(), r.sup.State(), err)
	}
	return d
}

func batchOf(n int) *reconnect.Batch {
	b := &reconnect.Batch{Topics: []string{"t"}, Data: []byte("value")}
	for range n {
		b.Messages = append(b.Messages, reconnect.Message{Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValLen: 5})
	}
	return b
}

func settled(d *reconnect.Delivery) bool { return isClosed(d.Done()) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// delivered fails unless the delivery settles in time with everything acknowledged.
func (r *rig) delivered(d *reconnect.Delivery, limit time.Duration) time.Duration {
	r.Helper()
	start := time.Now()
	select {
	case <-d.Done():
	case <-time.After(limit):
		r.Fatalf("at %s in %s: not delivered within %s\n%s", r.net.Now(), r.sup.State(), limit, r.log)
	}
	if len(d.Failures()) > 0 {
		r.Fatalf("delivery failed: %+v", d.Failures()[0])
	}
	return time.Since(start)
}

// recorder keeps what an observer is told.
type recorder struct {
	mu          sync.Mutex
	transitions []reconnect.Report
	attempts    []reconnect.Report
	reasons     []reconnect.Report
	still       []reconnect.Report
	confirmed   []reconnect.Report
	lost        []reconnect.Report
	stuck       []reconnect.Report
	replaced    []reconnect.Report
}

func (o *recorder) add(to *[]reconnect.Report, r reconnect.Report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*to = append(*to, r)
}

func (o *recorder) Transition(r reconnect.Report) { o.add(&o.transitions, r) }
func (o *recorder) Attempt(r reconnect.Report)    { o.add(&o.attempts, r) }
func (o *recorder) Reason(r reconnect.Report)     { o.add(&o.reasons, r) }
func (o *recorder) StillDown(r reconnect.Report)  { o.add(&o.still, r) }
func (o *recorder) Confirmed(r reconnect.Report)  { o.add(&o.confirmed, r) }
func (o *recorder) Lost(r reconnect.Report)       { o.add(&o.lost, r) }
func (o *recorder) Stuck(r reconnect.Report)      { o.add(&o.stuck, r) }
func (o *recorder) Replaced(r reconnect.Report)   { o.add(&o.replaced, r) }

// path prints the states that were gone through.
func (o *recorder) path() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for i, r := range o.transitions {
		if i == 0 {
			b.WriteString(r.From.String())
		}
		b.WriteString(" " + r.To.String())
	}
	return b.String()
}

// both passes calls on to two observers.
type both [2]reconnect.Observer

func (b both) Transition(r reconnect.Report) { b[0].Transition(r); b[1].Transition(r) }
func (b both) Attempt(r reconnect.Report)    { b[0].Attempt(r); b[1].Attempt(r) }
func (b both) Reason(r reconnect.Report)     { b[0].Reason(r); b[1].Reason(r) }
func (b both) StillDown(r reconnect.Report)  { b[0].StillDown(r); b[1].StillDown(r) }
func (b both) Confirmed(r reconnect.Report)  { b[0].Confirmed(r); b[1].Confirmed(r) }
func (b both) Lost(r reconnect.Report)       { b[0].Lost(r); b[1].Lost(r) }
func (b both) Stuck(r reconnect.Report)      { b[0].Stuck(r); b[1].Stuck(r) }
func (b both) Replaced(r reconnect.Report)   { b[0].Replaced(r); b[1].Replaced(r) }

// lines keeps a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// level returns the lines of some levels.
func (l *lines) level(levels ...string) []string {
	var out []string
	for line := range strings.Lines(l.String()) {
		for _, lv := range levels {
			if strings.Contains(line, "level="+lv+" ") {
				out = append(out, line)
			}
		}
	}
	return out
}

// count tells how many lines contain a text.
func (l *lines) count(text string) int { return strings.Count(l.String(), text) }

package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/delivery"
	"out_kafka_reconnect/plugin/metrics"
	"out_kafka_reconnect/reconnect"
)

// maxReceipts bounds the receipts that wait for their chunk: Fluent Bit holds at most that
// many tasks.
const maxReceipts = 16384

// messageOverhead is what librdkafka needs for a queued message besides key and value.
const messageOverhead = 200

// Options are what an Instance is made of.
type Options struct {
	Config *config.Config
	// Open makes the Kafka client.
	Open reconnect.Opener
	// Relay and Logger write to Fluent Bit's log.
	Relay  *flblog.Relay
	Logger *slog.Logger
	// Name is what the metrics call the instance.
	Name string
}

// Instance is one [OUTPUT] section at work. Its methods may be called from any number of
// threads at once.
type Instance struct {
	cfg    *config.Config
	sup    *reconnect.Supervisor
	ledger *delivery.Ledger
	relay  *flblog.Relay
	log    *slog.Logger
	quiet  *quiet
	scrape *metrics.Endpoint // nil unless there is a metrics_listen

	jobs    chan *job
	jobPool sync.Pool
	closing chan struct{}

	mu      sync.Mutex     // guards closed, and workers against an Add during its Wait
	closed  bool           // closing is closed
	workers sync.WaitGroup // the goroutines that serve jobs

	// slow is set when a wait timed out and cleared by the next acknowledgement. Until then
	// a worker waits no longer than the engine would, because at a stop Fluent Bit works a
	// worker's whole queue off before it calls us again; and the engine does not wait at all.
	slow atomic.Bool
	// lane is held for reading while a batch is handed over, and for writing as long as one
	// that must be alone in the client's hands is there.
	lane sync.RWMutex
	// queued counts the bytes in the client's hands.
	queued atomic.Int64
	counts counts
	// panicked limits the stack traces to one.
	panicked sync.Once
}

// counts is what the closing line and the metrics tell. A record is acknowledged when it is,
// the other counts of records wait for the end of their chunk.
type counts struct {
	acked, rejected, doubtful atomic.Int64
	avoided                   atomic.Int64 // acknowledged already when their chunk came again
	ok, retried, undecodable  atomic.Int64
}

// job is one flush call on its way to a goroutine of ours and back.
type job struct {
	chunk  []byte
	tag    string
	worker bool
	result Result
	done   chan struct{} // holds one token: a job is reused
}

// New starts an instance. The error says what is wrong with the configuration as the
// client sees it; no broker has to be reachable.
func New(o Options) (*Instance, error) {
	if _, err := newEncoder(o.Config); err != nil {
		return nil, fmt.Errorf("plugin: making the encoder: %w", err)
	}
	in := &Instance{
		cfg:     o.Config,
		ledger:  delivery.NewLedger(o.Config.ReceiptTTL, maxReceipts),
		relay:   o.Relay,
		log:     o.Logger,
		quiet:   newQuiet(o.Logger),
		jobs:    make(chan *job),
		closing: make(chan struct{}),
	}
	in.jobPool.New = func() any { return &job{done: make(chan struct{}, 1)} }
	sup, err := reconnect.New(reconnect.Options{
		Config:   machineConfig(o.Config),
		Open:     o.Open,
		Observer: reconnect.NewLogObserver(o.Logger),
		Logger:   o.Logger,
	})
	if err != nil {
		return nil, err
	}
	in.sup = sup
	in.scrape = metrics.Open(metrics.Options{Listen: o.Config.MetricsListen, Instance: o.Name, Source: in, Logger: o.Logger})
	return in, nil
}

// Logger is the instance's own.
func (in *Instance) Logger() *slog.Logger { return in.log }

// Flush delivers one chunk; worker tells that the caller is a worker thread, which may
// wait. The bytes and the tag are not used after the return.
func (in *Instance) Flush(chunk []byte, tag string, worker bool) Result {
	if !in.sup.Admit() && in.ledger.Len() == 0 {
		in.counts.retried.Add(1)
		in.relay.Drain()
		return resultOf(refused)
	}
	j := in.jobPool.Get().(*job)
	j.chunk, j.tag, j.worker = chunk, tag, worker
	in.hand(j)
	<-j.done
	r := j.result
	j.chunk, j.tag = nil, ""
	in.jobPool.Put(j)
	switch r {
	case OK:
		in.counts.ok.Add(1)
	case Retry:
		in.counts.retried.Add(1)
	case Error:
		in.counts.undecodable.Add(1)
	}
	in.relay.Drain()
	return r
}

// hand gives the job to a goroutine that is free, or to a new one: there are as many as
// there are flush calls at once.
func (in *Instance) hand(j *job) {
	select {
	case in.jobs <- j:
		return
	default:
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		j.result = resultOf(refused)
		j.done <- struct{}{}
		return
	}
	in.workers.Add(1)
	go in.work(j)
}

// work serves one job after the other until the instance closes.
func (in *Instance) work(j *job) {
	defer in.workers.Done()
	e, err := newEncoder(in.cfg)
	if err != nil { // New has made one of the same configuration
		e = nil
	}
	a := &attempt{in: in, enc: e, timer: time.NewTimer(time.Hour)}
	defer a.timer.Stop()
	for {
		a.serve(j)
		select {
		case j = <-in.jobs:
		case <-in.closing:
			return
		}
	}
}

// Close drains and releases everything. It blocks for shutdown_timeout at most, for
// reload_timeout at a hot reload.
func (in *Instance) Close(byReload bool) {
	in.mu.Lock()
	again := in.closed
	in.closed = true
	in.mu.Unlock()
	if again {
		return
	}
	close(in.closing)
	limit := in.cfg.ShutdownTimeout
	if byReload {
		limit = in.cfg.ReloadTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := in.sup.Close(ctx)
	in.workers.Wait()
	if err != nil {
		in.log.Warn("closing took too long, the rest goes on by itself", "err", err)
	}
	in.log.Info("stopped",
		"chunks_ok", in.counts.ok.Load(), "chunks_retried", in.counts.retried.Load(), "chunks_undecodable", in.counts.undecodable.Load(),
		"records_acknowledged", in.counts.acked.Load(), "records_rejected", in.counts.rejected.Load(),
		"duplicates_avoided", in.counts.avoided.Load(), "possible_duplicates", in.counts.doubtful.Load(), "receipts_left", in.ledger.Len())
	in.scrape.Close() // after the drain, which is worth watching; it logs through the relay
	in.relay.Close()
}

// panicLogged writes the stack of the first panic.
func (in *Instance) panicLogged(p any) {
	in.panicked.Do(func() {
		in.log.Error("panic in the plugin, logged once; the chunk will be tried again", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	})
}

package plugin

import (
	"cmp"
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
	"out_kafka_reconnect/plugin/schema"
	"out_kafka_reconnect/reconnect"
)

// maxReceipts bounds the receipts that wait for their chunk: Fluent Bit holds at most that
// many tasks.
const maxReceipts = 16384

// Options are what an Instance is made of.
type Options struct {
	Config *config.Config
	// Open makes the Kafka client.
	Open reconnect.Opener
	// Memory lends the bytes of the messages, which the clients keep; nil: they make copies.
	Memory reconnect.Memory
	// Relay writes to Fluent Bit's log.
	Relay *flblog.Relay
	// Name is what the metrics call the instance.
	Name string
	// Trim, if set, gives memory back that is not Go's. It is called when a backlog is over.
	Trim func()
	// Heir, if set, is an instance of the same destination that a hot reload has ended:
	// what it has not delivered, and what it remembers, goes on here.
	Heir *Instance
	// Telemetry, if set, reads the chunks of a host that sends metrics and traces too.
	Telemetry Telemetry
	// Registry, if set, is where the instance is going to be added, and where others may know its
	// chunks.
	Registry *Registry
}

// Instance is one [OUTPUT] section at work. Its methods may be called from any number of
// threads at once.
type Instance struct {
	cfg     *config.Config
	memory  reconnect.Memory
	sup     *reconnect.Supervisor
	courier *delivery.Courier
	ledger  *delivery.Ledger
	line    *delivery.Line // nil unless ordered
	clerk   *clerk
	custody *custody
	kept    sync.Once      // the chunks of an earlier process were posted
	schemas *schema.Source // nil unless the format needs a schema
	// telemetry reads metrics and traces.
	telemetry Telemetry
	leftOut   sync.Once // the line about chunks that the format has no form for was written
	latency   *metrics.Latency
	scrape    atomic.Pointer[metrics.Endpoint] // holds nil unless there is a metrics_listen
	relay     *flblog.Relay
	log       *slog.Logger
	quiet     *quiet
	ebb       *ebb

	jobs    chan *job
	jobPool sync.Pool
	closing chan struct{}

	mu      sync.Mutex     // guards closed and parked, and workers against an Add during its Wait
	closed  bool           // closing is closed
	parked  *time.Timer    // ends the wait for the section to come back
	gone    chan struct{}  // closed when Close has done all
	workers sync.WaitGroup // the goroutines that serve jobs, and one that searches the state

	// slow is set when a wait timed out and cleared by the next acknowledgement. Until then
	// a worker waits no longer than the engine would, because at a stop Fluent Bit works a
	// worker's whole queue off before it calls us again; and the engine does not wait at all.
	slow     atomic.Bool
	reload   announcement
	counts   *counts
	clients  clientCounts // those of the clients before
	registry *Registry    // nil: there are no others
	// panicked limits the stack traces to one.
	panicked sync.Once
}

// counts is what the closing line and the metrics tell, besides the courier's.
type counts struct {
	rejected                 sync.Map     // records by deadletter.Kind: *atomic.Int64
	ok, retried, undecodable atomic.Int64 // chunks
	forgotten                atomic.Int64 // chunks in state_path that are no section's
	leftOutChunks            atomic.Int64 // that the format has no form for
	leftOut                  atomic.Int64 // fields that the schema has no name for
}

// clientCounts is what the metrics tell of the clients that the section had, one after the other.
type clientCounts struct {
	outages                           int
	outageTime                        time.Duration
	connectSuccesses, connectFailures uint64
}

// job is one flush call on its way to a goroutine of ours and back.
type job struct {
	chunk  []byte
	tag    string
	worker bool
	own    bool // to be taken over: Fluent Bit is being reloaded
	result Result
	done   chan struct{} // holds one token: a job is reused
}

// New starts an instance. The error says what is wrong with the configuration as the
// client sees it; no broker has to be reachable.
func New(o Options) (*Instance, error) {
	schemas, err := newSchemas(o.Config, o.Heir)
	if err != nil {
		return nil, err
	}
	if _, err := newEncoder(o.Config, schemas); err != nil {
		return nil, fmt.Errorf("plugin: making the encoder: %w", err)
	}
	log := o.Relay.Logger()
	in := &Instance{
		cfg:       o.Config,
		memory:    o.Memory,
		registry:  o.Registry,
		schemas:   schemas,
		telemetry: cmp.Or[Telemetry](o.Telemetry, noTelemetry{}),
		relay:     o.Relay,
		log:       log,
		quiet:     newQuiet(log),
		latency:   metrics.NewLatency(),
		counts:    &counts{},
		jobs:      make(chan *job),
		closing:   make(chan struct{}),
		gone:      make(chan struct{}),
	}
	if o.Heir != nil {
		in.quiet = o.Heir.quiet // what was told a moment ago is not told again
		in.counts, in.latency = o.Heir.counts, o.Heir.latency
	}
	in.jobPool.New = func() any { return &job{done: make(chan struct{}, 1)} }
	clerk, err := newClerk(o.Config, in.quiet, log)
	if err != nil {
		return nil, fmt.Errorf("plugin: dead_letter_file: %w", err)
	}
	in.clerk = clerk
	if in.custody, err = openCustody(o, in.quiet, log); err != nil {
		clerk.close()
		return nil, fmt.Errorf("plugin: state_path %q: %w", o.Config.StatePath, err)
	}
	sup, err := reconnect.New(reconnect.Options{
		Config:   machineConfig(o.Config),
		Open:     o.Open,
		Observer: reconnect.NewLogObserver(log),
		Logger:   log,
	})
	if err != nil {
		clerk.close()
		if o.Heir == nil {
			in.custody.close(log)
		}
		return nil, err
	}
	in.sup = sup
	if o.Heir != nil {
		in.inherit(o.Heir)
	} else {
		in.courier = delivery.New(in.courierOptions(), sup)
		in.clerk.courier = in.courier
		in.ledger = delivery.NewLedger(o.Config.ReceiptTTL, maxReceipts)
	}
	in.ebb = &ebb{courier: in.courier, limit: o.Config.QueueLimit, also: o.Trim}
	if o.Config.Ordered {
		in.line = delivery.NewLine(o.Config.OrderedWait, in.courier, in.skipped)
	}
	in.openMetrics(o.Name)
	if o.Heir == nil {
		in.remember()
	}
	in.startSchemas()
	if in.custody.store != nil {
		in.workers.Go(in.searchState)
	}
	return in, nil
}

// openMetrics begins to serve the metrics, if the section wants that.
func (in *Instance) openMetrics(name string) {
	in.scrape.Store(metrics.Open(metrics.Options{Listen: in.cfg.MetricsListen, Instance: name, Source: in, Latency: in.latency, Logger: in.log}))
}

// courierOptions is the courier's part of the section.
func (in *Instance) courierOptions() delivery.Options {
	policy := delivery.TopicReject
	if in.cfg.OnTopicError == config.TopicErrorRetry {
		policy = delivery.TopicRetry
	}
	return delivery.Options{
		Limit:        in.cfg.QueueLimit,
		Ordered:      in.cfg.Ordered,
		OnTopicError: policy,
		TopicWait:    in.cfg.UnknownTopicWait,
		BackoffMin:   in.cfg.ReconnectBackoffMin,
		BackoffMax:   in.cfg.ReconnectBackoffMax,
		LetterTopic:  in.cfg.DeadLetterTopic,
		Reject:       in.reject,
		Trouble:      in.trouble,
		Answered:     func() { in.slow.Store(false) },
		Blocked:      in.blocked,
		Completed:    in.completed,
	}
}

// inherit takes over what an ended instance has not delivered. Its client may finish what
// it has in hands; what it can't comes back to the courier and goes to the new one.
func (in *Instance) inherit(old *Instance) {
	in.courier, in.ledger, in.clerk.courier = old.courier, old.ledger, old.courier
	in.quiet.moveTo(in.log)
	in.kept.Do(func() {}) // the courier has them
	for _, r := range in.courier.Reconfigure(in.courierOptions(), in.sup) {
		in.clerk.inherit(lettersOf(r))
	}
	in.ledger.SetTTL(in.cfg.ReceiptTTL)
	old.clerk.leaveTo(in.clerk)
	in.clerk.written.Add(old.clerk.written.Load())
	in.clients = old.clientCounts()
	in.custody.inherit(in.cfg, in.quiet, in.log)
	in.log.Info("going on after a hot reload with other settings")
	if old.end() {
		go func() {
			defer close(old.gone)
			old.finish(in.closing)
			old.closeSupervisor(in.cfg.ReloadTimeout)
		}()
	}
}

// Logger is the instance's own.
func (in *Instance) Logger() *slog.Logger { return in.log }

// Flush delivers one chunk; worker tells that the caller is a worker thread, which may
// wait. The bytes and the tag are not used after the return.
func (in *Instance) Flush(chunk []byte, tag string, worker bool) Result {
	if in.leavesOut(chunk, tag) {
		in.relay.Drain()
		return OK
	}
	keeper := in.keeper(chunk, tag)
	in.watchReload(chunk, tag, keeper.ledger)
	own := in.takesOver()
	if !own && keeper.pointless(chunk, tag) {
		in.counts.retried.Add(1)
		in.relay.Drain()
		return resultOf(refused)
	}
	j := in.jobPool.Get().(*job)
	j.chunk, j.tag, j.worker, j.own = chunk, tag, worker, own
	keeper.hand(j)
	<-j.done
	r := j.result
	j.chunk, j.tag = nil, ""
	in.jobPool.Put(j)
	switch r {
	case OK:
		in.counts.ok.Add(1)
		in.reload.answered()
	case Retry:
		if own {
			in.reload.miss()
		}
		in.reload.returns(chunk, tag)
		in.counts.retried.Add(1)
		in.ebb.expect()
	case Error:
		in.counts.undecodable.Add(1)
	}
	in.relay.Drain()
	return r
}

// pointless tells of a chunk that comes while all brokers are down that nothing can be
// done for it: it is on its way already, or there is no room for it. It is a matter of less
// than a microsecond, as every waiting chunk is tried again and again.
func (in *Instance) pointless(chunk []byte, tag string) bool {
	if in.sup.Admit() {
		return false
	}
	// An ordered chunk that is turned away needs its place in the line.
	noRoom := in.line == nil && !in.courier.Room(int64(len(chunk)))
	return noRoom || in.ledger.Pending(delivery.GlimpseOf(tag, chunk))
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
	e, err := in.newEncoder()
	if err != nil { // New has made one of the same configuration
		e = nil
	} else {
		defer e.shed(in.cfg)
	}
	a := &attempt{in: in, enc: e, timer: time.NewTimer(time.Hour)}
	defer a.timer.Stop()
	for ; j != nil; j = in.next(a) {
		a.serve(j)
	}
}

// next waits for a job; nil when the instance closes. A goroutine that waits long drops its
// buffers, which are as large as the largest chunk, but not its encoder: that counts the topics.
func (in *Instance) next(a *attempt) *job {
	a.timer.Reset(shedAfter)
	for {
		select {
		case j := <-in.jobs:
			return j
		case <-in.closing:
			return nil
		case <-a.timer.C:
			if a.enc != nil && a.enc.shed(in.cfg) {
				in.ebb.expect()
			}
		}
	}
}

// end stops serving; false when it had done so before.
func (in *Instance) end() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	in.closed = true
	close(in.closing)
	in.schemas.Close()
	in.ebb.close()
	if in.line != nil {
		in.line.Close()
	}
	if in.parked != nil {
		in.parked.Stop()
	}
	return true
}

// Close delivers what it can within shutdown_timeout, which it does not exceed, and
// releases everything. A second call waits for the first.
func (in *Instance) Close() { in.close(func() {}) }

// close does what Close does, and calls last when nothing changes any more, before the state closes.
func (in *Instance) close(last func()) {
	if !in.end() {
		<-in.gone
		return
	}
	defer close(in.gone)
	in.courier.Stop()
	in.closeSupervisor(in.cfg.ShutdownTimeout)
	in.clerk.close()
	st := in.courier.Status()
	if lost := st.Owned - in.custody.onDisk(); lost > 0 {
		in.log.Error("chunks that a hot reload had handed to the plugin could not be delivered before the end and are lost", "chunks", lost)
	}
	in.custody.tellLeft(in.cfg, in.log)
	last()
	in.closeState()
	in.log.Info("stopped",
		"chunks_ok", in.counts.ok.Load(), "chunks_retried", in.counts.retried.Load(), "chunks_undecodable", in.counts.undecodable.Load(),
		"records_acknowledged", st.Acked, "records_rejected", in.counts.rejectedInAll(), "dead_letters_in_topic", st.Letters, "dead_letters_in_file", in.clerk.written.Load(),
		"duplicates_avoided", st.Avoided, "possible_duplicates", st.Doubtful, "receipts_left", in.ledger.Len())
	in.scrape.Swap(nil).Close() // after the drain, which is worth watching; it logs through the relay
	in.quiet.close()
	in.relay.Close()
}

func (in *Instance) closeSupervisor(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := in.sup.Close(ctx)
	in.workers.Wait()
	if err != nil {
		in.log.Warn("closing took too long, the rest goes on by itself", "err", err)
	}
}

// panicLogged writes the stack of the first panic.
func (in *Instance) panicLogged(p any) {
	in.panicked.Do(func() {
		in.log.Error("panic in the plugin, logged once; the chunk will be tried again", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	})
}

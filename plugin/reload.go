package plugin

import (
	"sync"
	"sync/atomic"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/plugin/delivery"
	"out_kafka_reconnect/reconnect/fsm"
)

// Fluent Bit ends a pipeline for a hot reload only when every chunk was answered with OK or
// given up: it tries the waiting ones again each second, with its inputs paused, for as long
// as it takes (hot_reload.ensure_thread_safety, on by default). So when reload_timeout has
// passed since the reload was announced, chunks are taken over: their records are ours, and
// the answer is OK. The instance itself outlives the pipeline, as the library stays loaded
// and its goroutines run on. It is parked at the exit; the section of the new pipeline
// claims it, with its connections, its receipts and all that waits.
//
// A reload that Fluent Bit refuses, on a broken configuration, is announced too, and nobody
// says that it is off: the pipeline simply runs on, and nothing is to be taken over. But then
// its inputs run on as well. In a drain every chunk comes within the first seconds, and none
// that is new after them, unless some are answered with OK and so make room. So a new chunk
// in the second half of reload_timeout tells of the refusal.
const (
	// takeOverFor is how long chunks are taken over after reload_timeout, or after the last one that
	// could not be. All of them come within seconds then, and those that could not be taken come
	// again; it is bounded because a refused reload is never over, and not always seen to be refused.
	takeOverFor = 30 * time.Second
	// finishFor is how long an instance that another one goes on for may finish what its client has
	// in hands.
	finishFor = 10 * time.Minute
	// drainSettles is after what time at the earliest no new chunk comes in a drain: Fluent Bit
	// flushes once a second. A shorter reload_timeout leaves no time to see a refusal.
	drainSettles = 3 * time.Second
	// parkedFor is how long an instance waits to be claimed.
	parkedFor = 30 * time.Second
)

// announcement is what an instance knows of the hot reload that was announced last. The zero
// value knows of none.
type announcement struct {
	at     atomic.Int64 // when it was announced, in nanoseconds since 1970; 0 if none was
	missed atomic.Int64 // when a chunk could not be taken over last; 0 if none was missed

	mu      sync.Mutex
	seen    map[delivery.Glimpse]struct{} // the chunks that have come since; nil when it is too late to cancel
	settled time.Time                     // when the last chunk was answered with OK, or the announcement
}

// expect notes that a hot reload was announced.
func (a *announcement) expect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settled = time.Now()
	a.seen = map[delivery.Glimpse]struct{}{}
	a.missed.Store(0)
	a.at.Store(a.settled.UnixNano())
}

// forget makes it as if none was announced.
func (a *announcement) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at.Store(0)
	a.seen = nil
}

// since tells how long ago a reload was announced; false if none was.
func (a *announcement) since() (time.Duration, bool) {
	at := a.at.Load()
	return time.Since(time.Unix(0, at)), at != 0
}

// miss notes that a chunk could not be taken over: the reload waits for it.
func (a *announcement) miss() { a.missed.Store(time.Now().UnixNano()) }

// waits tells whether the reload still waits for what is to be taken over, from that long after
// its announcement on.
func (a *announcement) waits(timeout time.Duration) bool {
	at := a.at.Load()
	if at == 0 {
		return false
	}
	from := time.Unix(0, at).Add(timeout)
	until := time.Unix(0, max(from.UnixNano(), a.missed.Load())).Add(takeOverFor)
	now := time.Now()
	return !now.Before(from) && now.Before(until)
}

// saw notes a chunk. It tells whether the chunk is the first since the announcement that looks
// like this.
func (a *announcement) saw(g delivery.Glimpse) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// With so many chunks a new one can't be told any longer.
	if a.seen == nil || len(a.seen) == maxReceipts {
		return false
	}
	n := len(a.seen)
	a.seen[g] = struct{}{}
	return len(a.seen) > n
}

// returns notes a chunk that is answered with a retry: it may have come before the
// announcement, and is not new when it comes again.
func (a *announcement) returns(chunk []byte, tag string) {
	if a.at.Load() != 0 {
		a.saw(delivery.GlimpseOf(tag, chunk))
	}
}

// answered notes that a chunk was answered with OK: a new one may come in its place.
func (a *announcement) answered() {
	if a.at.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settled = time.Now()
}

// quietFor tells how long no chunk was answered with OK since the announcement.
func (a *announcement) quietFor() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.settled)
}

// tooLate ends the watch for a refusal: from now on chunks are taken over.
func (a *announcement) tooLate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = nil
}

// takesOver tells whether chunks are to be taken over.
func (in *Instance) takesOver() bool {
	return in.cfg.CustodyLimit > 0 && in.reload.waits(in.cfg.ReloadTimeout)
}

// watchReload looks at each chunk that comes after an announcement, and forgets that when the
// chunk shows that the reload was refused. Known is the ledger that may know it.
func (in *Instance) watchReload(chunk []byte, tag string, known *delivery.Ledger) {
	since, announced := in.reload.since()
	switch {
	case !announced:
		return
	case since >= in.cfg.ReloadTimeout:
		in.reload.tooLate()
		return
	}
	g := delivery.GlimpseOf(tag, chunk)
	if !in.reload.saw(g) || known.Pending(g) {
		return
	}
	if in.reload.quietFor() >= max(in.cfg.ReloadTimeout/2, drainSettles) {
		in.reload.forget()
		in.log.Info("new chunks come after a hot reload was announced: Fluent Bit has refused it, nothing is taken over")
	}
}

// park has the instance wait for its section to come back; unclaimed is called when it has
// not done so in time, or more than once.
func (in *Instance) park(unclaimed func(*Instance)) {
	in.scrape.Swap(nil).Close() // another instance may come to have the name
	in.relay.Unbind()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.parked != nil {
		in.parked.Stop()
	}
	if !in.closed {
		in.parked = time.AfterFunc(parkedFor, func() { unclaimed(in) })
	}
}

// Resume serves the section again after a hot reload, under a new instance of the host.
// The prefix is that of its log lines, name that of its metrics.
func (in *Instance) Resume(host flblog.Host, prefix, name string) {
	in.mu.Lock()
	in.parked.Stop()
	in.mu.Unlock()
	in.reload.forget()
	in.relay.Bind(host, prefix)
	in.openMetrics(name)
	st := in.courier.Status()
	in.log.Info("going on after a hot reload", "chunks_waiting", st.Receipts, "records_waiting", st.Open, "taken_over", st.Owned)
}

// finish waits until the client has nothing in hands, or can't deliver it: what was in flight
// when a broker froze is written once only if the client that sent it is the one that sends it
// again. It ends with stop.
func (in *Instance) finish(stop <-chan struct{}) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	end := time.NewTimer(finishFor)
	defer end.Stop()
	for in.sup.Outstanding() > 0 && comesBack(in.sup.Status().Reason) {
		select {
		case <-ticker.C:
		case <-end.C:
			return
		case <-stop:
			return
		}
	}
}

// comesBack tells whether an outage for this reason can end without other settings.
func comesBack(reason fsm.Class) bool {
	switch reason {
	case fsm.ClassResolve, fsm.ClassTLS, fsm.ClassAuthentication, fsm.ClassAuthorization, fsm.ClassFatal:
		return false
	default:
		return true
	}
}

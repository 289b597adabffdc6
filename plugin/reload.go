package plugin

import (
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/reconnect/fsm"
)

// Fluent Bit ends a pipeline for a hot reload only when every chunk was answered with OK or
// given up: it tries the waiting ones again each second, with its inputs paused, for as long
// as it takes (hot_reload.ensure_thread_safety, on by default). So when reload_timeout has
// passed since the reload was announced, chunks are taken over: their records are ours, and
// the answer is OK. The instance itself outlives the pipeline, as the library stays loaded
// and its goroutines run on. It is parked at the exit; the section of the new pipeline
// claims it, with its connections, its receipts and all that waits.
const (
	// takeOverFor is how long chunks are taken over after reload_timeout. All of them come within
	// seconds then; it is bounded because a reload that Fluent Bit refuses, on a broken
	// configuration, is announced too and never over.
	takeOverFor = 30 * time.Second
	// finishFor is how long an instance that another one goes on for may finish what its client has
	// in hands.
	finishFor = 10 * time.Minute
	// parkedFor is how long an instance waits to be claimed.
	parkedFor = 30 * time.Second
)

// expectReload notes that a hot reload was announced.
func (in *Instance) expectReload() { in.reload.Store(time.Now().UnixNano()) }

// takesOver tells whether chunks are to be taken over.
func (in *Instance) takesOver() bool {
	at := in.reload.Load()
	if at == 0 {
		return false
	}
	since := time.Since(time.Unix(0, at))
	return since >= in.cfg.ReloadTimeout && since < in.cfg.ReloadTimeout+takeOverFor
}

// park has the instance wait for its section to come back; unclaimed is called when it has
// not done so in time, or more than once.
func (in *Instance) park(unclaimed func(*Instance)) {
	in.scrape.Swap(nil).Close() // another instance may come to have the name
	in.relay.Unbind()
	in.mu.Lock()
	defer in.mu.Unlock()
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
	in.reload.Store(0)
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

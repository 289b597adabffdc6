package plugin

import (
	"runtime/debug"
	"sync"
	"time"

	"out_kafka_reconnect/plugin/delivery"
)

const (
	// shedAfter is how long a goroutine waits for the next chunk before it drops its buffers.
	shedAfter = 5 * time.Second
	// shedFrom is how large they must be for that to be a reason to give memory back, in bytes.
	shedFrom = 1 << 20
	// ebbEvery is how often it is looked whether a backlog is over.
	ebbEvery = 10 * time.Second
)

// ebb gives memory back to the system when a backlog is over. Go's runtime does so by itself,
// but after minutes: it keeps what it had needed, and does not look while nothing is allocated.
// The runtime is the plugin's own, so the host's memory is not touched. It costs some
// milliseconds, and is done once in ebbEvery at most.
type ebb struct {
	courier *delivery.Courier
	limit   int64  // of the courier
	also    func() // gives back what is not Go's; nil: nothing

	mu     sync.Mutex
	timer  *time.Timer // nil unless something is to be given back
	closed bool
}

// expect has the memory given back when the backlog that there is, or was, has gone.
func (e *ebb) expect() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer == nil && !e.closed {
		e.timer = time.AfterFunc(ebbEvery, e.look)
	}
}

// look gives memory back if most of the backlog is delivered, and comes again if not.
func (e *ebb) look() {
	over := e.courier.Status().Queued <= e.limit/16
	if over {
		debug.FreeOSMemory()
		if e.also != nil {
			e.also()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if over || e.closed {
		e.timer = nil
		return
	}
	e.timer.Reset(ebbEvery)
}

// close ends the looking.
func (e *ebb) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.timer != nil {
		e.timer.Stop()
	}
}

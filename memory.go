package main

// #include "host.h"
import "C"

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// gcPercent is how much garbage Go's heap may hold, as a share of what is in use. Most of that is the bytes of
	// waiting chunks, which need no scanning, and a record makes no garbage, so collecting twice as often as by default
	// costs next to nothing. There is no limit in bytes: queue_limit bounds what is in use, and a soft limit that is
	// met takes half of the processors.
	gcPercent = 50
	// startedAfter is how long after its start an instance has done most of what is done only once, and settledAfter when
	// all of it: the first flush comes in between.
	startedAfter, settledAfter = 700 * time.Millisecond, 5 * time.Second
)

// setMemory sets up the memory of Go's runtime, which is the plugin's own, unless the user has.
var setMemory = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
})

// trimming holds the timers that end with the pages being given back that were needed for the start.
var trimming struct {
	mu     sync.Mutex
	timers map[time.Duration]*time.Timer // guarded by mu
}

// trimSoon gives pages of the libraries back when the last instance has started, and when it has settled.
func trimSoon() {
	trimming.mu.Lock()
	defer trimming.mu.Unlock()
	if trimming.timers == nil {
		trimming.timers = map[time.Duration]*time.Timer{}
	}
	for _, after := range []time.Duration{startedAfter, settledAfter} {
		if t := trimming.timers[after]; t != nil {
			t.Reset(after)
			continue
		}
		trimming.timers[after] = time.AfterFunc(after, trim)
	}
}

// trim gives those pages back.
func trim() { C.okr_host_trim() }

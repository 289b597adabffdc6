package rdkafka

import (
	"runtime"
	"sync"
)

// threadFrom is how many messages are worth a change of threads, which takes some ten µs.
const threadFrom = 500

// thread calls functions on one thread of the system. Each thread allocates from an arena of malloc of its own, and what it
// gives back stays in it for the most part. Go would hand every batch over on another thread, and each of them would
// keep the memory of the largest backlog that it has seen.
type thread struct {
	start sync.Once
	calls chan call
}

type call struct {
	f    func()
	done chan<- any // takes what f panicked with, or nil
}

// do calls f on the thread, and waits for it.
func (t *thread) do(f func()) {
	t.start.Do(func() {
		t.calls = make(chan call)
		go t.run()
	})
	done := make(chan any, 1)
	t.calls <- call{f, done}
	if p := <-done; p != nil {
		panic(p)
	}
}

// run never unlocks the thread, so it ends with the goroutine.
func (t *thread) run() {
	runtime.LockOSThread()
	for c := range t.calls {
		c.done <- caught(c.f)
	}
}

// end ends the thread. It is called once, and do is not called any more.
func (t *thread) end() {
	t.start.Do(func() {})
	if t.calls != nil {
		close(t.calls)
	}
}

// caught calls f and returns what it panicked with, or nil.
func caught(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

package rdkafka

import (
	"sync"
	"syscall"
	"testing"
)

func TestThread(t *testing.T) {
	var th thread
	ids := make(chan int, 100)
	var wg sync.WaitGroup
	for range cap(ids) {
		wg.Go(func() { th.do(func() { ids <- syscall.Gettid() }) })
	}
	wg.Wait()
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Fatalf("on thread %d and on %d", first, id)
		}
	}
	func() {
		defer func() {
			if p := recover(); p != "oops" {
				t.Errorf("the caller got %v", p)
			}
		}()
		th.do(func() { panic("oops") })
	}()
	th.do(func() {}) // it lives on
	th.end()
}

// A thread that was never needed ends too.
func TestThread_Unused(*testing.T) { new(thread).end() }

package kafka

import (
	"os/exec"
	"runtime"
)

// A spawner starts processes from one operating system thread that lives as long as the spawner. The kernel's promise to
// kill a child when its parent dies is about the thread that made the child, and Go ends threads when it sees fit.
type spawner struct {
	requests chan func()
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine and no other one runs on it
		for request := range s.requests {
			request()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	dieWithParent(cmd)
	started := make(chan error)
	s.requests <- func() { started <- cmd.Start() }
	return <-started
}

// close ends the thread; what it started and is still alive dies.
func (s *spawner) close() { close(s.requests) }

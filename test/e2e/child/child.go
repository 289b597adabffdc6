// Package child runs the programs that the tests need: none of them outlives the process that started it.
package child

import (
	"os/exec"
	"runtime"
)

// A Process is one run of a program.
type Process struct {
	Cmd  *exec.Cmd
	Done chan struct{} // closed when it has ended
	Err  error         // of its end; set before Done is closed
}

// Start runs a command. The process gets SIGKILL when this one dies, which the kernel ties to the thread that started it: so
// that thread is kept.
func Start(cmd *exec.Cmd) (*Process, error) {
	dieWithParent(cmd)
	p := &Process{Cmd: cmd, Done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.Err = cmd.Wait()
			close(p.Done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Ended tells whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // an error means that it has ended
	<-p.Done
}

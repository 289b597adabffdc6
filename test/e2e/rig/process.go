package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// An Exit is how a program ended.
type Exit struct {
	// Code is what it returned; -1 when a signal ended it.
	Code int
	// After is the time from the request to end, or from the start, to the end.
	After time.Duration
}

// A process is one run of a program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // set before done is closed
}

// pipeDelay is how long a dead program's pipes may stay open: a daemon that it left behind may hold them.
const pipeDelay = 2 * time.Second

// startProcess runs a command; each line that it writes is given to one of the two functions. The process gets SIGKILL when
// this one dies, which the kernel ties to the thread that started it: so that thread is kept.
func startProcess(cmd *exec.Cmd, stdout, stderr func(line string)) (*process, error) {
	cmd.Stdout, cmd.Stderr = &lineWriter{take: stdout}, &lineWriter{take: stderr}
	cmd.WaitDelay = pipeDelay
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

// ended tells whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits for the end. When the context ends first the process is killed, and that is an error.
func (p *process) wait(ctx context.Context) (Exit, error) {
	begin := time.Now()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return Exit{Code: -1, After: time.Since(begin)}, fmt.Errorf("waiting for the end of process %d: it was still there after %s and was killed: %w",
			p.cmd.Process.Pid, time.Since(begin).Round(time.Millisecond), ctx.Err())
	}
	return Exit{Code: p.cmd.ProcessState.ExitCode(), After: time.Since(begin)}, nil
}

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to process %d: %w", sig, p.cmd.Process.Pid, err)
	}
	return nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.done
}

// A lineWriter cuts what is written to it into lines. It has one writer.
type lineWriter struct {
	take func(line string)
	rest []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		w.take(string(bytes.TrimRight(line, "\r")))
		w.rest = rest
	}
}

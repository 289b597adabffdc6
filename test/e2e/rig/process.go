package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"out_kafka_reconnect/test/e2e/child"
)

// An Exit is how a program ended.
type Exit struct {
	// Code is what it returned; -1 when a signal ended it.
	Code int
	// After is the time from the request to end, or from the start, to the end.
	After time.Duration
}

// A process is one run of a program.
type process struct{ *child.Process }

// pipeDelay is how long a dead program's pipes may stay open: a daemon that it left behind may hold them.
const pipeDelay = 2 * time.Second

// startProcess runs a command; each line that it writes is given to one of the two functions.
func startProcess(cmd *exec.Cmd, stdout, stderr func(line string)) (*process, error) {
	cmd.Stdout, cmd.Stderr = &lineWriter{take: stdout}, &lineWriter{take: stderr}
	cmd.WaitDelay = pipeDelay
	p, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return &process{p}, nil
}

// wait waits for the end. When the context ends first the process is killed, and that is an error.
func (p *process) wait(ctx context.Context) (Exit, error) {
	begin := time.Now()
	select {
	case <-p.Done:
	case <-ctx.Done():
		p.Kill()
		return Exit{Code: -1, After: time.Since(begin)}, fmt.Errorf("waiting for the end of process %d: it was still there after %s and was killed: %w",
			p.Cmd.Process.Pid, time.Since(begin).Round(time.Millisecond), ctx.Err())
	}
	return Exit{Code: p.Cmd.ProcessState.ExitCode(), After: time.Since(begin)}, nil
}

func (p *process) signal(sig syscall.Signal) error {
	if err := p.Cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to process %d: %w", sig, p.Cmd.Process.Pid, err)
	}
	return nil
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

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"out_kafka_reconnect/test/e2e/secure"
)

// agent is a running Fluent Bit.
type agent struct {
	cmd   *exec.Cmd
	log   *bytes.Buffer // to be read when ended is closed
	ended chan struct{}
	err   error // set before ended is closed
}

// endWithin is how long a stop may take before it is a kill.
const endWithin = 20 * time.Second

func startAgent(ctx context.Context, program string, args ...string) (*agent, error) {
	a := &agent{cmd: exec.CommandContext(ctx, program, args...), log: &bytes.Buffer{}, ended: make(chan struct{})}
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	a.cmd.Cancel = func() error { return a.cmd.Process.Signal(syscall.SIGTERM) }
	a.cmd.WaitDelay = endWithin
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting Fluent Bit: %w", err)
	}
	go func() {
		a.err = a.cmd.Wait()
		close(a.ended)
	}()
	return a, nil
}

func (a *agent) pid() int { return a.cmd.Process.Pid }

// pause waits; an error tells that the time is up, or that the agent has ended.
func (a *agent) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-a.ended:
		return fmt.Errorf("the agent has ended (%w); its log:\n%s", a.err, a.log)
	}
}

// stop ends it.
func (a *agent) stop() error {
	kill := time.AfterFunc(endWithin, func() { _ = a.cmd.Process.Kill() })
	defer kill.Stop()
	_ = a.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	<-a.ended
	if a.err != nil {
		return fmt.Errorf("stopping Fluent Bit: %w; its log:\n%s", a.err, a.log)
	}
	return a.leak()
}

// leak looks for secrets in its log.
func (a *agent) leak() error {
	for i, secret := range secure.Secrets {
		if bytes.Contains(a.log.Bytes(), []byte(secret)) {
			return fmt.Errorf("the log of Fluent Bit holds secret %d", i)
		}
	}
	return nil
}

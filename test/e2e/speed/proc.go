package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what a process has used.
type usage struct {
	cpu       time.Duration // user and system, of all threads
	peak, now int64         // resident, in bytes
}

var (
	peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+([0-9]+) kB$`)
	nowLine  = regexp.MustCompile(`(?m)^VmRSS:\s+([0-9]+) kB$`)
)

// ticksPerSecond is that of the times in /proc on every Linux.
const ticksPerSecond = 100

// usageOf asks what a process has used so far.
func usageOf(pid int) (usage, error) {
	var u usage
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return u, err
	}
	// The name stands in parentheses and may hold anything; user and system time are words 12 and 13 behind it.
	rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(rest) < 13 {
		return u, fmt.Errorf("reading the times of process %d: %q", pid, stat)
	}
	for _, word := range rest[11:13] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return u, fmt.Errorf("reading the times of process %d: %w", pid, err)
		}
		u.cpu += time.Duration(n) * time.Second / ticksPerSecond
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return u, err
	}
	for re, to := range map[*regexp.Regexp]*int64{peakLine: &u.peak, nowLine: &u.now} {
		match := re.FindSubmatch(status)
		if match == nil {
			return u, fmt.Errorf("reading the memory of process %d: %s is missing", pid, re)
		}
		n, err := strconv.ParseInt(string(match[1]), 10, 64)
		if err != nil {
			return u, err
		}
		*to = n << 10
	}
	return u, nil
}

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

// usage is what it has used so far.
func (a *agent) usage() (usage, error) {
	u, err := usageOf(a.cmd.Process.Pid)
	if err != nil {
		return u, fmt.Errorf("measuring Fluent Bit: %w", err)
	}
	return u, nil
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
	return nil
}

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A Host is a program with the plugin in it. Its methods are for one goroutine.
type Host interface {
	// Kind is "chost" or "fluent-bit".
	Kind() string
	// Configure writes the configuration for the next Start, Run or Reload.
	Configure(Conf) error
	// SecondOutput is an [OUTPUT] section for Rhythm: an output that takes every chunk at once.
	SecondOutput() string
	// Start runs the host with further arguments and returns when it takes records.
	Start(ctx context.Context, args ...string) error
	// Run runs the host to its end, for starts that are refused.
	Run(ctx context.Context, args ...string) (Exit, error)
	// Log hands over n records and returns when the host has them all.
	Log(ctx context.Context, n int) error
	// LogShaped is Log for records that are not the plain ones.
	LogShaped(ctx context.Context, n int, shape Shape) error
	// Chunk hands over a chunk of exactly these bytes. Its records have no numbers, and no audit asks for them.
	Chunk(ctx context.Context, tag string, chunk []byte) error
	// Rate hands over records in the background for a while.
	Rate(ctx context.Context, perSecond int, during time.Duration) error
	// RateOver returns when the rate has come to its end, with what went wrong.
	RateOver(ctx context.Context) error
	// EndRate ends a rate before its time and returns when the host has all of it. Without a rate it does nothing.
	EndRate(ctx context.Context) error
	// Reload sends SIGHUP and returns when the host has started anew, or with ErrRefused.
	Reload(ctx context.Context) (time.Duration, error)
	// Stop sends SIGTERM and returns when the host has ended. A host that does not end with the context is killed.
	Stop(ctx context.Context) (Exit, error)
	// Kill sends SIGKILL. What was on its way then is in doubt.
	Kill() error
	// Running tells whether it runs.
	Running() bool
	// PID is the process of the current run, or of the last one; 0 before the first.
	PID() int
	// Counts returns the counters of each output, by the name of the instance.
	Counts(ctx context.Context) (map[string]Counts, error)
	// Rhythm watches the output of SecondOutput for a while and returns the longest time between two of its flushes.
	Rhythm(ctx context.Context, during time.Duration) (time.Duration, error)
	// LogLines is what it has written, over all its runs.
	LogLines() *Log
	// Close ends what is left.
	Close() error
}

// A Shape is what records are like beside their number.
type Shape struct {
	// Size is that of the log text in bytes; 0 means the host's own.
	Size int
	// Fields are further keys of each record, with their text.
	Fields map[string]string
	// Junk puts an object that is no record in front of the records. Only the C host can.
	Junk bool
	// Destination is the topic in which the audit looks for the records: Topic if it is empty, none if it is Aside.
	Destination string
}

// Counts are what a host says of an output.
type Counts struct {
	// Records that were reported as delivered.
	Records int
	// Retries that the output asked for.
	Retries int
	// Dropped records.
	Dropped int
}

// HostOptions says what NewHost makes.
type HostOptions struct {
	// Program is the host, Plugin the library with the plugin; without one Fluent Bit runs alone.
	Program, Plugin string
	// Dir holds the configuration, the stored chunks and what else the host writes. It stays.
	Dir string
	// Tally numbers the records.
	Tally *Tally
	// Names gives the host its own view of names, if not nil.
	Names *Names
	// Env is added to its environment.
	Env []string
}

// NewHost makes a host; Configure tells it what to run with. Kind is "chost" or "fluent-bit".
func NewHost(kind string, opts HostOptions) (Host, error) {
	if err := os.MkdirAll(opts.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the host: %w", err)
	}
	if kind == "fluent-bit" {
		return newFluentBit(opts)
	}
	return newCHost(opts), nil
}

// base is what both hosts share.
type base struct {
	opts    HostOptions
	log     Log
	process *process // the current run, or the last one
	conf    string   // the path of the configuration
}

// ErrRefused is the error of a reload whose configuration the host refuses; it runs on.
var ErrRefused = errors.New("the host refuses the reload")

var errNotRunning = errors.New("the host is not running")

// LogLines implements Host.
func (b *base) LogLines() *Log { return &b.log }

// Running implements Host.
func (b *base) Running() bool { return b.process != nil && !b.process.Ended() }

// PID implements Host.
func (b *base) PID() int {
	if b.process == nil {
		return 0
	}
	return b.process.Cmd.Process.Pid
}

// writeConf writes the configuration. A host that runs reads the file again that it was started with.
func (b *base) writeConf(name, text string) error {
	path := filepath.Join(b.opts.Dir, name)
	if b.Running() && path != b.conf {
		return fmt.Errorf("configuring the host: it runs with %s and can't go on with %s", b.conf, path)
	}
	b.conf = path
	return os.WriteFile(path, []byte(text), 0o644)
}

func (b *base) storage() string { return filepath.Join(b.opts.Dir, "storage") }

// launch runs the program.
func (b *base) launch(args []string, stdin *os.File, stdout func(string)) error {
	if b.Running() {
		return errors.New("starting the host: it runs already")
	}
	args = append([]string{"-c", b.conf}, args...)
	if b.opts.Plugin != "" {
		args = append([]string{"-e", b.opts.Plugin}, args...)
	}
	cmd := exec.Command(b.opts.Program, args...)
	if b.opts.Names != nil {
		cmd = b.opts.Names.wrap(cmd)
	}
	cmd.Dir = b.opts.Dir
	cmd.Env = append(os.Environ(), b.opts.Env...)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	p, err := startProcess(cmd, stdout, b.log.add)
	if err != nil {
		return err
	}
	b.process = p
	return nil
}

// run runs the program to its end.
func (b *base) run(ctx context.Context, args []string, stdin *os.File, stdout func(string)) (Exit, error) {
	if err := b.launch(args, stdin, stdout); err != nil {
		return Exit{}, err
	}
	return b.process.wait(ctx)
}

// terminate sends SIGTERM and waits.
func (b *base) terminate(ctx context.Context) (Exit, error) {
	if !b.Running() {
		return Exit{}, fmt.Errorf("stopping the host: %w; its last lines:\n%s", errNotRunning, b.log.Tail(logTail))
	}
	if err := b.process.signal(syscall.SIGTERM); err != nil {
		return Exit{}, err
	}
	exit, err := b.process.wait(ctx)
	if err != nil {
		return exit, fmt.Errorf("stopping the host: %w", err)
	}
	if exit.Code != 0 {
		return exit, fmt.Errorf("stopping the host: it ended with code %d; its last lines:\n%s", exit.Code, b.log.Tail(logTail))
	}
	return exit, nil
}

// diedEarly is the error for a host that ended when nobody asked it to.
func (b *base) diedEarly(doing string) error {
	return fmt.Errorf("%s: it has ended by itself: %w; its last lines:\n%s", doing, errors.Join(errNotRunning, b.process.Err), b.log.Tail(logTail))
}

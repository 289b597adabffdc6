package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// secondName is the instance that Rhythm watches.
const secondName = "second"

// A chost is the C host of test/e2e/chost. It is given commands on its standard input and answers with events.
type chost struct {
	base
	events   journal[chostEvent]
	begin    int            // the index of the current run's first event
	watching sync.WaitGroup // ends when the last run's end is among the events
	commands *os.File
	numbered bool  // this run knows where its numbers start
	first    int64 // this run's first number, once numbered
	rating   bool  // a rate was started and has not told its end
	rated    int   // the index from which the end of the rate is told
}

// A chostEvent is one line of its standard output; see the table in the README of chost.
type chostEvent struct {
	Event       string `json:"ev"`
	PID         int    `json:"pid"`
	Kind        string `json:"kind"`
	Phase       string `json:"phase"`
	What        string `json:"what"`
	Detail      string `json:"detail"`
	Records     int64  `json:"records"`
	Chunk       int64  `json:"chunk"`
	First       int64  `json:"first"`
	Last        int64  `json:"last"`
	Logged      int64  `json:"logged"`
	Violations  int    `json:"violations"`
	Unprocessed int    `json:"unprocessed"`
	Outputs     []struct {
		Instance string `json:"instance"`
		OK       int    `json:"ok_records"`
		Retries  int    `json:"retries"`
		Dropped  int    `json:"dropped_records"`
		GapMax   int64  `json:"gap_max_us"`
	} `json:"outputs"`
}

// eventGone is added when the process has ended, for those who wait for another event.
const eventGone = "gone"

func newCHost(opts HostOptions) *chost {
	return &chost{base: base{opts: opts}}
}

// Kind implements Host.
func (h *chost) Kind() string { return "chost" }

// chostInput is the library input.
const chostInput = `[INPUT]
    name lib
    tag app
    storage.type filesystem
`

// Configure implements Host.
func (h *chost) Configure(c Conf) error {
	if c.YAML {
		return errors.New("configuring the C host: it reads no YAML")
	}
	text, err := c.render(h.storage(), nil, chostInput)
	if err != nil {
		return err
	}
	return h.writeConf(c.file(), text)
}

// SecondOutput implements Host.
func (h *chost) SecondOutput() string {
	return "[OUTPUT]\n    name counter\n    alias " + secondName + "\n    match *\n"
}

// take handles a line of standard output.
func (h *chost) take(line string) {
	var e chostEvent
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		h.log.add(line) // not an event
		return
	}
	switch e.Event {
	case "call":
		return // many, and nobody asks for them
	case "flush":
		h.opts.Tally.chunk(e.Chunk, e.Records)
		return
	case "logged":
		if e.Records > 0 {
			h.opts.Tally.accept(e.First, e.Last)
		}
	case "violation", "broken":
		h.log.add(fmt.Sprintf("chost: %s: %s %s", e.Event, e.What, e.Detail))
	}
	h.events.add(e)
}

// wait waits for an event from one index on.
func (h *chost) wait(ctx context.Context, from int, doing, event string) (chostEvent, error) {
	e, err := h.events.wait(ctx, from, func(e chostEvent) bool { return e.Event == event || e.Event == eventGone })
	if err != nil {
		return e, fmt.Errorf("%s: %w", doing, err)
	}
	if e.Event != event {
		return e, h.diedEarly(doing)
	}
	return e, nil
}

// send gives a command and returns the index from which its answer comes.
func (h *chost) send(format string, args ...any) (int, error) {
	if !h.Running() {
		return 0, h.diedOr("giving a command to the host")
	}
	from := h.events.size()
	if _, err := fmt.Fprintf(h.commands, format+"\n", args...); err != nil {
		return 0, fmt.Errorf("giving a command to the host: %w", err)
	}
	return from, nil
}

func (h *chost) diedOr(doing string) error {
	if h.process == nil {
		return fmt.Errorf("%s: %w", doing, errNotRunning)
	}
	return h.diedEarly(doing)
}

// Start implements Host.
func (h *chost) Start(ctx context.Context, args ...string) error {
	stdin, commands, err := os.Pipe()
	if err != nil {
		return err
	}
	if !h.Running() {
		h.watching.Wait() // else its end would be taken for this run's
	}
	h.begin, h.numbered, h.rating = h.events.size(), false, false
	err = h.launch(args, stdin, h.take)
	_ = stdin.Close()
	if err != nil {
		_ = commands.Close()
		return err
	}
	h.commands = commands
	p := h.process
	h.watching.Go(func() {
		<-p.Done
		_ = commands.Close()
		h.events.add(chostEvent{Event: eventGone})
	})
	_, err = h.wait(ctx, h.begin, "starting the host", "ready")
	return err
}

// Run implements Host. Without commands the host ends when it has started. A daemon that it leaves behind must have ended
// too; one that has not is killed.
func (h *chost) Run(ctx context.Context, args ...string) (Exit, error) {
	from := h.events.size()
	exit, err := h.run(ctx, args, nil, h.take)
	if err != nil {
		return exit, err
	}
	daemon := 0
	for _, e := range h.events.since(from) {
		switch {
		case e.Event == "start" && e.PID != h.process.Cmd.Process.Pid:
			daemon = e.PID
		case e.Event == "exit":
			daemon = 0
		}
	}
	if daemon != 0 {
		_ = syscall.Kill(daemon, syscall.SIGKILL) // an error means that it has crashed
		err = fmt.Errorf("running the host: its daemon, process %d, did not come to its end within %s", daemon, pipeDelay)
	}
	return exit, err
}

// number is the option that the first records of a run need.
func (h *chost) number() string {
	if h.numbered {
		return ""
	}
	h.numbered = true
	next, _ := h.opts.Tally.take(0)
	h.first = next
	return fmt.Sprintf(" first=%d", next)
}

// Log implements Host.
func (h *chost) Log(ctx context.Context, n int) error { return h.LogShaped(ctx, n, Shape{}) }

// options are those of the log command.
func (s Shape) options() string {
	var text string
	if s.Size > 0 {
		text += fmt.Sprintf(" size=%d", s.Size)
	}
	if s.Junk {
		text += " junk"
	}
	for _, key := range slices.Sorted(maps.Keys(s.Fields)) {
		text += fmt.Sprintf(` "%s=%s"`, key, s.Fields[key])
	}
	return text
}

// LogShaped implements Host.
func (h *chost) LogShaped(ctx context.Context, n int, shape Shape) error {
	from, err := h.send("log %d%s%s", n, h.number(), shape.options())
	if err != nil {
		return err
	}
	e, err := h.events.wait(ctx, from, func(e chostEvent) bool {
		return e.Event == "logged" && e.Kind != "rate" || e.Event == eventGone
	})
	switch {
	case err != nil:
		return fmt.Errorf("logging %d records: %w", n, err)
	case e.Event == eventGone:
		return h.diedEarly("logging records")
	case e.Kind != "log":
		return fmt.Errorf("logging %d records: the host took %d", n, e.Records)
	}
	h.opts.Tally.send(e.First, e.Last, shape.Destination)
	return nil
}

// Chunk implements Host.
func (h *chost) Chunk(ctx context.Context, tag string, chunk []byte) error {
	from, err := h.send("chunk %x tag=%s", chunk, tag)
	if err != nil {
		return err
	}
	e, err := h.wait(ctx, from, "handing over a chunk", "logged")
	if err == nil && e.Kind != "chunk" {
		err = fmt.Errorf("handing over a chunk: the host has it %s", e.Kind)
	}
	return err
}

// Rate implements Host.
func (h *chost) Rate(_ context.Context, perSecond int, during time.Duration) error {
	if h.rating {
		return errors.New("logging at a rate: one is under way")
	}
	from, err := h.send("rate %d seconds=%dms%s", perSecond, during.Milliseconds(), h.number())
	h.rating, h.rated = err == nil, from
	return err
}

// RateOver implements Host.
func (h *chost) RateOver(ctx context.Context) error {
	_, err := h.wait(ctx, h.rated, "waiting for the end of the rate", "rate_end")
	h.rating = false
	return err
}

// EndRate implements Host.
func (h *chost) EndRate(ctx context.Context) error {
	if !h.rating {
		return nil
	}
	if _, err := h.send("quiet"); err != nil {
		return err
	}
	return h.RateOver(ctx)
}

// Reload implements Host.
func (h *chost) Reload(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	from, err := h.send("reload")
	if err != nil {
		return 0, err
	}
	e, err := h.events.wait(ctx, from, func(e chostEvent) bool {
		return e.Event == "reload" && e.Phase != "begin" || e.Event == eventGone
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("reloading: %w", err)
	case e.Phase == "refused":
		return time.Since(begin), ErrRefused
	case e.Phase != "done":
		return 0, fmt.Errorf("reloading: the host says %q; its last lines:\n%s", e.Phase, h.log.Tail(logTail))
	}
	return time.Since(begin), nil
}

// Stop implements Host. A breach of the host's contract is an error.
func (h *chost) Stop(ctx context.Context) (Exit, error) {
	exit, err := h.terminate(ctx)
	if err != nil {
		return exit, err
	}
	e, err := h.wait(ctx, h.begin, "stopping the host", "exit")
	if err != nil {
		return exit, err
	}
	h.accepted(e)
	if e.Violations > 0 {
		return exit, fmt.Errorf("stopping the host: the plugin broke its contract %d times; the last lines:\n%s", e.Violations, h.log.Tail(logTail))
	}
	return exit, nil
}

// accepted notes how many records the host has by its own account: a rate tells of them once a second only.
func (h *chost) accepted(e chostEvent) {
	if h.numbered {
		h.opts.Tally.accept(h.first, h.first+e.Logged-1)
	}
}

// inDoubt is how many records of a rate may be on disk untold when the host is killed.
const inDoubt = 100_000

// Kill implements Host.
func (h *chost) Kill() error {
	if !h.Running() {
		return h.diedOr("killing the host")
	}
	h.process.Kill()
	if h.rating {
		first, last := h.opts.Tally.take(inDoubt)
		h.opts.Tally.doubt(first, last)
	}
	return nil
}

// Counts implements Host.
func (h *chost) Counts(ctx context.Context) (map[string]Counts, error) {
	e, err := h.status(ctx, "status")
	if err != nil {
		return nil, err
	}
	h.accepted(e)
	counts := map[string]Counts{}
	for _, o := range e.Outputs {
		counts[o.Instance] = Counts{Records: o.OK, Retries: o.Retries, Dropped: o.Dropped}
	}
	return counts, nil
}

func (h *chost) status(ctx context.Context, command string) (chostEvent, error) {
	from, err := h.send(command)
	if err != nil {
		return chostEvent{}, err
	}
	return h.wait(ctx, from, "asking for the status", "status")
}

// Rhythm implements Host.
func (h *chost) Rhythm(ctx context.Context, during time.Duration) (time.Duration, error) {
	if _, err := h.status(ctx, "status reset"); err != nil {
		return 0, err
	}
	if err := Pause(ctx, during); err != nil {
		return 0, err
	}
	e, err := h.status(ctx, "status")
	if err != nil {
		return 0, err
	}
	for _, o := range e.Outputs {
		if o.Instance == secondName && o.GapMax > 0 {
			return time.Duration(o.GapMax) * time.Microsecond, nil
		}
	}
	return 0, fmt.Errorf("watching the rhythm: output %q flushed less than twice in %s", secondName, during)
}

// Close implements Host.
func (h *chost) Close() error {
	if h.Running() {
		h.process.Kill()
	}
	return nil
}

// Pause waits, or returns the error of the context.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"out_kafka_reconnect/test/chart"
	"out_kafka_reconnect/test/e2e/rig"
)

// An output is what a host runs with.
type output struct {
	name  string // in the report
	lines string // of its section; ${BROKERS} stands for the addresses
	// bare: the library is not loaded, as by somebody who does not use it.
	bare bool
	// down: Kafka is away all the time.
	down bool
}

const (
	nowhere = "null"
	builtIn = "kafka (built-in)"
	ours    = "kafka_reconnect"
)

const (
	oursLines    = "name kafka_reconnect\nbrokers ${BROKERS}\ntopics app\nretry_limit no_limits\n"
	builtInLines = "name kafka\nbrokers ${BROKERS}\ntopics app\nretry_limit no_limits\n"
)

// privateLibrary lies beside the plugin.
const privateLibrary = "librdkafka_kafka_reconnect.so"

// host runs a host in a folder of its own. Done ends it.
func (b *bench) host(ctx context.Context, o output, brokers []string, tally *rig.Tally) (h rig.Host, done func(), err error) {
	kind, program := "chost", b.settings.host
	if b.fluentBit != "" {
		kind, program = "fluent-bit", b.fluentBit
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, nil, err
	}
	library, err := rig.Built(b.plugin, "build")
	if err != nil {
		return nil, nil, err
	}
	for _, path := range []string{library, filepath.Join(filepath.Dir(library), privateLibrary)} {
		if err := evict(path); err != nil {
			return nil, nil, err
		}
	}
	if o.bare {
		library = ""
	}
	dir, err := os.MkdirTemp("", "growth-")
	if err != nil {
		return nil, nil, err
	}
	h, err = rig.NewHost(kind, rig.HostOptions{Program: program, Plugin: library, Dir: dir, Tally: tally})
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		_ = h.Close()
		_ = os.RemoveAll(dir)
	}
	err = h.Configure(rig.Conf{
		Service: "log_level warn\nscheduler.cap 2\n",
		Outputs: outputSection(o.lines),
		Vars:    map[string]string{"BROKERS": strings.Join(brokers, ",")},
	})
	if err == nil {
		err = h.Start(ctx)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return h, done, nil
}

// outputSection is the section of these lines.
func outputSection(lines string) string {
	return "[OUTPUT]\n    match *\n    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ") + "\n"
}

// A start is the time until the host takes records.
type start struct {
	Output string  `json:"output"`
	Load   float64 `json:"load_ms"` // opening the library and its first call
	Init   float64 `json:"init_ms"` // making the instance
}

func (s start) String() string {
	return fmt.Sprintf("start, %s: %.1f ms to load, %.1f ms for the instance", s.Output, s.Load, s.Init)
}

// starts measures how long the C host takes to load the plugin and to make an instance, as the C host tells the time of each
// call. The median of some starts counts.
func (b *bench) starts(ctx context.Context, r *report) error {
	dir, err := os.MkdirTemp("", "growth-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	conf := filepath.Join(dir, "host.conf")
	text := "[SERVICE]\n    flush 1\n    grace 1\n    log_level warn\n" +
		outputSection(strings.ReplaceAll(oursLines, "${BROKERS}", "127.0.0.1:1"))
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return err
	}
	var loads, inits []float64
	for range 9 {
		load, init, err := b.startOnce(ctx, conf)
		if err != nil {
			return fmt.Errorf("starting the C host: %w", err)
		}
		loads, inits = append(loads, load), append(inits, init)
	}
	s := start{Output: ours, Load: chart.Median(loads), Init: chart.Median(inits)}
	r.Starts = append(r.Starts, s)
	b.say("%s", s)
	return nil
}

// startOnce reads the times, in milliseconds, from the events of a run without commands.
func (b *bench) startOnce(ctx context.Context, conf string) (load, init float64, err error) {
	cmd := exec.CommandContext(ctx, b.settings.host, "-e", b.plugin, "-c", conf)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, 0, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e struct {
			Fn    string
			T, US float64
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch e.Fn {
		case "FLBPluginRegister":
			load = e.T * 1000
		case "FLBPluginInit":
			init = e.US / 1000
		}
	}
	if err := cmd.Wait(); err != nil {
		return 0, 0, err
	}
	if load == 0 || init == 0 {
		return 0, 0, fmt.Errorf("it tells of no start")
	}
	return load, init, nil
}

// An idle is a host with nothing to do.
type idle struct {
	Output string  `json:"output"`
	MiB    float64 `json:"rss_mib"`
	Own    float64 `json:"own_mib"`     // of it, what is in no file
	CPU    float64 `json:"cpu_percent"` // of a core
	Thread int     `json:"threads"`
}

func (i idle) String() string {
	return fmt.Sprintf("idle, %s: %.1f MiB (%.1f of its own), %.3f %% of a core, %d threads", i.Output, i.MiB, i.Own, i.CPU, i.Thread)
}

const (
	// settles is how long an agent is left alone before it counts as idle: longer than what is given back after the start takes.
	settles = 20 * time.Second
	// idles is how long an idle agent is watched.
	idleFor = 20 * time.Second
)

// idles measures agents that have delivered some records and have nothing to do, and one whose Kafka is away.
func (b *bench) idles(ctx context.Context, r *report) error {
	broker, err := rig.NewEmbedded(rig.BrokerOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = broker.Close() }()
	outputs := []output{
		{name: nowhere, lines: "name null\n", bare: true},
		{name: builtIn, lines: builtInLines, bare: true},
		{name: ours, lines: oursLines},
		{name: ours + ", Kafka away", lines: oursLines, down: true},
	}
	if b.fluentBit == "" { // the C host opens the library in any case, and has no output for Kafka
		outputs = []output{{name: nowhere, lines: "name null\n"}, outputs[2], outputs[3]}
	}
	for _, o := range outputs {
		i, err := b.idle(ctx, o, broker)
		if err != nil {
			return fmt.Errorf("idle, %s: %w", o.name, err)
		}
		r.Idles = append(r.Idles, i)
		b.say("%s", i)
	}
	return nil
}

func (b *bench) idle(ctx context.Context, o output, broker *rig.Embedded) (i idle, err error) {
	i.Output = o.name
	if o.down {
		if err := broker.Stop(); err != nil {
			return i, err
		}
	}
	h, done, err := b.host(ctx, o, broker.Addrs(), rig.NewTally())
	if err != nil {
		return i, err
	}
	defer done()
	if err := h.Log(ctx, 100); err != nil {
		return i, err
	}
	if err := rig.Pause(ctx, settles); err != nil {
		return i, err
	}
	before, err := runtimeOf(h.PID())
	if err != nil {
		return i, err
	}
	if err := rig.Pause(ctx, idleFor); err != nil {
		return i, err
	}
	after, err := runtimeOf(h.PID())
	if err != nil {
		return i, err
	}
	res, err := rig.ResourcesOf(h.PID())
	if err != nil {
		return i, err
	}
	i.MiB, i.Own, i.Thread = rig.MiB(res.Memory), rig.MiB(res.Anonymous), res.Threads
	i.CPU = 100 * (after - before).Seconds() / idleFor.Seconds()
	return i, nil
}

// runtimeOf is how long the threads of a process have run so far, to the nanosecond: a hundredth of a second, as
// rig.Resources has it, is too much here.
func runtimeOf(pid int) (time.Duration, error) {
	paths, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat"))
	if err != nil || len(paths) == 0 {
		return 0, fmt.Errorf("process %d has no threads: %w", pid, err)
	}
	var sum time.Duration
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

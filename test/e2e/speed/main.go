// Command speed measures throughput, CPU, memory and latency end to end: Fluent Bit reads a file and writes it to a real Kafka
// through this output, through the built-in one, and to nowhere, in turns and on the same machine. What an output costs is the
// CPU of the whole process less that of the run to nowhere. Besides, it compares the half that hands records to the client with
// a loop in C that does nothing else.
//
// Without a Fluent Bit (FLUENT_BIT, or in PATH) only the second comparison is made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"out_kafka_reconnect/test/e2e/kafka"
	"out_kafka_reconnect/test/e2e/rig"
)

// settings are the command line.
type settings struct {
	plugin, out string
	private     string // this command with the plugin's librdkafka
	megabytes   int    // of log lines that a run delivers
	rounds      int
	latencyFor  time.Duration
	only        string
	match       *regexp.Regexp // of the throughput runs: "300 B, lz4, null"
	// Of a child process, see half.go.
	half, brokers, topic, codec string
	records, size               int
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	return rig.Command("speed", args, stderr, parse, func(ctx context.Context, s settings) error {
		if s.half != "" {
			return runHalf(s, stdout)
		}
		return measure(ctx, s, stdout)
	})
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("speed", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.plugin, "plugin", "build/out_kafka_reconnect.so", "the plugin, as make build leaves it")
	flags.StringVar(&s.private, "private", "build/speed-private", "this command, linked with the librdkafka of the plugin; it makes our produce half")
	flags.StringVar(&s.out, "out", "build/speed.json", "where the figures go; with -only, those of other parts stay")
	flags.IntVar(&s.megabytes, "megabytes", 1000, "MiB of log lines in each run; of a few, the second between two flushes is most")
	flags.IntVar(&s.rounds, "rounds", 3, "rounds, in which the outputs take turns")
	flags.DurationVar(&s.latencyFor, "latency", 20*time.Second, "how long each run for the latency logs 1,000 records a second")
	flags.StringVar(&s.only, "only", "", "throughput, memory, latency or produce: only that part")
	match := flags.String("match", "", "only the throughput runs whose name matches, as in '2 KB, none, kafka_reconnect$'")
	flags.StringVar(&s.half, "half", "", "used by the command itself: c or go")
	flags.StringVar(&s.brokers, "brokers", "", "for -half")
	flags.StringVar(&s.topic, "topic", "", "for -half")
	flags.StringVar(&s.codec, "codec", "none", "for -half")
	flags.IntVar(&s.records, "records", 0, "for -half")
	flags.IntVar(&s.size, "size", 0, "for -half")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var err error
	s.match, err = regexp.Compile(*match)
	switch {
	case err != nil:
		err = fmt.Errorf("-match: %w", err)
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.megabytes < 1 || s.rounds < 1 || s.latencyFor < time.Second:
		err = errors.New("-megabytes and -rounds must be 1 at least, -latency 1s")
	case !strings.Contains(" throughput memory latency produce ", " "+s.only+" ") && s.only != "":
		err = fmt.Errorf("-only %q is unknown; allowed: throughput, memory, latency, produce", s.only)
	case s.half != "" && s.half != "c" && s.half != "go":
		err = fmt.Errorf("-half %q is unknown; allowed: c, go", s.half)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "speed:", err)
	}
	return s, err
}

// measure runs everything and writes the report.
func measure(ctx context.Context, s settings, stdout io.Writer) error {
	var err error
	if s.plugin, err = rig.Built(s.plugin, "build"); err != nil {
		return err
	}
	program, version, err := rig.FindFluentBit(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(memoryDir(), "speed-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	dist, err := kafka.Install(ctx, "")
	if err != nil {
		return err
	}
	cluster, err := kafka.New(dist, kafka.Options{
		Dir: filepath.Join(dir, "kafka"), HeapMiB: 1024,
		// What was read is thrown away early: the data lies in memory.
		Properties: map[string]string{"log.segment.bytes": "67108864", "log.retention.check.interval.ms": "1000"},
	})
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Close() }()
	if err := cluster.Start(); err != nil {
		return err
	}
	if err := cluster.WaitReady(ctx); err != nil {
		return err
	}
	admin, err := cluster.Admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	b := &bench{settings: s, dir: dir, program: program, cluster: cluster, admin: admin, log: stdout}
	report := newReport(version)
	if program == "" {
		_, _ = fmt.Fprintln(stdout, "There is no Fluent Bit in FLUENT_BIT or PATH: only the produce half is measured.")
	} else if err := b.hosts(ctx, report); err != nil {
		return err
	}
	if s.only == "" || s.only == "produce" {
		if err := b.halves(ctx, report); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprint(stdout, report.Markdown())
	if s.only != "" {
		if err := report.complete(s.out); err != nil {
			return err
		}
	}
	return report.write(s.out)
}

// memoryDir is a file system in memory if there is one: from a disk, in_tail waits for the disk, and all outputs look alike.
func memoryDir() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

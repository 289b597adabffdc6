// Command demo shows an outage: a host with the plugin in it logs at a steady rate, Kafka is stopped and started again, and
// in the end every record has arrived once.
//
// Kafka is the embedded broker of the tests, in this process. The host is Fluent Bit when FLUENT_BIT names one or PATH has
// one, else the C host. One line a second says where things stand; the plugin's own lines are shown as they come. The exit
// status is 0 only when nothing was lost and nothing doubled.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// settings are the command line.
type settings struct {
	plugin, chost, hostKind string
	rate                    int
	before, down, after     time.Duration
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout *os.File, stderr io.Writer) int {
	return rig.Command("demo", args, stderr, parse, func(ctx context.Context, s settings) error { return show(ctx, s, stdout) })
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.plugin, "plugin", "build/out_kafka_reconnect.so", "the plugin, as make build leaves it")
	flags.StringVar(&s.chost, "host", "build/chost", "the C host, as make build/chost leaves it")
	flags.StringVar(&s.hostKind, "host-kind", "auto", "auto, chost or fluent-bit")
	flags.IntVar(&s.rate, "rate", 20, "records a second")
	flags.DurationVar(&s.before, "before", 5*time.Second, "time before Kafka is stopped")
	flags.DurationVar(&s.down, "down", 12*time.Second, "time for which Kafka is away")
	flags.DurationVar(&s.after, "after", 10*time.Second, "time for which logging goes on when Kafka is back")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.hostKind != "auto" && s.hostKind != "chost" && s.hostKind != "fluent-bit":
		err = fmt.Errorf("-host-kind %q is unknown; allowed: auto, chost, fluent-bit", s.hostKind)
	case s.rate < 1 || s.rate > 10_000:
		err = fmt.Errorf("-rate %d is out of range; allowed: 1 to 10000", s.rate)
	case s.before < time.Second || s.down < time.Second || s.after < time.Second:
		err = errors.New("-before, -down and -after must be 1s at least")
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "demo:", err)
	}
	return s, err
}

// find returns the host and the plugin, or an error that says how to get what is missing.
func find(ctx context.Context, s settings) (kind, program, name, plugin string, err error) {
	if plugin, err = rig.Built(s.plugin, "build"); err != nil {
		return "", "", "", "", err
	}
	if s.hostKind != "chost" {
		path, version, err := rig.FindFluentBit(ctx)
		switch {
		case err != nil:
			return "", "", "", "", err
		case path != "":
			return "fluent-bit", path, "Fluent Bit " + version, plugin, nil
		case s.hostKind == "fluent-bit":
			return "", "", "", "", errors.New("looking for Fluent Bit: FLUENT_BIT is not set and PATH has none; set it, or use -host-kind chost")
		}
	}
	program, err = rig.Built(s.chost, "build/chost")
	return "chost", program, "the C host, which stands in for Fluent Bit", plugin, err
}

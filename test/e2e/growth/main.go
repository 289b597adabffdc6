package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"out_kafka_reconnect/test/e2e/rig"
)

// settings are the command line.
type settings struct {
	plugin, host, out string
	only              string
	records, rounds   int
	profile           string
}

// bench is what all measurements share.
type bench struct {
	settings
	fluentBit string // the program; empty when there is none
	log       io.Writer
}

func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.log, format+"\n", args...) }

// parts are what -only picks from.
const parts = "series start idle soak"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	return rig.Command("growth", args, stderr, parse, func(ctx context.Context, s settings) error {
		if s.profile != "" {
			return profile(ctx, s, stdout)
		}
		return measure(ctx, s, stdout)
	})
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("growth", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.plugin, "plugin", "build/out_kafka_reconnect.so", "the plugin, as make build leaves it")
	flags.StringVar(&s.host, "host", "build/chost", "the host that stands in for Fluent Bit")
	flags.StringVar(&s.out, "out", "docs/growth/results.json", "where the figures go; what is there of other parts stays")
	flags.StringVar(&s.only, "only", "", "only one part: "+strings.ReplaceAll(parts, " ", ", "))
	flags.IntVar(&s.records, "records", 200_000, "records of each point of a series")
	flags.IntVar(&s.rounds, "rounds", 3, "rounds of each point, of which the cheapest counts")
	flags.StringVar(&s.profile, "profile", "", "a folder: profile the whole path instead of measuring, and write flame graphs there")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.records < 1 || s.rounds < 1:
		err = errors.New("-records and -rounds must be 1 at least")
	case s.only != "" && !strings.Contains(" "+parts+" ", " "+s.only+" "):
		err = fmt.Errorf("-only %q is unknown; allowed: %s", s.only, strings.ReplaceAll(parts, " ", ", "))
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "growth:", err)
	}
	return s, err
}

// measure makes the measurements and adds them to the results.
func measure(ctx context.Context, s settings, stdout io.Writer) error {
	b := &bench{settings: s, log: stdout}
	r, err := readReport(s.out)
	if err != nil {
		return err
	}
	var version string
	if b.fluentBit, version, err = rig.FindFluentBit(ctx); err != nil {
		return err
	}
	r.describe(version)
	b.say("%s", r.Machine)
	for _, part := range []struct {
		name    string
		clear   func()
		measure func(context.Context, *report) error
	}{
		{"series", func() { r.Points, r.Backlogs = nil, nil }, b.series},
		{"start", func() { r.Starts = nil }, b.starts},
		{"idle", func() { r.Idles = nil }, b.idles},
		{"soak", func() { r.Soaks = nil }, b.soaks},
	} {
		if s.only != "" && s.only != part.name {
			continue
		}
		part.clear()
		if err := part.measure(ctx, r); err != nil {
			return err
		}
	}
	return r.write(s.out)
}

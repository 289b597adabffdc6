// Command parity runs the built-in kafka output and this plugin in one Fluent Bit over the records of package parity, and
// judges what Kafka received from each.
//
// Fluent Bit is the one that FLUENT_BIT names or that is in PATH; Kafka is the embedded broker of the tests, one for each
// output. The table goes to standard output. The exit status is 0 only when nothing is worse.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"out_kafka_reconnect/test/e2e/parity"
	"out_kafka_reconnect/test/e2e/rig"
)

// settings are the command line.
type settings struct {
	plugin, record string
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	return rig.Command("parity", args, stderr, parse, func(ctx context.Context, s settings) error { return compare(ctx, s, stdout) })
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("parity", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.plugin, "plugin", "build/out_kafka_reconnect.so", "the plugin, as make build leaves it")
	flags.StringVar(&s.record, "record", "", "a file for what Kafka received from the built-in output")
	return s, flags.Parse(args)
}

// compare runs both and prints the table.
func compare(ctx context.Context, s settings, stdout io.Writer) error {
	program, version, err := rig.FindFluentBit(ctx)
	if err != nil {
		return err
	}
	if program == "" {
		return errors.New("there is no Fluent Bit in FLUENT_BIT or PATH; go test ./plugin -run TestParity -v judges by what was recorded")
	}
	if s.plugin, err = rig.Built(s.plugin, "build"); err != nil {
		return err
	}
	sections := parity.Sections()
	avro, err := hasAvro(ctx, program)
	if err != nil {
		return err
	}
	if !avro {
		_, _ = fmt.Fprint(stdout, "This Fluent Bit was built without Avro, which is left out.\n\n")
		sections = slices.DeleteFunc(sections, func(s parity.Section) bool { return s.Avro() })
	}
	b, err := fight(ctx, s.plugin, program, sections)
	if err != nil {
		return err
	}
	recording := parity.NewRecording(version)
	var score parity.Score
	for i := range b.sections {
		section := &b.sections[i]
		for n, r := range b.corpora[section.Corpus].Records {
			builtin, ours := b.builtin.messages[section.Name][n], b.ours.messages[section.Name][n]
			recording.Add(section.Name, r, builtin)
			score.Add(section, r, builtin, ours)
		}
	}
	if _, err := fmt.Fprintf(stdout, "Fluent Bit %s\n\n%s", version, score.Markdown()); err != nil {
		return err
	}
	if s.record != "" && !avro {
		return errors.New("a recording needs a Fluent Bit that was built with Avro (-DFLB_AVRO_ENCODER=On)")
	}
	if s.record != "" {
		if err := recording.Write(s.record); err != nil {
			return err
		}
	}
	if n := len(score.Worse); n > 0 {
		for _, text := range score.Worse {
			_, _ = fmt.Fprintln(stdout, text)
		}
		return fmt.Errorf("%d records are worse than the built-in output's", n)
	}
	return nil
}

// hasAvro tells whether a Fluent Bit was built with Avro.
func hasAvro(ctx context.Context, program string) (bool, error) {
	help, err := exec.CommandContext(ctx, program, "--help").Output()
	if err != nil {
		return false, fmt.Errorf("running %s --help: %w", program, err)
	}
	return bytes.Contains(help, []byte("FLB_HAVE_AVRO_ENCODER")), nil
}

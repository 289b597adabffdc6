// Command demo plays an outage: records are delivered, Kafka stops while logging goes on,
// the supervisor backs off, Kafka starts again, and everything arrives, once. The broker is
// the embedded one, the plugin is the real library, the host is Fluent Bit or the C program
// that stands in for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// outputs is the section that is shown. At level info the plugin tells of the first attempt of
// each backoff step only; the timeline wants them all.
const outputs = `
[OUTPUT]
    Name         kafka_reconnect
    Match        *
    Brokers      ${BROKERS}
    Topics       app
    Retry_Limit  no_limits
    Workers      1
    Log_Level    debug
`

// plan is the course of the demo.
type plan struct {
	plugin, host, kind string
	perSecond          int
	before, away       time.Duration // Kafka is there, Kafka is away
	after              time.Duration // logging goes on
	patience           time.Duration // for the rest to arrive
}

func main() {
	var p plan
	flag.StringVar(&p.plugin, "plugin", "build/out_kafka_reconnect.so", "the plugin")
	flag.StringVar(&p.host, "host", "build/chost", "the C host")
	flag.StringVar(&p.kind, "host-kind", "auto", "chost, fluent-bit, or auto: Fluent Bit when FLUENT_BIT or PATH has one")
	flag.IntVar(&p.perSecond, "rate", 20, "records a second")
	flag.DurationVar(&p.before, "before", 5*time.Second, "how long Kafka is there at first")
	flag.DurationVar(&p.away, "away", 12*time.Second, "how long Kafka is away")
	flag.DurationVar(&p.after, "after", 5*time.Second, "how long logging goes on afterwards")
	flag.DurationVar(&p.patience, "patience", 30*time.Second, "how long the rest may take to arrive")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := play(ctx, p); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// play runs the plan; the error says what went wrong, a lost or doubled record included.
func play(ctx context.Context, p plan) (err error) {
	kind, program, err := p.program(ctx)
	if err != nil {
		return err
	}
	library, err := rig.Built(p.plugin, "build")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kafka_reconnect-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	kafka, err := rig.NewEmbedded(rig.BrokerOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kafka.Close()) }()
	tally := rig.NewTally()
	host, err := rig.NewHost(kind, rig.HostOptions{Program: program, Plugin: library, Dir: dir, Tally: tally})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	conf := rig.Conf{Outputs: outputs, Vars: map[string]string{"BROKERS": kafka.Addrs()[0]}}
	if err := host.Configure(conf); err != nil {
		return err
	}
	if err := host.Start(ctx); err != nil {
		return err
	}
	s := newShow(host, kafka, tally)
	s.say("%s runs the plugin, %d records a second are logged, chunks are kept on disk", kind, p.perSecond)
	return outage(ctx, p, s)
}

// program picks the host.
func (p plan) program(ctx context.Context) (kind, program string, err error) {
	if p.kind != "chost" {
		fluentBit, _, err := rig.FindFluentBit(ctx)
		if err != nil {
			return "", "", err
		}
		if fluentBit != "" {
			return "fluent-bit", fluentBit, nil
		}
		if p.kind != "auto" {
			return "", "", errors.New("there is no Fluent Bit: set FLUENT_BIT or put it into PATH")
		}
	}
	program, err = rig.Built(p.host, "build/chost")
	return "chost", program, err
}

// outage is the scenario itself.
func outage(ctx context.Context, p plan, s *show) error {
	if err := s.host.Rate(ctx, p.perSecond, p.before+p.away+p.after); err != nil {
		return err
	}
	if err := s.watch(ctx, p.before, never); err != nil {
		return err
	}
	s.say("Kafka stops")
	if err := s.kafka.Stop(); err != nil {
		return err
	}
	if err := s.watch(ctx, p.away, never); err != nil {
		return err
	}
	s.say("Kafka starts")
	if err := s.kafka.Start(ctx); err != nil {
		return err
	}
	if err := s.watch(ctx, p.after, never); err != nil {
		return err
	}
	if err := s.host.RateOver(ctx); err != nil {
		return err
	}
	s.say("logging ends")
	if err := s.watch(ctx, p.patience, s.allDelivered); err != nil {
		return err
	}
	if _, err := s.host.Stop(ctx); err != nil {
		return err
	}
	s.messages()
	return s.verdict(ctx)
}

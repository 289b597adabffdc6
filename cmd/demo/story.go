package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// outputs is the section that is shown working. At level debug the plugin tells of every attempt.
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

// Bounds of what should take a moment.
const (
	startWithin   = 20 * time.Second
	recoverWithin = 20 * time.Second
	settleWithin  = 20 * time.Second
	stopWithin    = 15 * time.Second
)

// A stage is what the story is told on.
type stage struct {
	set    settings
	kafka  *rig.Embedded
	host   rig.Host
	tally  *rig.Tally
	screen *screen

	progress rig.Progress
	seen     int // lines of the log that were looked at
	retries  int // as the host counts them
}

// show sets everything up, tells the story and clears away.
func show(ctx context.Context, s settings, out *os.File) (err error) {
	kind, program, name, plugin, err := find(ctx, s)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	kafka, err := rig.NewEmbedded(rig.BrokerOptions{Nodes: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kafka.Close()) }()
	tally := rig.NewTally()
	host, err := rig.NewHost(kind, rig.HostOptions{Program: program, Plugin: plugin, Dir: dir, Tally: tally})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	if err := host.Configure(rig.Conf{Outputs: outputs, Vars: map[string]string{"BROKERS": kafka.Addrs()[0]}}); err != nil {
		return err
	}
	st := &stage{set: s, kafka: kafka, host: host, tally: tally, screen: newScreen(out)}
	st.screen.title(fmt.Sprintf("Kafka at %s; %s; %d records a second", kafka.Addrs()[0], name, s.rate))
	return st.tell(ctx)
}

// tell is the story.
func (st *stage) tell(ctx context.Context) error {
	if err := bounded(ctx, startWithin, func(ctx context.Context) error { return st.host.Start(ctx) }); err != nil {
		return err
	}
	all := st.set.before + st.set.down + st.set.after
	if err := st.host.Rate(ctx, st.set.rate, all); err != nil {
		return err
	}
	st.screen.happens("logging begins")
	if err := st.watch(ctx, st.set.before, nil); err != nil {
		return err
	}

	if err := st.kafka.Stop(); err != nil {
		return err
	}
	st.screen.happens("Kafka is stopped; logging goes on")
	if err := st.watch(ctx, st.set.down, nil); err != nil {
		return err
	}

	waiting := st.tally.Accepted()
	if err := st.kafka.Start(ctx); err != nil {
		return err
	}
	back := time.Now()
	st.screen.happens("Kafka is started; nobody tells the plugin")
	if err := st.watch(ctx, recoverWithin, func() bool { return st.kafka.Delivered() >= waiting }); err != nil {
		return err
	}
	caughtUp := time.Since(back)
	st.screen.happens(fmt.Sprintf("all that was logged during the outage is delivered, %.1f s after the start", caughtUp.Seconds()))
	if err := st.watch(ctx, st.set.after-time.Since(back), nil); err != nil {
		return err
	}
	return st.end(ctx)
}

// end lets the rate come to its end, stops the host and judges.
func (st *stage) end(ctx context.Context) error {
	if err := bounded(ctx, settleWithin, st.host.RateOver); err != nil {
		return err
	}
	st.screen.happens("logging ends")
	// A failure is found by the audit, which says what is missing.
	_ = st.watch(ctx, settleWithin, func() bool { return st.kafka.Delivered() >= st.tally.Accepted() })
	if err := bounded(ctx, stopWithin, func(ctx context.Context) error {
		_, err := st.host.Stop(ctx)
		return err
	}); err != nil {
		return err
	}
	st.read()
	st.screen.happens("the host has stopped")
	return bounded(ctx, settleWithin, func(ctx context.Context) error {
		res, err := st.tally.Audit(ctx, st.kafka)
		if res == nil {
			return err
		}
		st.screen.end(fmt.Sprintf("lost %d, doubled %d: %d records logged, %d in the topic, %d retries answered to the host",
			len(res.Lost), len(res.Doubled), st.tally.Accepted(), res.Records, st.retries))
		return err
	})
}

// errNotYet is the end of a watch that waited for something.
var errNotYet = errors.New("it has not happened in time")

// look is how often the stage looks around; tick is how often it says what it sees.
const (
	look = 100 * time.Millisecond
	tick = time.Second
)

// watch tells what happens, for a time or until something is so.
func (st *stage) watch(ctx context.Context, during time.Duration, until func() bool) error {
	end := time.Now().Add(during)
	for {
		st.read()
		if !st.host.Running() {
			return fmt.Errorf("watching the host: it has ended; its last lines:\n%s", st.host.LogLines().Tail(15))
		}
		if st.screen.due() {
			st.status(ctx)
		}
		switch {
		case until != nil && until():
			return nil
		case !time.Now().Before(end) && until != nil:
			return fmt.Errorf("waiting for deliveries: %w; the host's last lines:\n%s", errNotYet, st.host.LogLines().Tail(15))
		case !time.Now().Before(end):
			return nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read looks at the lines that the host has written since.
func (st *stage) read() {
	lines := st.host.LogLines().Since(st.seen)
	st.seen += len(lines)
	for _, line := range lines {
		m, ok := rig.ParseMessage(line)
		if !ok {
			continue
		}
		about := st.progress.Take(m) || m.Text == "broker connection lost"
		if m.Level == "error" || m.Level == "warn" || m.Level == "info" && about {
			st.screen.said(m)
		}
	}
}

// status says where things stand.
func (st *stage) status(ctx context.Context) {
	_ = bounded(ctx, tick, func(ctx context.Context) error { // without an answer the old figure stands
		counts, err := st.host.Counts(ctx)
		if err == nil {
			st.retries = counts["kafka_reconnect.0"].Retries
		}
		return err
	})
	delivered := st.kafka.Delivered()
	st.screen.status(st.progress, st.tally.Accepted(), delivered)
}

// bounded gives something a context that ends.
func bounded(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

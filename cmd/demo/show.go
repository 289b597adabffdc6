package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// instance is the name under which the one section logs.
const instance = "kafka_reconnect.0"

// show prints the timeline: a row a second, and the plugin's own lines in between.
type show struct {
	host  rig.Host
	kafka *rig.Embedded
	tally *rig.Tally

	start    time.Time
	progress rig.Progress
	seen     int // lines of the host's log
}

func newShow(host rig.Host, kafka *rig.Embedded, tally *rig.Tally) *show {
	s := &show{host: host, kafka: kafka, tally: tally, start: time.Now(), progress: rig.Progress{State: "starting"}}
	fmt.Printf("%7s  %-9s %8s %9s %8s %13s %8s\n", "time", "state", "attempt", "next try", "logged", "acknowledged", "waiting")
	return s
}

// say prints what happens.
func (s *show) say(format string, args ...any) {
	fmt.Printf("%6.1fs  --- %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// never is for a watch that lasts its time.
func never() bool { return false }

// allDelivered tells whether the topic holds as many records as were logged.
func (s *show) allDelivered() bool { return s.kafka.Delivered() >= s.tally.Accepted() }

// watch prints the timeline for a while, or until something is true.
func (s *show) watch(ctx context.Context, during time.Duration, until func() bool) error {
	end := time.NewTimer(during)
	defer end.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for n := 1; !until(); n++ {
		select {
		case <-tick.C:
			s.messages()
			if n%5 == 0 {
				s.row()
			}
		case <-end.C:
			s.messages()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.messages()
	s.row()
	return nil
}

// messages prints the new lines of the plugin.
func (s *show) messages() {
	log := s.host.LogLines()
	upTo := log.Len()
	for _, m := range log.Messages(s.seen, instance) {
		if s.progress.Take(m) && m.Level != "debug" {
			fmt.Printf("%6.1fs      [%s] %s%s\n", m.Made.Sub(s.start).Seconds(), m.Level, m.Text, details(m))
		}
	}
	s.seen = upTo
}

// details are the attributes that a viewer of the demo wants to see.
func details(m rig.Message) string {
	var b strings.Builder
	for _, key := range []string{"reason", "attempt", "next_in", "down_s", "attempts", "refused", "err"} {
		if v, ok := m.Attrs[key]; ok {
			fmt.Fprintf(&b, " %s=%s", key, v)
		}
	}
	return b.String()
}

func (s *show) row() {
	attempt, next := "-", "-"
	if s.progress.State == "down" {
		attempt = fmt.Sprint(s.progress.Attempt)
		if in := time.Until(s.progress.Next); in > 0 {
			next = fmt.Sprintf("%.1fs", in.Seconds())
		} else {
			next = "now"
		}
	}
	logged, delivered := s.tally.Accepted(), s.kafka.Delivered()
	fmt.Printf("%6.1fs  %-9s %8s %9s %8d %13d %8d\n",
		time.Since(s.start).Seconds(), s.state(delivered), attempt, next, logged, delivered, max(0, logged-delivered))
}

// state is the plugin's, which tells nothing before the first outage: a delivered record
// says then that a broker is up.
func (s *show) state(delivered int) string {
	if s.progress.State == "starting" && delivered > 0 {
		return "up"
	}
	return s.progress.State
}

// verdict audits the topic. A lost or doubled record is an error.
func (s *show) verdict(ctx context.Context) error {
	res, err := s.tally.Audit(ctx, s.kafka)
	if res != nil {
		fmt.Printf("\n%d records logged, %d in the topic: lost %d, doubled %d\n",
			s.tally.Accepted(), res.Records, len(res.Lost), len(res.Doubled))
	}
	return err
}

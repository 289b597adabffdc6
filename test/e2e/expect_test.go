//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

var errNoHost = errors.New("the host was not started yet")

// firstInstance is the one that is meant without a name.
const firstInstance = "kafka_reconnect.0"

// onItsWay is how long a line of the plugin waits for a thread of the host, and a bit.
const onItsWay = 1200 * time.Millisecond

// state waits for a change of the plugin's state since something was done. What counts is when the plugin noticed, which is
// in the line.
func (s *scenario) state(w *words) error {
	want := w.next("the state")
	limit := w.duration(w.option("within", "2s"))
	instance := w.option("of", firstInstance)
	if want != "down" && want != "up" {
		w.fail("state %q is unknown; allowed: down, up", want)
	}
	if s.host == nil {
		return errNoHost
	}
	ctx, cancel := s.within(limit + onItsWay)
	defer cancel()
	var p rig.Progress
	m, err := s.host.LogLines().WaitState(ctx, s.fromLine, instance, &p, want)
	if err != nil {
		return fmt.Errorf("waiting for state %s of %s, it is %q: %w", want, instance, p.State, err)
	}
	if took := m.Made.Sub(s.fromTime); took > limit {
		return fmt.Errorf("waiting for state %s of %s: it took %s, want %s at most", want, instance, took.Round(time.Millisecond), limit)
	}
	return nil
}

func (w *words) pattern() *regexp.Regexp {
	text := w.next("the pattern")
	p, err := regexp.Compile(text)
	if err != nil {
		w.fail("%q is no pattern: %v", text, err)
		return regexp.MustCompile("")
	}
	return p
}

// canAsk tells what keeps a question to the host from being asked: its words, or that there is no host.
func (s *scenario) canAsk(w *words) error {
	if w.wrong == nil && s.host == nil {
		return errNoHost
	}
	return w.wrong
}

// expectLog waits for a line since something was done, or counts the lines that are there.
func (s *scenario) expectLog(w *words) error {
	limit := w.duration(w.option("within", "2s"))
	count := w.number(w.option("count", "-1"))
	pattern := w.pattern()
	if err := s.canAsk(w); err != nil {
		return err
	}
	ctx, cancel := s.within(limit)
	defer cancel()
	if _, err := s.host.LogLines().Wait(ctx, s.fromLine, pattern); err != nil {
		return err
	}
	if n := len(s.host.LogLines().Find(s.fromLine, pattern)); count >= 0 && n != count {
		return fmt.Errorf("looking for log lines like %q: there are %d, want %d", pattern, n, count)
	}
	return nil
}

// noLog looks for lines that must not be there, since something was done or since ever.
func (s *scenario) noLog(w *words) error {
	from := s.fromLine
	if w.has("ever") {
		from = 0
	}
	pattern := w.pattern()
	if err := s.canAsk(w); err != nil {
		return err
	}
	if found := s.host.LogLines().Find(from, pattern); len(found) > 0 {
		return fmt.Errorf("looking for log lines like %q: there are %d, want none; the first is\n%s", pattern, len(found), found[0].Text)
	}
	return nil
}

// broker returns the broker that a command names.
func (s *scenario) broker(w *words) (rig.Broker, error) {
	name := w.option("of", mainKafka)
	b := s.brokers[name]
	if b == nil {
		return nil, fmt.Errorf("there is no %s yet", name)
	}
	return b, nil
}

// delivered waits for so many different records, and sees that none of them is there twice.
func (s *scenario) delivered(w *words) error {
	b, err := s.broker(w)
	if err != nil {
		return err
	}
	limit := w.duration(w.option("within", "10s"))
	topic := w.option("in", rig.Topic)
	n := w.number(w.next("the number of records"))
	if w.wrong != nil {
		return w.wrong
	}
	ctx, cancel := s.within(limit)
	defer cancel()
	return rig.WaitDelivered(ctx, b, topic, n)
}

// records waits until a pattern is found exactly so many times in the records of a topic. If it has a group, each text of the
// group must be another one.
func (s *scenario) records(w *words) error {
	b, err := s.broker(w)
	if err != nil {
		return err
	}
	limit := w.duration(w.option("within", "10s"))
	topic := w.option("in", rig.Topic)
	n := w.number(w.next("the number of matches"))
	pattern := w.pattern()
	if w.wrong != nil {
		return w.wrong
	}
	ctx, cancel := s.within(limit)
	defer cancel()
	return until(ctx, func() error {
		all, err := rig.Records(ctx, b, topic)
		if err != nil {
			return err
		}
		found, texts := 0, map[string]bool{}
		for _, text := range all {
			for _, match := range pattern.FindAllStringSubmatch(text, -1) {
				found++
				texts[match[len(match)-1]] = true
			}
		}
		if found != n || pattern.NumSubexp() > 0 && len(texts) != n {
			last := "there is none"
			if len(all) > 0 {
				last = fmt.Sprintf("the last is %.400q", all[len(all)-1])
			}
			return fmt.Errorf("looking for %q in topic %s: found %d times, %d different; want %d; of %d records %s", pattern, topic, found, len(texts), n, len(all), last)
		}
		return nil
	})
}

// audit compares the whole topic with what the host has accepted. The host must have ended: it could send more.
func (s *scenario) audit(w *words) error {
	b, err := s.broker(w)
	if err != nil {
		return err
	}
	topic := w.option("in", rig.Topic)
	ordered := w.has("ordered")
	if s.host == nil || s.host.Running() {
		return errors.New("auditing: stop the host first")
	}
	ctx, cancel := patiently()
	defer cancel()
	res, err := s.tally.AuditTopic(ctx, b, topic)
	if err != nil {
		return err
	}
	w.ts.Logf("%v", res)
	if ordered && len(res.Late) > 0 {
		return fmt.Errorf("auditing the order: %v", res)
	}
	return nil
}

// again is how often a check looks that has nothing to wait for.
const again = 200 * time.Millisecond

// until looks again and again until a check is content, or its time is over. What a look has found says more than that the
// time was over during the next one.
func until(ctx context.Context, look func() error) error {
	var found error
	for {
		err := look()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && found != nil:
			return found
		case ctx.Err() != nil:
			return err
		}
		found = err
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// letters waits until a dead-letter target holds so many letters of a kind, each of another record and with all that it
// should tell. More of them are as bad as fewer.
func (s *scenario) letters(w *words) error {
	b, err := s.broker(w)
	if err != nil {
		return err
	}
	n := w.number(w.next("the number of letters"))
	kind := w.next("the kind")
	topic, file := w.option("in", ""), w.option("file", "")
	about, code := w.option("about", rig.Topic), w.option("code", "")
	limit := w.duration(w.option("within", "10s"))
	if (topic == "") == (file == "") {
		w.fail("in TOPIC or file FILE is needed")
	}
	if w.wrong != nil {
		return w.wrong
	}
	ctx, cancel := s.within(limit)
	defer cancel()
	return until(ctx, func() error {
		var all []rig.Letter
		var err error
		if file != "" {
			all, err = rig.FileLetters(w.ts.MkAbs(file))
		} else {
			all, err = rig.TopicLetters(ctx, b, topic)
		}
		if err != nil {
			return err
		}
		return checkLetters(all, n, kind, about, code)
	})
}

// letterTag is the tag of every record of a scenario.
const letterTag = "app"

// checkLetters looks at the letters of one kind about one topic.
func checkLetters(all []rig.Letter, n int, kind, about, code string) error {
	numbers := map[int64]bool{}
	found := 0
	for _, l := range all {
		if l.Kind != kind || l.Topic != about {
			continue
		}
		found++
		switch {
		case l.Tag != letterTag || l.Reason == "" || code != "" && code != strconv.Itoa(l.Code):
			return fmt.Errorf("looking at letters of kind %s: %+v", kind, l)
		case l.Number != 0 && numbers[l.Number]:
			return fmt.Errorf("looking at letters of kind %s: two of record %d", kind, l.Number)
		}
		numbers[l.Number] = true
	}
	if found != n {
		return fmt.Errorf("looking for letters of kind %s about topic %q: %d of %d, want %d", kind, about, found, len(all), n)
	}
	return nil
}

// answered waits until the host counts so many records of an output as delivered, and none as dropped.
func (s *scenario) answered(w *words) error {
	n := w.number(w.next("the number of records"))
	limit := w.duration(w.option("within", "10s"))
	instance := w.option("of", firstInstance)
	if err := s.canAsk(w); err != nil {
		return err
	}
	ctx, cancel := s.within(limit)
	defer cancel()
	return until(ctx, func() error {
		counts, err := s.host.Counts(ctx)
		if err != nil {
			return err
		}
		if c := counts[instance]; c.Records != n || c.Dropped != 0 {
			return fmt.Errorf("asking the host about %s: %d records delivered and %d dropped, want %d and 0", instance, c.Records, c.Dropped, n)
		}
		return nil
	})
}

// metric compares a metric of the plugin with a number, or with how many records the topic holds.
func (s *scenario) metric(w *words) error {
	series, op, value := w.next("the metric"), w.next("the operator"), w.next("the value")
	limit := w.duration(w.option("within", "2s"))
	if w.wrong != nil {
		return w.wrong
	}
	name, labels, err := parseSeries(series)
	if err != nil {
		return err
	}
	ctx, cancel := s.within(limit)
	defer cancel()
	return until(ctx, func() error {
		want, err := s.figure(ctx, value)
		if err != nil {
			return err
		}
		got, err := rig.Metric(ctx, s.metricsAddr(), name, labels)
		if err != nil {
			return err
		}
		holds := map[string]bool{"=": got == want, ">": got > want, "<": got < want, ">=": got >= want, "<=": got <= want}
		if ok, known := holds[op]; !known || !ok {
			return fmt.Errorf("comparing %s: it is %v, want %s %v", series, got, op, want)
		}
		return nil
	})
}

// figure is a number, or the word delivered: how many records the topic holds.
func (s *scenario) figure(ctx context.Context, text string) (float64, error) {
	if text != "delivered" {
		return strconv.ParseFloat(text, 64)
	}
	res, err := s.tally.Audit(ctx, s.brokers[mainKafka])
	if err != nil {
		return 0, err
	}
	return float64(res.Records), nil
}

var label = regexp.MustCompile(`^([a-z_]+)="([^"]*)"$`)

// parseSeries takes name{label="value",…} apart.
func parseSeries(text string) (name string, labels map[string]string, err error) {
	name, rest, found := strings.Cut(text, "{")
	if !found {
		return name, nil, nil
	}
	labels = map[string]string{}
	for pair := range strings.SplitSeq(strings.TrimSuffix(rest, "}"), ",") {
		match := label.FindStringSubmatch(pair)
		if match == nil {
			return name, nil, fmt.Errorf("reading %q: %q is no label such as state=\"up\"", text, pair)
		}
		labels[match[1]] = match[2]
	}
	return name, labels, nil
}

// resources notes what the host's process holds, compares it with what was noted, or watches how busy it is.
func (s *scenario) resources(w *words) error {
	verb := w.next("note, same or busy")
	during := w.duration(w.option("for", "3s"))
	most := w.number(w.option("max", "20"))
	threads := w.number(w.option("threads", "2"))
	sockets := w.number(w.option("sockets", "1"))
	memory := w.number(w.option("memory", "16"))
	limit := w.duration(w.option("within", "10s"))
	if err := s.canAsk(w); err != nil {
		return err
	}
	if verb == "busy" {
		return s.busy(w, during, most)
	}
	ctx, cancel := s.within(limit)
	defer cancel()
	switch verb {
	case "note":
		r, err := rig.ResourcesOf(s.host.PID())
		s.noted = r
		w.ts.Logf("noted: %v", r)
		return err
	case "same":
		return until(ctx, func() error {
			r, err := rig.ResourcesOf(s.host.PID())
			if err != nil {
				return err
			}
			if r.Threads > s.noted.Threads+threads || r.Sockets > s.noted.Sockets+sockets || r.Files > s.noted.Files+sockets ||
				r.Memory > s.noted.Memory+int64(memory)<<20 {
				return fmt.Errorf("comparing resources: %v; noted were %v", r, s.noted)
			}
			w.ts.Logf("now: %v; noted were %v", r, s.noted)
			return nil
		})
	}
	return fmt.Errorf("%q is unknown; allowed: note, same, busy", verb)
}

// busy watches how much of a core the host's process takes.
func (s *scenario) busy(w *words, during time.Duration, most int) error {
	before, err := rig.ResourcesOf(s.host.PID())
	if err != nil {
		return err
	}
	time.Sleep(during)
	after, err := rig.ResourcesOf(s.host.PID())
	if err != nil {
		return err
	}
	s.fromTime = time.Now()
	percent := 100 * (after.CPU - before.CPU).Seconds() / during.Seconds()
	if percent > float64(most) {
		return fmt.Errorf("watching the CPU: the host took %.0f %% of a core, want %d at most", percent, most)
	}
	w.ts.Logf("the host took %.1f %% of a core", percent)
	return nil
}

// retries compares how often an output has asked for a retry since the last "retries from here".
func (s *scenario) retries(w *words) error {
	fromHere := w.has("from") && w.has("here")
	least := w.number(w.option("min", "0"))
	most := w.number(w.option("max", "-1"))
	instance := w.option("of", firstInstance)
	if err := s.canAsk(w); err != nil {
		return err
	}
	ctx, cancel := patiently()
	defer cancel()
	counts, err := s.host.Counts(ctx)
	if err != nil {
		return err
	}
	if fromHere {
		s.counts = counts
		return nil
	}
	c, ok := counts[instance]
	n := c.Retries - s.counts[instance].Retries
	switch {
	case !ok:
		return fmt.Errorf("looking up output %q: there are %v", instance, counts)
	case n < least || most >= 0 && n > most:
		return fmt.Errorf("counting retries of %s: %d, want from %d to %d", instance, n, least, most)
	}
	w.ts.Logf("%s has asked for %d retries", instance, n)
	return nil
}

// rhythm watches the second output.
func (s *scenario) rhythm(w *words) error {
	most := w.duration(w.option("max", "2s"))
	during := w.duration(w.option("for", "10s"))
	if err := s.canAsk(w); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), during+patience)
	defer cancel()
	gap, err := s.host.Rhythm(ctx, during)
	s.fromTime = time.Now()
	if err == nil && gap > most {
		err = fmt.Errorf("watching the rhythm: %s between two flushes, want %s at most", gap, most)
	}
	w.ts.Logf("longest time between two flushes: %s", gap)
	return err
}

// connections compares how many connections to the embedded broker are open, or were closed because they were idle.
func (s *scenario) connections(w *words) error {
	b, err := s.broker(w)
	if err != nil {
		return err
	}
	e, ok := b.(*rig.Embedded)
	if !ok {
		return errors.New("only the embedded broker counts connections")
	}
	what := w.next("open or idle-closed")
	least := w.number(w.option("min", "0"))
	most := w.number(w.option("max", "-1"))
	open, idleClosed := e.Connections()
	n := open
	switch what {
	case "open":
	case "idle-closed":
		n = idleClosed
	default:
		return fmt.Errorf("%q is unknown; allowed: open, idle-closed", what)
	}
	if n < least || most >= 0 && n > most {
		return fmt.Errorf("counting connections that are %s: %d, want from %d to %d", what, n, least, most)
	}
	return nil
}

// settleLog is how long the plugin's lines may be on their way.
const settleLog = 2 * time.Second

// schedule lets an outage last and then compares every connect with what the plugin said about its backoff.
func (s *scenario) schedule(w *words) error {
	b, err := s.broker(w)
	if err != nil {
		return err
	}
	e, ok := b.(*rig.Embedded)
	if !ok {
		return errors.New("only the embedded broker can count")
	}
	during := w.duration(w.option("for", "10s"))
	most := w.number(w.option("max", "40"))
	check := rig.Schedule{
		Min: w.duration(w.option("from", "100ms")), Max: w.duration(w.option("to", "5s")),
		Lateness: w.duration(w.option("late", "1s")),
	}
	if w.wrong != nil {
		return w.wrong
	}
	time.Sleep(time.Until(s.fromTime.Add(during)))
	check.Until = time.Now()
	counted := e.Counted()
	time.Sleep(settleLog)
	s.fromTime = time.Now()
	for _, c := range counted {
		if len(c.Times) > most {
			return fmt.Errorf("counting connects to %s in %s: %d, want %d at most", c.Addr, during, len(c.Times), most)
		}
		w.ts.Logf("%s: %d connects in %s", c.Addr, len(c.Times), during)
	}
	rounds, err := check.Check(counted, s.host.LogLines().Messages(s.fromLine, firstInstance))
	w.ts.Logf("%d rounds of the backoff compared", rounds)
	return err
}

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"out_kafka_reconnect/test/e2e/parity"
	"out_kafka_reconnect/test/e2e/rig"
)

// kafka does something to a Kafka: create, start, stop, kill, freeze, thaw, count, lose, fail, slow.
func (s *scenario) kafka(w *words) error {
	verb := w.next("what to do")
	name := w.option("of", mainKafka)
	opts := rig.BrokerOptions{
		Nodes:  w.number(w.option("nodes", "1")),
		Secure: w.has("secure"),
		Idle:   w.duration(w.option("idle", "0s")), Forget: w.duration(w.option("forget", "0s")),
	}
	var nodes []int
	if text := w.option("node", ""); text != "" {
		nodes = []int{w.number(text)}
	}
	topic := topicOptions{name: w.option("topic", ""), largest: w.option("largest", "")}
	fault := func(*rig.Embedded) error { return nil }
	switch verb {
	case "lose":
		fault = func(e *rig.Embedded) error { return e.Lose(nodes...) }
	case "fail":
		code, times := w.number(w.next("the error code")), w.number(w.option("times", "-1"))
		fault = func(e *rig.Embedded) error { e.Fail(code, times); return nil }
	case "slow":
		pace := w.number(w.next("bytes a second"))
		fault = func(e *rig.Embedded) error { e.Slow(pace); return nil }
	case "count":
		fault = (*rig.Embedded).Count
	}
	if w.wrong != nil {
		return w.wrong
	}
	return s.act(func(ctx context.Context) error {
		b := s.brokers[name]
		switch {
		case b == nil && (verb == "start" || verb == "create"):
			b, err := s.makeBroker(ctx, name, opts)
			if err == nil && verb == "create" {
				err = b.Stop()
			}
			return err
		case b == nil:
			return fmt.Errorf("there is no %s yet", name)
		case topic.name != "":
			return topic.create(ctx, b, verb)
		}
		switch verb {
		case "lose", "fail", "slow", "count":
			e, ok := b.(*rig.Embedded)
			if !ok {
				return fmt.Errorf("only the embedded broker can %s", verb)
			}
			return fault(e)
		}
		return touch(ctx, b, verb, nodes)
	})
}

// topicOptions are a topic to be made.
type topicOptions struct {
	name, largest string // largest record in bytes; empty means Kafka's own limit
}

func (o topicOptions) create(ctx context.Context, b rig.Broker, verb string) error {
	if verb != "create" {
		return fmt.Errorf("a topic can't be told to %s; allowed: create", verb)
	}
	var configs map[string]string
	if o.largest != "" {
		configs = map[string]string{"max.message.bytes": o.largest}
	}
	return b.CreateTopic(ctx, o.name, configs)
}

// touch does something to a Kafka that is there.
func touch(ctx context.Context, b rig.Broker, verb string, nodes []int) error {
	switch verb {
	case "start":
		return b.Start(ctx, nodes...)
	case "stop":
		return b.Stop(nodes...)
	case "kill":
		return b.Kill(nodes...)
	case "freeze":
		return b.Freeze(nodes...)
	case "thaw":
		return b.Thaw(nodes...)
	case "create":
		return errors.New("it is there already")
	}
	return fmt.Errorf("%q is unknown; allowed: create, start, stop, kill, freeze, thaw, count, lose, fail, slow", verb)
}

// ownNames gives the host names of its own, or adds one.
func (s *scenario) ownNames(w *words) error {
	verb := w.next("own or add")
	return s.act(func(context.Context) (err error) {
		switch {
		case verb == "own" && s.host != nil:
			return errors.New("the host is there already")
		case verb == "own":
			s.names, err = rig.NewNames(s.dir)
			return err
		case verb == "add" && s.names != nil:
			return s.names.Add(w.next("the name"))
		}
		return fmt.Errorf("%q is unknown or too early; allowed: own, then add", verb)
	})
}

// registryCommand makes the schema registry at its first use, with the schema in schema.avsc, and starts or stops it.
func (s *scenario) registryCommand(w *words) error {
	verb := w.next("create, start or stop")
	return s.act(func(context.Context) error {
		if s.registry == nil {
			schema, err := os.ReadFile(filepath.Join(s.dir, "schema.avsc"))
			if err != nil {
				return err
			}
			if s.registry, err = rig.NewRegistry(string(schema)); err != nil {
				return err
			}
		}
		switch verb {
		case "create":
			return nil
		case "start":
			return s.registry.Start()
		case "stop":
			return s.registry.Stop()
		}
		return fmt.Errorf("%q is unknown; allowed: create, start, stop", verb)
	})
}

// hostCommand does something to the host: start, stop, kill, reload, run.
func (s *scenario) hostCommand(w *words) error {
	host, err := s.theHost()
	if err != nil {
		return err
	}
	verb := w.next("what to do")
	switch verb {
	case "start":
		conf := w.option("conf", "")
		args := w.left
		w.left = nil
		return s.act(func(ctx context.Context) error {
			if err := s.configure(conf); err != nil {
				return err
			}
			return host.Start(ctx, args...)
		})
	case "stop":
		return s.stopHost(w.duration(w.option("within", "7s")))
	case "kill":
		return s.act(func(context.Context) error { return host.Kill() })
	case "reload":
		conf := w.option("conf", "")
		times := w.number(w.option("times", "1"))
		if w.has("refused") {
			return s.refusedReload(w.duration(w.option("within", "7s")), conf)
		}
		return s.reloadHost(w.duration(w.option("within", "7s")), conf, times)
	case "run":
		return s.runHost(w)
	}
	return fmt.Errorf("%q is unknown; allowed: start, stop, kill, reload, run", verb)
}

// configure writes the host's configuration: from a file of the scenario, or outputs.conf or outputs.yaml
// if it has one, or ours.
func (s *scenario) configure(file string) error {
	conf := rig.Conf{
		Outputs: rig.DefaultOutputs,
		Vars:    map[string]string{"DIR": s.dir, "SECOND": s.host.SecondOutput(), "METRICS": s.metricsAddr()},
	}
	if s.registry != nil {
		conf.Vars["REGISTRY"] = s.registry.Addr()
	}
	for name, b := range s.brokers {
		key := "BROKERS"
		if name != mainKafka {
			key += "_" + strings.ToUpper(name)
		}
		conf.Vars[key] = strings.Join(b.Addrs(), ",")
		_, port, err := net.SplitHostPort(b.Addrs()[0])
		if err != nil {
			return err
		}
		conf.Vars[strings.Replace(key, "BROKERS", "PORT", 1)] = port
	}
	for _, b := range s.brokers {
		if b, ok := b.(rig.Secured); ok {
			maps.Copy(conf.Vars, b.Vars())
		}
	}
	service, err := os.ReadFile(filepath.Join(s.dir, "service.conf"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	conf.Service = string(service)
	outputs := file
	if outputs == "" {
		outputs = "outputs.conf"
		if _, err := os.Stat(filepath.Join(s.dir, "outputs.yaml")); err == nil {
			outputs = "outputs.yaml"
		}
	}
	conf.YAML = filepath.Ext(outputs) == ".yaml"
	text, err := os.ReadFile(filepath.Join(s.dir, outputs))
	switch {
	case err == nil:
		conf.Outputs = string(text)
	case file != "" || !errors.Is(err, os.ErrNotExist):
		return err
	}
	return s.host.Configure(conf)
}

// afterwards is how much longer than allowed a host may take before it is killed: how late it is tells more.
const afterwards = 20 * time.Second

func (s *scenario) stopHost(limit time.Duration) error {
	return s.act(func(context.Context) error {
		ctx, cancel := context.WithTimeout(context.Background(), limit+afterwards)
		defer cancel()
		exit, err := s.host.Stop(ctx)
		if err == nil && exit.After > limit {
			err = fmt.Errorf("stopping the host: it took %s, want %s at most", exit.After.Round(time.Millisecond), limit)
		}
		return err
	})
}

// reloadHost reloads the host some times in a row, with another file of sections if one is named.
func (s *scenario) reloadHost(limit time.Duration, conf string, times int) error {
	return s.act(func(context.Context) error {
		if conf != "" {
			if err := s.configure(conf); err != nil {
				return err
			}
		}
		for n := range times {
			if err := s.reloadOnce(limit); err != nil {
				return fmt.Errorf("reload %d: %w", n+1, err)
			}
		}
		return nil
	})
}

// refusedReload reloads the host with a file of sections that it refuses.
func (s *scenario) refusedReload(limit time.Duration, conf string) error {
	return s.act(func(context.Context) error {
		if err := s.configure(conf); err != nil {
			return err
		}
		if err := s.reloadOnce(limit); !errors.Is(err, rig.ErrRefused) {
			return fmt.Errorf("the reload was not refused: %w", cmp.Or(err, errors.New("it is done")))
		}
		return nil
	})
}

func (s *scenario) reloadOnce(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit+afterwards)
	defer cancel()
	took, err := s.host.Reload(ctx)
	if err == nil && took > limit {
		err = fmt.Errorf("reloading: it took %s, want %s at most", took.Round(time.Millisecond), limit)
	}
	return err
}

// runHost runs the host to its end, and fails when it ends well though it should not, or the other way round. What it wrote
// can then be searched with stderr.
func (s *scenario) runHost(w *words) error {
	limit := w.duration(w.option("within", "5s"))
	conf := w.option("conf", "")
	refused := w.has("refused")
	args := w.left
	w.left = nil
	if w.wrong != nil {
		return w.wrong
	}
	return s.act(func(context.Context) error {
		if err := s.configure(conf); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		exit, err := s.host.Run(ctx, args...)
		for _, line := range s.host.LogLines().Since(s.fromLine) {
			_, _ = fmt.Fprintln(w.ts.Stderr(), line.Text)
		}
		if err == nil && refused != (exit.Code != 0) {
			err = fmt.Errorf("running the host: it ended with code %d", exit.Code)
		}
		return err
	})
}

func (s *scenario) logRecords(w *words) error {
	n := w.number(w.next("the number of records"))
	shape := rig.Shape{Size: w.number(w.option("size", "0")), Junk: w.has("junk"), Destination: w.option("to", ""), Fields: map[string]string{}}
	if w.has("aside") {
		shape.Destination = rig.Aside
	}
	w.left = slices.DeleteFunc(w.left, func(word string) bool {
		key, value, found := strings.Cut(word, "=")
		if found {
			shape.Fields[key] = value
		}
		return found
	})
	if w.wrong != nil {
		return w.wrong
	}
	return s.pass(func(ctx context.Context) error {
		host, err := s.theHost()
		if err != nil {
			return err
		}
		return host.LogShaped(ctx, n, shape)
	})
}

// chunk hands over a chunk that package parity has a name for.
func (s *scenario) chunk(w *words) error {
	corpus, name := w.next("the corpus"), w.next("the name of the chunk")
	tag := w.option("tag", rig.Topic)
	if w.wrong != nil {
		return w.wrong
	}
	for _, c := range parity.Corpora() {
		for _, r := range c.Records {
			if c.Name == corpus && r.Name == name {
				return s.pass(func(ctx context.Context) error { return s.host.Chunk(ctx, tag, r.Chunk) })
			}
		}
	}
	return fmt.Errorf("there is no chunk %q in corpus %q of test/e2e/parity", name, corpus)
}

// rate logs in the background, or waits for its end.
func (s *scenario) rate(w *words) error {
	if w.has("over") {
		return s.pass(s.host.RateOver)
	}
	n := w.number(w.next("the number of records a second"))
	during := w.duration(w.option("for", ""))
	return s.pass(func(ctx context.Context) error {
		host, err := s.theHost()
		if err != nil {
			return err
		}
		return host.Rate(ctx, n, during)
	})
}

func (s *scenario) pause(w *words) error {
	d := w.duration(w.next("the time"))
	return s.pass(func(context.Context) error {
		time.Sleep(d)
		return nil
	})
}

package outage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/test/e2e/audit"
	"out_kafka_reconnect/test/e2e/kafka/freeport"
	"out_kafka_reconnect/test/e2e/rig"
)

// A Host is a program to run in.
type Host struct {
	// Kind is "chost" or "fluent-bit"; Program and Plugin are files.
	Kind, Program, Plugin string
}

// A world is one run at work.
type world struct {
	run   Run
	arena *arena
	topic string
	dir   string
	say   func(format string, args ...any)
	names *rig.Names // nil unless the host has names of its own

	meterAt string // where the plugin serves its counters

	host  rig.Host
	tally *rig.Tally
	pid   atomic.Int64 // the agent's process, for the watch

	began   time.Time
	outages []*Outage
	// faultLine is the first line of the log after the beginning of the last outage.
	faultLine int
	gone      []gap
	lives     []life
	earlier   *harvest // what a topic held that was deleted
}

// A gap is a time without an agent.
type gap struct {
	from, to time.Time
	killed   bool
}

// A life is a stop or a reload, and how long it took.
type life struct {
	what string
	took time.Duration
}

const (
	usualRate = 150
	peace     = 4 * time.Second // before the first step
	after     = 5 * time.Second // records go on for so long after the last step
	quiet     = 2 * time.Second // for copies that come late
	// settlePatience is how long what was accepted may take to arrive before it counts as lost.
	settlePatience = 90 * time.Second
	startPatience  = 30 * time.Second
)

// do runs one fault in one host, on a Kafka of the right kind.
func (run Run) do(ctx context.Context, host Host, a *arena, dir, log string, say func(string, ...any)) (*Result, error) {
	if run.Rate == 0 {
		run.Rate = usualRate
	}
	w := &world{
		run: run, arena: a, dir: dir, say: say, tally: rig.NewTally(),
		topic: run.Name + "-" + host.Kind,
	}
	lease, err := freeport.Take(1)
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	w.meterAt = fmt.Sprintf("127.0.0.1:%d", lease.Ports()[0])
	if err := w.prepare(ctx, host); err != nil {
		return nil, fmt.Errorf("preparing: %w", err)
	}
	defer func() { _ = w.host.Close() }()
	watch, counters := watchMemory(&w.pid), readMeter(w.meterAt, &w.pid)
	err = w.live(ctx)
	peak, samples := watch.end(), counters.end()
	if err := w.keepLog(log); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the last lines of the host:\n%s", err, w.host.LogLines().Tail(30))
	}
	h, err := w.harvest(ctx)
	if err != nil {
		return nil, err
	}
	r := w.measure(h)
	r.Host, r.PeakRSS = host.Kind, peak
	w.judge(r, h)
	r.Failures = append(r.Failures, compare(samples, h, time.Now(), len(w.gone) > 0)...)
	return r, nil
}

// keepLog writes what the host has said into a file.
func (w *world) keepLog(path string) error {
	var b strings.Builder
	for _, line := range w.host.LogLines().Since(0) {
		fmt.Fprintf(&b, "%s %s\n", line.At.Format("15:04:05.000"), line.Text)
	}
	if err := w.host.LogLines().Leak([]string{rightPassword, wrongPassword}); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// prepare makes the topic and the host.
func (w *world) prepare(ctx context.Context, host Host) error {
	if err := w.makeTopic(ctx); err != nil {
		return err
	}
	if w.arena.kind == Named {
		if err := w.ownNames(); err != nil {
			return err
		}
	}
	var err error
	w.host, err = rig.NewHost(host.Kind, rig.HostOptions{
		Program: host.Program, Plugin: host.Plugin, Dir: filepath.Join(w.dir, "host"), Tally: w.tally, Names: w.names,
	})
	if err != nil {
		return err
	}
	return w.host.Configure(rig.Conf{Outputs: w.section(), Service: w.run.Service})
}

// ownNames gives the host a view in which the broker has a name.
func (w *world) ownNames() error {
	err := os.MkdirAll(w.dir, 0o755)
	if err != nil {
		return err
	}
	if w.names, err = rig.NewNames(w.dir); err != nil {
		return err
	}
	if err := w.arena.openProxies(firstAddr); err != nil {
		return err
	}
	return w.names.Point(namedHost, firstAddr)
}

// section is the output section. Its log is at level debug, where each attempt has a line.
func (w *world) section() string {
	addrs := w.arena.cluster.Brokers()
	if w.run.Proxied {
		addrs = w.arena.cluster.ProxyAddrs()
	}
	var b strings.Builder
	b.WriteString("[OUTPUT]\n")
	for _, line := range []string{
		"Name kafka_reconnect", "Match *", "Brokers " + strings.Join(addrs, ","), "Topics " + w.topic,
		"Retry_Limit no_limits", "Log_Level debug",
		"state_path " + filepath.Join(w.dir, "state"), "metrics_listen " + w.meterAt,
	} {
		b.WriteString("    " + line + "\n")
	}
	own := w.arena.section() + w.run.Output
	for line := range strings.Lines(own) {
		b.WriteString("    " + strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// partitions is how many a topic has.
const partitions = 3

func (w *world) makeTopic(ctx context.Context) error {
	configs := map[string]string{"message.timestamp.type": "LogAppendTime"}
	for key, value := range w.run.Topic {
		configs[key] = value
	}
	if err := w.arena.cluster.CreateTopic(ctx, w.topic, partitions, len(w.arena.cluster.RigBrokers()), configs); err != nil {
		return err
	}
	if w.arena.kind == Secure {
		return grant(ctx, w)
	}
	return nil
}

// inSync waits until Kafka is usable again.
func (w *world) inSync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := w.arena.cluster.WaitReady(ctx); err != nil {
		return err
	}
	return w.arena.cluster.WaitInSync(ctx, w.topic)
}

// live lets the run happen, from the start of the host to its end.
func (w *world) live(ctx context.Context) error {
	w.began = time.Now()
	if err := w.start(ctx); err != nil {
		return err
	}
	if err := w.feed(ctx); err != nil {
		return err
	}
	if err := w.delivered(ctx, 1, startPatience); err != nil {
		return fmt.Errorf("waiting for the first record: %w", err)
	}
	if err := all(append([]Step{wait(peace)}, append(w.run.Steps, wait(after))...)...)(ctx, w); err != nil {
		return err
	}
	if err := w.host.EndRate(ctx); err != nil {
		return err
	}
	// What does not arrive in time is for the audit to find.
	if err := w.delivered(ctx, w.tally.Accepted()-w.earlier.numbers(), settlePatience); err != nil && ctx.Err() != nil {
		return err
	}
	if err := rig.Pause(ctx, quiet); err != nil {
		return err
	}
	return w.stop(ctx)
}

func (w *world) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := w.host.Start(ctx); err != nil {
		return err
	}
	w.pid.Store(int64(w.host.PID()))
	return nil
}

// feed logs records until EndRate or the end of the host.
func (w *world) feed(ctx context.Context) error { return w.host.Rate(ctx, w.run.Rate, time.Hour) }

func (w *world) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lifePatience)
	defer cancel()
	exit, err := w.host.Stop(ctx)
	w.lives = append(w.lives, life{lifeStop, exit.After})
	return err
}

// delivered waits for so many different records in the topic.
func (w *world) delivered(ctx context.Context, n int, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := audit.WaitFor(ctx, w.audited(nil), n)
	return err
}

func (w *world) audited(visit func(int64, *kgo.Record)) audit.Options {
	return audit.Options{Brokers: w.arena.cluster.RigBrokers(), Topic: w.topic, Visit: visit}
}

// A memoryWatch looks at a process once a second.
type memoryWatch struct {
	stop chan struct{}
	done sync.WaitGroup
	peak int // KiB
}

func watchMemory(pid *atomic.Int64) *memoryWatch {
	m := &memoryWatch{stop: make(chan struct{})}
	m.done.Go(func() {
		for {
			m.peak = max(m.peak, highWater(int(pid.Load())))
			select {
			case <-time.After(time.Second):
			case <-m.stop:
				return
			}
		}
	})
	return m
}

// end ends the watch and returns the largest resident size in MiB.
func (m *memoryWatch) end() float64 {
	close(m.stop)
	m.done.Wait()
	return float64(m.peak) / 1024
}

// highWater returns VmHWM in KiB, or 0 for a process that is gone.
func highWater(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	return 0
}

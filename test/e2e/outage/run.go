package outage

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"out_kafka_reconnect/test/e2e/rig"
)

// A Run is one fault.
type Run struct {
	// Name is for the command line and files, Title for people.
	Name, Title string
	// Kafka is what it needs.
	Kafka Kafka
	// Proxied leads the plugin through proxies. Without, it talks to the nodes.
	Proxied bool
	// Output holds further lines of the output section, Service of [SERVICE].
	Output, Service string
	// Topic holds settings of the topic.
	Topic map[string]string
	// Rate is how many records a second are logged. Zero means 150.
	Rate int
	// Steps are what happens, after a few seconds of peace.
	Steps []Step
	// Bars are those that differ from the usual ones.
	Bars Bars
	// BuiltIn is what the built-in output did in the same fault.
	BuiltIn string
	// Short runs are part of make test; Long ones take minutes.
	Short, Long bool
}

// Bars are what a run is judged by, beside the ones that hold for all: nothing lost, and no more attempts than the
// schedule allows.
type Bars struct {
	// InFlight allows copies of what was in flight when the agent ended.
	InFlight bool
	// GoesOn tells that records arrive during the fault too, some or all. Without it a fault that stops nothing has not
	// happened, and the run has shown nothing.
	GoesOn bool
}

// A Kafka is a kind of cluster that runs can share, one after the other.
type Kafka string

// The kinds of cluster.
const (
	OneNode    Kafka = "one node"
	ThreeNodes Kafka = "three nodes"
	Secure     Kafka = "TLS, SCRAM and ACLs"
	Named      Kafka = "a host name"
)

// A Step is one thing that happens.
type Step func(ctx context.Context, w *world) error

// An Outage is one fault of a run, as it was.
type Outage struct {
	// Fault is when it began, Back when its end began, Ready when Kafka (or the agent) was usable again.
	Fault, Back, Ready time.Time
}

// outage makes a fault, lets it last, and ends it.
func outage(fault Step, length time.Duration, end Step, meanwhile ...Step) Step {
	return func(ctx context.Context, w *world) error {
		o := &Outage{Fault: time.Now()}
		w.faultLine = w.host.LogLines().Len()
		w.outages = append(w.outages, o)
		if err := fault(ctx, w); err != nil {
			return fmt.Errorf("making the fault: %w", err)
		}
		w.say("fault at %s", o.Fault.Format("15:04:05.000"))
		began := time.Now()
		for _, step := range meanwhile {
			if err := step(ctx, w); err != nil {
				return err
			}
		}
		if err := rig.Pause(ctx, length-time.Since(began)); err != nil {
			return err
		}
		o.Back = time.Now()
		if err := end(ctx, w); err != nil {
			return fmt.Errorf("ending the fault: %w", err)
		}
		o.Ready = time.Now()
		w.say("ready at %s, after %s", o.Ready.Format("15:04:05.000"), o.Ready.Sub(o.Back).Round(time.Millisecond))
		return nil
	}
}

// again repeats steps.
func again(times int, steps ...Step) []Step {
	var all []Step
	for range times {
		all = append(all, steps...)
	}
	return all
}

// all makes one step of several.
func all(steps ...Step) Step {
	return func(ctx context.Context, w *world) error {
		for _, step := range steps {
			if err := step(ctx, w); err != nil {
				return err
			}
		}
		return nil
	}
}

// wait lets time pass.
func wait(d time.Duration) Step {
	return func(ctx context.Context, _ *world) error { return rig.Pause(ctx, d) }
}

// connected waits until the plugin says that the last outage is over. The line may be a second late.
func connected(ctx context.Context, w *world) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	_, err := w.host.LogLines().Wait(ctx, w.faultLine, connectedLine)
	return err
}

var connectedLine = regexp.MustCompile(`connected again`)

// stopNodes, killNodes and freezeNodes take nodes away, or all; startNodes and thawNodes bring them back and wait until
// every partition has a leader again.
func stopNodes(nodes ...int) Step {
	return func(_ context.Context, w *world) error { return w.arena.cluster.Stop(nodes...) }
}

func killNodes(nodes ...int) Step {
	return func(_ context.Context, w *world) error { return w.arena.cluster.Kill(nodes...) }
}

func freezeNodes(nodes ...int) Step {
	return func(_ context.Context, w *world) error { return w.arena.cluster.Freeze(nodes...) }
}

func startNodes(nodes ...int) Step {
	return func(ctx context.Context, w *world) error {
		if err := w.arena.cluster.Start(nodes...); err != nil {
			return err
		}
		return w.inSync(ctx)
	}
}

func thawNodes(nodes ...int) Step {
	return func(ctx context.Context, w *world) error {
		if err := w.arena.cluster.Thaw(nodes...); err != nil {
			return err
		}
		return w.inSync(ctx)
	}
}

// refuse closes the port, open opens it.
func refuse(_ context.Context, w *world) error {
	for _, p := range w.arena.proxies {
		p.refuse()
	}
	return nil
}

func open(_ context.Context, w *world) error {
	for _, p := range w.arena.proxies {
		if err := p.open(); err != nil {
			return err
		}
	}
	return nil
}

// spoil makes the network bad, cure good.
func spoil(toxics ...toxic) Step {
	return func(_ context.Context, w *world) error {
		for _, p := range w.arena.proxies {
			if err := p.spoil(toxics...); err != nil {
				return err
			}
		}
		return nil
	}
}

func cure(ctx context.Context, w *world) error {
	for _, p := range w.arena.proxies {
		p.cure(ctx)
	}
	return nil
}

// cut breaks all connections once.
func cut(ctx context.Context, w *world) error {
	if err := refuse(ctx, w); err != nil {
		return err
	}
	return open(ctx, w)
}

// The kinds of life, and how long each may take: the grace period of 5 s, and shutdown_timeout or reload_timeout.
const (
	lifeStop   = "stop"
	lifeReload = "reload"
)

var lifeWithin = map[string]time.Duration{lifeStop: (5 + 3) * time.Second, lifeReload: (5 + 10) * time.Second}

// lifePatience is how long the rig waits for it; how late it is tells more.
const lifePatience = 40 * time.Second

// killAgent sends SIGKILL, stopAgent SIGTERM; startAgent runs the agent anew, reloadAgent sends SIGHUP.
func killAgent(_ context.Context, w *world) error {
	w.gone = append(w.gone, gap{from: time.Now(), killed: true})
	w.say("the agent is killed at %s", time.Now().Format("15:04:05.000"))
	return w.host.Kill()
}

func stopAgent(ctx context.Context, w *world) error {
	w.gone = append(w.gone, gap{from: time.Now()})
	return w.stop(ctx)
}

func startAgent(ctx context.Context, w *world) error {
	if err := w.start(ctx); err != nil {
		return err
	}
	w.gone[len(w.gone)-1].to = time.Now()
	return w.feed(ctx)
}

func reloadAgent(ctx context.Context, w *world) error {
	ctx, cancel := context.WithTimeout(ctx, lifePatience)
	defer cancel()
	took, err := w.host.Reload(ctx)
	w.lives = append(w.lives, life{lifeReload, took})
	return err
}

// feed logs records from now on. settle ends that, waits until all of it is in the topic, and keeps what the topic holds.
func feed(ctx context.Context, w *world) error { return w.feed(ctx) }

func settle(ctx context.Context, w *world) error {
	if err := w.host.EndRate(ctx); err != nil {
		return err
	}
	if err := w.delivered(ctx, w.tally.Accepted(), settlePatience); err != nil {
		return err
	}
	if err := rig.Pause(ctx, quiet); err != nil {
		return err
	}
	h, err := w.harvest(ctx)
	w.earlier = h
	return err
}

func deleteTopic(ctx context.Context, w *world) error {
	return w.arena.admin(ctx, func(ctx context.Context, client *kadm.Client) error {
		_, err := client.DeleteTopic(ctx, w.topic)
		return err
	})
}

func makeTopic(ctx context.Context, w *world) error { return w.makeTopic(ctx) }

// moveLeaders makes another replica of each partition the first one and has it elected. It returns when each partition is led
// by the wanted node, which is the one after the node that led it.
func moveLeaders() Step {
	return func(ctx context.Context, w *world) error {
		ctx, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		var order kadm.AlterPartitionAssignmentsReq
		var topics kadm.TopicsSet
		wanted := map[int]int{}
		for p := range partitions {
			led, err := w.arena.cluster.Leader(ctx, w.topic, p)
			if err != nil {
				return err
			}
			first := led%3 + 1
			wanted[p] = first
			order.Assign(w.topic, int32(p), []int32{int32(first), int32(first%3 + 1), int32((first+1)%3 + 1)})
			topics.Add(w.topic, int32(p))
		}
		return w.arena.admin(ctx, func(ctx context.Context, client *kadm.Client) error {
			moved, err := client.AlterPartitionAssignments(ctx, order)
			if err == nil {
				err = moved.Error()
			}
			if err != nil {
				return fmt.Errorf("changing the order of replicas: %w", err)
			}
			return w.elect(ctx, client, topics, wanted)
		})
	}
}

// elect asks for the election of the first replicas until they lead: the new order takes effect a little later.
func (w *world) elect(ctx context.Context, client *kadm.Client, topics kadm.TopicsSet, wanted map[int]int) error {
	for {
		elected, err := client.ElectLeaders(ctx, kadm.ElectPreferredReplica, topics)
		if err != nil {
			return fmt.Errorf("electing leaders: %w", err)
		}
		for _, one := range elected[w.topic] {
			if one.Err != nil && !errors.Is(one.Err, kerr.ElectionNotNeeded) && !errors.Is(one.Err, kerr.PreferredLeaderNotAvailable) {
				return fmt.Errorf("electing the leader of partition %d: %w", one.Partition, one.Err)
			}
		}
		led := 0
		for p, node := range wanted {
			leader, err := w.arena.cluster.Leader(ctx, w.topic, p)
			if err != nil {
				return err
			}
			if leader == node {
				led++
			}
		}
		if led == len(wanted) {
			w.say("the leaders are %v", wanted)
			return w.inSync(ctx)
		}
		if err := rig.Pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for the leaders %v: %w", wanted, err)
		}
	}
}

// moveName makes the broker's name stand for another address, where the proxy listens from now on.
func moveName(_ context.Context, w *world) error {
	if err := w.arena.openProxies(secondAddr); err != nil {
		return err
	}
	return w.names.Point(namedHost, secondAddr)
}

package broker

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"out_kafka_reconnect/test/e2e/kafka/freeport"
)

// Options says what New makes. The zero value is one node on a free port, without topics.
type Options struct {
	// Ports are the ports on 127.0.0.1, one for each node. Empty means one free port for each of Nodes.
	Ports []int
	// Nodes is how many nodes there are when Ports is empty. Zero means one.
	Nodes int
	// Topics are made before the first connection, with so many partitions each.
	Topics map[string]int
	// IdleClose is how long a connection may be idle before the broker closes it. Zero means for ever.
	IdleClose time.Duration
	// IdleForget makes idle connections dead without a sign instead of closing them, as a load balancer does that drops
	// their state: bytes are swallowed in both directions.
	IdleForget bool
	// AppendTime makes every record carry the time at which the broker appended it, as message.timestamp.type
	// LogAppendTime does. kfake does not fix the checksum of such a batch: consumers that check it (franz-go does
	// unless told otherwise; package audit and librdkafka do not) refuse it.
	AppendTime bool
	// Discard makes the broker acknowledge records without keeping them, for benchmarks. It does not
	// go with AppendTime.
	Discard bool
	// StartDown makes New leave the ports shut until Start.
	StartDown bool
	// Kfake is handed to kfake as it is, for TLS, SASL, broker configs or automatic topics.
	Kfake []kfake.Opt
}

// A Broker is a cluster of one or more nodes in this process.
type Broker struct {
	cluster *kfake.Cluster
	doors   []*door
	ports   []int
	lease   *freeport.Lease // nil when the ports were given

	mu     sync.Mutex
	topics []string // guarded by mu; kfake cannot list them
	fault  fault    // guarded by mu
	faulty bool     // guarded by mu; kfake asks us about each produce request

	discarded int64 // guarded by mu; records so far
}

// New makes a broker and, unless told otherwise, starts it. Close ends it.
func New(opts Options) (*Broker, error) {
	b := &Broker{ports: slices.Clone(opts.Ports)}
	if len(b.ports) == 0 {
		lease, err := freeport.Take(max(1, opts.Nodes))
		if err != nil {
			return nil, err
		}
		b.lease, b.ports = lease, lease.Ports()
	}
	for node, port := range b.ports {
		d := newDoor(node, port)
		d.setIdle(opts.IdleClose)
		d.idleForget = opts.IdleForget
		b.doors = append(b.doors, d)
	}
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.Ports(b.ports...),
		kfake.ListenFn(b.listen),
	}, opts.Kfake...)...)
	if err != nil {
		b.lease.Release()
		return nil, fmt.Errorf("making the embedded broker: %w", err)
	}
	b.cluster = cluster
	if opts.AppendTime {
		cluster.ControlKey(int16(kmsg.Produce), stampAppendTime)
	}
	if opts.Discard {
		cluster.ControlKey(int16(kmsg.Produce), b.discardProduce)
	}
	if err := b.prepare(opts); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Broker) prepare(opts Options) error {
	for topic, partitions := range opts.Topics {
		if err := b.CreateTopic(topic, partitions, nil); err != nil {
			return err
		}
	}
	if opts.StartDown {
		return nil
	}
	return b.Start()
}

// listen gives kfake the door of the address that it asks for.
func (b *Broker) listen(_, address string) (net.Listener, error) {
	for _, d := range b.doors {
		if d.addr.String() == address {
			return d, nil
		}
	}
	return nil, fmt.Errorf("listening on %s: no node has this address", address)
}

// Close stops the broker and throws its data away.
func (b *Broker) Close() {
	b.cluster.Close()
	for _, d := range b.doors {
		_ = d.Close()
	}
	b.lease.Release()
}

// Start opens the ports of the given nodes, or of all. A node that is up stays as it is.
func (b *Broker) Start(nodes ...int) error {
	return b.each(nodes, (*door).open)
}

// Stop shuts the ports and closes all connections of the given nodes, or of all. Connections are refused until Start;
// the data is kept. A frozen node is stopped too, and starts unfrozen.
func (b *Broker) Stop(nodes ...int) error {
	return b.each(nodes, func(d *door) error { d.shut(); return nil })
}

// Freeze makes the given nodes, or all, behave like a process under SIGSTOP: connects succeed, connections stay open,
// nothing is answered. Freezing a node that is down is an error.
func (b *Broker) Freeze(nodes ...int) error { return b.each(nodes, (*door).freeze) }

// Thaw ends a freeze. What arrived during the freeze is handled now.
func (b *Broker) Thaw(nodes ...int) error { return b.each(nodes, (*door).thaw) }

// Disconnect closes the open connections of the given nodes, or of all, and keeps listening.
func (b *Broker) Disconnect(nodes ...int) error {
	return b.each(nodes, func(d *door) error { d.disconnect(); return nil })
}

// Lose makes the open connections of the given nodes, or of all, dead without a sign: bytes are swallowed in both
// directions. New connections are fine.
func (b *Broker) Lose(nodes ...int) error {
	return b.each(nodes, func(d *door) error { d.lose(); return nil })
}

// Slow limits how many bytes a second all nodes read from each connection. Zero ends it.
func (b *Broker) Slow(bytesPerSecond int) {
	for _, d := range b.doors {
		d.slow(bytesPerSecond)
	}
}

// IdleClose makes all nodes close connections on which no byte moved for this long, as connections.max.idle.ms does.
// It holds for open connections too, from now on. Zero ends it.
func (b *Broker) IdleClose(after time.Duration) {
	for _, d := range b.doors {
		d.setIdle(after)
	}
}

// each does one thing to some nodes, or to all, and goes on after an error so that no node is left out.
func (b *Broker) each(nodes []int, do func(*door) error) error {
	doors := b.doors
	if len(nodes) > 0 {
		doors = nil
		for _, node := range nodes {
			if node < 0 || node >= len(b.doors) {
				return fmt.Errorf("looking up node %d: there are %d, from 0", node, len(b.doors))
			}
			doors = append(doors, b.doors[node])
		}
	}
	var errs []error
	for _, d := range doors {
		errs = append(errs, do(d))
	}
	return errors.Join(errs...)
}

// Cluster returns kfake's own handle, for faults, control functions and leaders. Do not close it.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Ports returns the port of each node.
func (b *Broker) Ports() []int { return slices.Clone(b.ports) }

// Addrs returns the address of each node, which is also what Metadata answers carry.
func (b *Broker) Addrs() []string {
	addrs := make([]string, len(b.ports))
	for i, port := range b.ports {
		addrs[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	return addrs
}

// CreateTopic makes a topic, whether or not the ports are open. Zero partitions means kfake's default.
func (b *Broker) CreateTopic(name string, partitions int, configs map[string]string) error {
	if err := b.cluster.CreateTopic(name, int32(partitions), configs); err != nil {
		return fmt.Errorf("making topic %q with %d partitions: %w", name, partitions, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.topics = append(b.topics, name)
	return nil
}

// Topics returns the high watermark of each partition of each topic that CreateTopic made.
func (b *Broker) Topics() map[string][]int64 {
	b.mu.Lock()
	names := slices.Clone(b.topics)
	b.mu.Unlock()
	topics := make(map[string][]int64, len(names))
	for _, name := range names {
		infos := b.cluster.PartitionInfos(name)
		marks := make([]int64, len(infos))
		for _, info := range infos {
			marks[info.Partition] = info.HighWatermark
		}
		topics[name] = marks
	}
	return topics
}

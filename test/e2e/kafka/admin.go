package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// askEvery is short because what it delays is every start.
const askEvery = 50 * time.Millisecond

// answerWithin bounds one question: a node that comes up may accept a connection and not answer on it.
const answerWithin = 2 * time.Second

// WaitReady waits until every node that runs answers on its ports and lists all running nodes as registered.
func (c *Cluster) WaitReady(ctx context.Context) error {
	return c.poll(ctx, "waiting for kafka to be ready", nil, func(m *kmsg.MetadataResponse, running []int32) error {
		for _, id := range running {
			if !slices.ContainsFunc(m.Brokers, func(b kmsg.MetadataResponseBroker) bool { return b.NodeID == id }) {
				return fmt.Errorf("node %d is not registered there", id)
			}
		}
		return nil
	})
}

// WaitInSync waits until every running node knows a leader for each partition of a topic, and every replica on a
// running node is in sync. A fault before that would test something else than it says.
func (c *Cluster) WaitInSync(ctx context.Context, topic string) error {
	return c.poll(ctx, fmt.Sprintf("waiting for topic %q to be in sync", topic), &topic, inSync)
}

func inSync(m *kmsg.MetadataResponse, running []int32) error {
	t, err := onlyTopic(m)
	if err != nil {
		return err
	}
	for _, p := range t.Partitions {
		if !slices.Contains(running, p.Leader) {
			return fmt.Errorf("partition %d is led by node %d, which does not run", p.Partition, p.Leader)
		}
		for _, replica := range p.Replicas {
			if slices.Contains(running, replica) && !slices.Contains(p.ISR, replica) {
				return fmt.Errorf("node %d is not in sync for partition %d", replica, p.Partition)
			}
		}
	}
	return nil
}

func onlyTopic(m *kmsg.MetadataResponse) (kmsg.MetadataResponseTopic, error) {
	if len(m.Topics) != 1 {
		return kmsg.MetadataResponseTopic{}, fmt.Errorf("the answer is about %d topics", len(m.Topics))
	}
	t := m.Topics[0]
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return t, err
	}
	if len(t.Partitions) == 0 {
		return t, errors.New("the topic has no partitions")
	}
	return t, nil
}

// CreateTopic makes a topic and waits until it is in sync. Configs may be nil.
func (c *Cluster) CreateTopic(
	ctx context.Context, name string, partitions, replication int, configs map[string]string,
) error {
	client, err := c.client(c.RigBrokers()...)
	if err != nil {
		return fmt.Errorf("making topic %q: %w", name, err)
	}
	defer client.Close()
	values := make(map[string]*string, len(configs))
	for key, value := range configs {
		values[key] = &value
	}
	if _, err := kadm.NewClient(client).CreateTopic(
		ctx, int32(partitions), int16(replication), values, name,
	); err != nil {
		return fmt.Errorf("making topic %q with %d partitions on %d nodes: %w", name, partitions, replication, err)
	}
	return c.WaitInSync(ctx, name)
}

// Admin returns a client for whatever else an administrator does; whoever asks for it closes it.
func (c *Cluster) Admin() (*kadm.Client, error) {
	client, err := c.client(c.RigBrokers()...)
	if err != nil {
		return nil, fmt.Errorf("making a client for administration: %w", err)
	}
	return kadm.NewClient(client), nil
}

// Leader returns the node that leads a partition, as seen by a running node.
func (c *Cluster) Leader(ctx context.Context, topic string, partition int) (int, error) {
	leader := 0
	err := c.poll(ctx, fmt.Sprintf("looking up the leader of topic %q", topic), &topic,
		func(m *kmsg.MetadataResponse, running []int32) error {
			t, err := onlyTopic(m)
			if err != nil {
				return err
			}
			for _, p := range t.Partitions {
				if int(p.Partition) == partition && slices.Contains(running, p.Leader) {
					leader = int(p.Leader)
					return nil
				}
			}
			return fmt.Errorf("partition %d has no leader that runs", partition)
		})
	return leader, err
}

// check judges one node's metadata. Nil means content.
type check func(m *kmsg.MetadataResponse, running []int32) error

// poll asks every running node for metadata, about a topic if one is given, until all answers are as wanted. It gives up
// at once when a node has crashed.
func (c *Cluster) poll(ctx context.Context, what string, topic *string, wanted check) error {
	clients := map[string]*kgo.Client{}
	defer func() {
		for _, client := range clients {
			client.Close()
		}
	}()
	for {
		pending, err := c.askAll(ctx, clients, topic, wanted)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if pending == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (last: %w)\n%s", what, ctx.Err(), pending, c.Logs(20))
		case <-time.After(askEvery):
		}
	}
}

// askAll returns what is not as wanted yet, and separately what will never be.
func (c *Cluster) askAll(
	ctx context.Context, clients map[string]*kgo.Client, topic *string, wanted check,
) (pending, failed error) {
	var running []int32
	for _, n := range c.nodes {
		if err := n.crashed(); err != nil {
			return nil, err
		}
		if n.running() != nil {
			running = append(running, int32(n.id))
		}
	}
	if len(running) == 0 {
		return nil, errors.New("no node is running")
	}
	for _, id := range running {
		for _, addr := range []string{address(c.nodes[id-1].ports.rig), address(c.nodes[id-1].ports.client)} {
			if clients[addr] == nil {
				client, err := c.client(addr)
				if err != nil {
					return nil, err
				}
				clients[addr] = client
			}
			m, err := ask(ctx, clients[addr], topic)
			if err == nil {
				err = wanted(m, running)
			}
			if err != nil {
				return fmt.Errorf("asking node %d at %s: %w", id, addr, err), nil
			}
		}
	}
	return nil, nil
}

func (c *Cluster) client(addrs ...string) (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(addrs...),
		kgo.MetadataMinAge(askEvery),
		kgo.RetryBackoffFn(func(int) time.Duration { return askEvery }),
	)
}

// ask asks the one node that the client was made for; a plain request might go to any node that the client has heard of.
func ask(ctx context.Context, client *kgo.Client, topic *string) (*kmsg.MetadataResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none, where nil would mean all
	if topic != nil {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = topic
		req.Topics = append(req.Topics, t)
	}
	answer, err := client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return nil, err
	}
	return answer.(*kmsg.MetadataResponse), nil
}

package rig

import (
	"context"
	"errors"
	"time"
)

// A Broker is a Kafka with the topic of the scenario. Node numbers start at 1; no number means all nodes.
type Broker interface {
	// Kind is "embedded" or "real".
	Kind() string
	// Addrs are the addresses for the plugin, AuditAddrs those for everyone else.
	Addrs() []string
	AuditAddrs() []string
	// Start brings nodes up with the data and ports that they had, and returns when they answer.
	Start(ctx context.Context, nodes ...int) error
	// Stop ends nodes in order, Kill as kill -9 does. Both keep the data, and connections are refused until Start.
	Stop(nodes ...int) error
	Kill(nodes ...int) error
	// Freeze makes nodes accept connections and answer nothing, like a process under SIGSTOP; Thaw ends that.
	Freeze(nodes ...int) error
	Thaw(nodes ...int) error
	// CreateTopic makes a further topic with one partition; configs may be nil.
	CreateTopic(ctx context.Context, name string, configs map[string]string) error
	// Logs are the last lines of every node, for a scenario that failed.
	Logs() string
	// Close ends it and throws the data away.
	Close() error
}

// BrokerOptions says what NewBroker makes. The zero value is one node.
type BrokerOptions struct {
	// Nodes is 1 or 3. Zero means 1.
	Nodes int
	// Idle is how long a connection may be idle before the broker closes it. Zero means Kafka's own ten minutes.
	Idle time.Duration
	// Forget is how long a connection of an embedded broker may be idle before it is dead without a sign. Zero means for ever.
	Forget time.Duration
	// Secure adds a listener for each kind of TLS and login to a real broker.
	Secure bool
	// Dir is where a real broker keeps its files.
	Dir string
}

// Secured is a broker that may have surroundings of package secure.
type Secured interface {
	// Vars are the names that the listeners and files have in a host's configuration.
	Vars() map[string]string
	// Secrets must stand in no log.
	Secrets() []string
}

// partitions is how many the topic has.
const partitions = 3

// NewBroker makes a broker that is up and has the topic. Kind is "embedded" or "real"; real means that Kafka is
// installed first if need be.
func NewBroker(ctx context.Context, kind string, opts BrokerOptions) (Broker, error) {
	opts.Nodes = max(opts.Nodes, 1)
	if kind == "real" {
		return newReal(ctx, opts)
	}
	if opts.Secure {
		return nil, errors.New("only a real kafka can be secure")
	}
	return NewEmbedded(opts)
}

package rig

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"

	"out_kafka_reconnect/test/e2e/kafka"
	"out_kafka_reconnect/test/e2e/secure"
)

// real is Apache Kafka.
type real struct {
	cluster *kafka.Cluster
	secure  *secure.Kafka // nil unless it was asked for
}

// logTail is how many lines of each node's log are shown.
const logTail = 15

func newReal(ctx context.Context, opts BrokerOptions) (*real, error) {
	dist, err := kafka.Install(ctx, "")
	if err != nil {
		return nil, err
	}
	k := kafka.Options{Nodes: opts.Nodes}
	if opts.Dir != "" {
		k.Dir = filepath.Join(opts.Dir, "kafka")
	}
	if opts.Idle > 0 {
		k.Properties = map[string]string{"connections.max.idle.ms": strconv.FormatInt(opts.Idle.Milliseconds(), 10)}
	}
	r := &real{}
	if opts.Secure {
		if r.secure, err = secure.New(filepath.Join(opts.Dir, "secure")); err != nil {
			return nil, err
		}
		if err := r.secure.Options(ctx, dist, &k); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	if r.cluster, err = kafka.New(dist, k); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if err := r.begin(ctx, opts.Nodes); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *real) begin(ctx context.Context, nodes int) error {
	if err := r.cluster.Start(); err != nil {
		return err
	}
	if err := r.cluster.WaitReady(ctx); err != nil {
		return err
	}
	if r.secure != nil {
		if err := r.secure.Prepare(ctx, r.cluster); err != nil {
			return err
		}
	}
	return r.cluster.CreateTopic(ctx, Topic, partitions, nodes, map[string]string{"message.timestamp.type": "LogAppendTime"})
}

// Kind implements Broker.
func (r *real) Kind() string { return "real" }

// Addrs implements Broker.
func (r *real) Addrs() []string { return r.cluster.Brokers() }

// AuditAddrs implements Broker.
func (r *real) AuditAddrs() []string { return r.cluster.RigBrokers() }

// Start implements Broker. It returns when every partition has a leader again.
func (r *real) Start(ctx context.Context, nodes ...int) error {
	if err := r.cluster.Start(nodes...); err != nil {
		return err
	}
	if err := r.cluster.WaitReady(ctx); err != nil {
		return err
	}
	return r.cluster.WaitInSync(ctx, Topic)
}

// Stop implements Broker.
func (r *real) Stop(nodes ...int) error { return r.cluster.Stop(nodes...) }

// Kill implements Broker.
func (r *real) Kill(nodes ...int) error { return r.cluster.Kill(nodes...) }

// Freeze implements Broker.
func (r *real) Freeze(nodes ...int) error { return r.cluster.Freeze(nodes...) }

// Thaw implements Broker.
func (r *real) Thaw(nodes ...int) error { return r.cluster.Thaw(nodes...) }

// CreateTopic implements Broker.
func (r *real) CreateTopic(ctx context.Context, name string, configs map[string]string) error {
	return r.cluster.CreateTopic(ctx, name, 1, 1, configs)
}

// Logs implements Broker.
func (r *real) Logs() string { return r.cluster.Logs(logTail) }

// Vars implements Secured.
func (r *real) Vars() map[string]string {
	if r.secure == nil {
		return nil
	}
	return r.secure.Vars(r.cluster)
}

// Secrets implements Secured.
func (r *real) Secrets() []string {
	if r.secure == nil {
		return nil
	}
	return r.secure.Secrets()
}

// Close implements Broker.
func (r *real) Close() error {
	if r.secure != nil {
		r.secure.Close()
	}
	if r.cluster == nil {
		return nil
	}
	return r.cluster.Close()
}

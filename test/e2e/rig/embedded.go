package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// Embedded is the broker in this process. It can do what real Kafka can't: count.
type Embedded struct {
	broker   *broker.Broker
	counting []*broker.CountingListener // where nodes would be, while Count lasts
}

// NewEmbedded makes one that is up and has the topic.
func NewEmbedded(opts BrokerOptions) (*Embedded, error) {
	e := &Embedded{}
	if err := listening(func() (err error) {
		e.broker, err = broker.New(broker.Options{
			Nodes:      opts.Nodes,
			Topics:     map[string]int{Topic: partitions},
			IdleClose:  max(opts.Idle, opts.Forget),
			IdleForget: opts.Forget > 0,
			AppendTime: true,
		})
		return err
	}); err != nil {
		return nil, err
	}
	return e, nil
}

// listening does something that listens on a port of ours. A socket of this process that was just closed may live on for
// some milliseconds in a process that is being started, until its exec; so a port that is in use is tried again.
func listening(do func() error) error {
	for end := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := do()
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return err
		}
	}
}

// Kind implements Broker.
func (e *Embedded) Kind() string { return "embedded" }

// Addrs implements Broker.
func (e *Embedded) Addrs() []string { return e.broker.Addrs() }

// AuditAddrs implements Broker; there is one listener for all.
func (e *Embedded) AuditAddrs() []string { return e.broker.Addrs() }

// Start implements Broker. It ends a Count.
func (e *Embedded) Start(_ context.Context, nodes ...int) error {
	e.endCount()
	return listening(func() error { return e.broker.Start(fromZero(nodes)...) })
}

// Stop implements Broker.
func (e *Embedded) Stop(nodes ...int) error { return e.broker.Stop(fromZero(nodes)...) }

// Kill implements Broker. To a client a stop of this broker looks like a kill: it hands nothing over.
func (e *Embedded) Kill(nodes ...int) error { return e.broker.Stop(fromZero(nodes)...) }

// Freeze implements Broker.
func (e *Embedded) Freeze(nodes ...int) error { return e.broker.Freeze(fromZero(nodes)...) }

// Thaw implements Broker.
func (e *Embedded) Thaw(nodes ...int) error { return e.broker.Thaw(fromZero(nodes)...) }

// CreateTopic implements Broker.
func (e *Embedded) CreateTopic(_ context.Context, name string, configs map[string]string) error {
	return e.broker.CreateTopic(name, 1, configs)
}

// Lose makes the open connections of nodes dead without a sign.
func (e *Embedded) Lose(nodes ...int) error { return e.broker.Lose(fromZero(nodes)...) }

// Fail answers so many produce requests with an error code, all of them when times is below zero. Code 0 ends it.
func (e *Embedded) Fail(code, times int) { e.broker.FailProduce(int16(code), times) }

// Slow limits how many bytes a second are read from each connection. Zero ends it.
func (e *Embedded) Slow(bytesPerSecond int) { e.broker.Slow(bytesPerSecond) }

// Logs implements Broker.
func (e *Embedded) Logs() string {
	s := e.broker.Stats()
	return fmt.Sprintf("embedded broker at %v: %s, %d connects, %d open, %d closed because they were idle, watermarks %v",
		e.Addrs(), e.broker.State(), s.Connects, s.Open, s.IdleClosed, e.broker.Topics())
}

// Close implements Broker.
func (e *Embedded) Close() error {
	e.endCount()
	e.broker.Close()
	return nil
}

// Connections returns how many connections are open and how many were closed because they were idle.
func (e *Embedded) Connections() (open, idleClosed int) {
	stats := e.broker.Stats()
	return stats.Open, stats.IdleClosed
}

// Delivered is how many records the topic holds, copies included; it is known while the broker is down too.
func (e *Embedded) Delivered() int {
	sum := 0
	for _, mark := range e.broker.Topics()[Topic] {
		sum += int(mark)
	}
	return sum
}

// Count stops the broker and puts listeners in its place that accept, count and close.
func (e *Embedded) Count() error {
	if len(e.counting) > 0 {
		return errors.New("counting connects: it is under way already")
	}
	if err := e.broker.Stop(); err != nil {
		return err
	}
	for _, addr := range e.Addrs() {
		_, text, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := listening(func() error {
			l, err := broker.NewCountingListener(port)
			if err == nil {
				e.counting = append(e.counting, l)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Counted returns the connects to each address since Count.
func (e *Embedded) Counted() []Connects {
	counted := make([]Connects, len(e.counting))
	for i, l := range e.counting {
		counted[i] = Connects{Addr: l.Addr(), Times: l.Connects()}
	}
	return counted
}

func (e *Embedded) endCount() {
	for _, l := range e.counting {
		l.Close()
	}
	e.counting = nil
}

// fromZero turns node numbers into those of the embedded broker, which start at 0.
func fromZero(nodes []int) []int {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i]--
	}
	return nodes
}

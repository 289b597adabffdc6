package main

import (
	"sync"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// memory is a Kafka client without Kafka that costs next to nothing: it acknowledges what it gets at once. What is
// measured over it is the plugin's own work.
type memory struct {
	gen  int
	sink func(reconnect.Notice)
	wake chan struct{} // holds one token
	done chan struct{}

	mu                      sync.Mutex
	epoch                   uint64
	down                    bool
	attempts, failures, ups uint64
}

// openMemory is a reconnect.Opener. Down is whether it finds a broker that is away; see set.
func openMemory(opened func(*memory), down bool) reconnect.Opener {
	return func(gen int, sink func(reconnect.Notice)) (reconnect.Client, error) {
		m := &memory{gen: gen, sink: sink, wake: make(chan struct{}, 1), done: make(chan struct{}), down: down}
		m.attempt()
		go m.run()
		opened(m)
		return m, nil
	}
}

// set makes the broker come or go.
func (m *memory) set(down bool) {
	m.mu.Lock()
	m.down = down
	m.mu.Unlock()
	m.attempt()
}

// attempt tries to connect.
func (m *memory) attempt() {
	m.mu.Lock()
	m.attempts++
	if m.down {
		m.failures++
	} else {
		m.ups++
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run tells of attempts: the supervisor may not be called from its own calls.
func (m *memory) run() {
	for {
		select {
		case <-m.wake:
		case <-m.done:
			return
		}
		m.mu.Lock()
		b := reconnect.Broker{Addr: "memory:1", Asked: true, Configured: true, Attempts: m.attempts, Failures: m.failures, Ups: m.ups}
		if m.down {
			b.Class, b.Text = fsm.ClassNetwork, "connection refused"
		} else {
			b.Up = 1
		}
		n := reconnect.Notice{Gen: m.gen, Kind: reconnect.NoticeBrokers, Brokers: []reconnect.Broker{b}, Epoch: m.epoch}
		m.mu.Unlock()
		m.sink(n)
	}
}

// Produce implements reconnect.Client.
func (m *memory) Produce(b *reconnect.Batch) *reconnect.Delivery {
	d := reconnect.NewDelivery()
	d.Settle(len(b.Messages), nil, nil)
	return d
}

// SetGate implements reconnect.Client.
func (m *memory) SetGate(g fsm.ConnGate) {
	m.mu.Lock()
	m.epoch++
	m.mu.Unlock()
	if g != fsm.ConnShut {
		m.attempt()
	}
}

// Hold implements reconnect.Client.
func (m *memory) Hold(string, time.Duration) {}

// ShutSockets implements reconnect.Client.
func (m *memory) ShutSockets() int { return 0 }

// Silence implements reconnect.Client.
func (m *memory) Silence(time.Duration) reconnect.Silence {
	return reconnect.Silence{Ready: 1, Alive: 1}
}

// ShutSilent implements reconnect.Client.
func (m *memory) ShutSilent(time.Duration) {}

// Heartbeat implements reconnect.Client.
func (m *memory) Heartbeat(time.Duration) (string, error) { return "", nil }

// Changed implements reconnect.Client.
func (m *memory) Changed() (string, error) { return "", nil }

// Close implements reconnect.Client.
func (m *memory) Close(time.Duration) error {
	close(m.done)
	return nil
}

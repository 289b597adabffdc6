package broker

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"out_kafka_reconnect/test/e2e/kafka/freeport"
)

// A CountingListener accepts connections on one address, notes when, and closes them at once. It stands where a broker
// is down when a test must know how often and when a client tried: attempts that the kernel refuses leave no trace.
// A client sees the difference, its connect succeeds, so it is also the broker that "only accepts and closes".
type CountingListener struct {
	listener net.Listener
	lease    *freeport.Lease // nil when the port was given
	loop     sync.WaitGroup

	mu       sync.Mutex
	connects []time.Time // guarded by mu
}

// NewCountingListener listens on a port of 127.0.0.1, or on a free one when port is 0.
func NewCountingListener(port int) (*CountingListener, error) {
	l := &CountingListener{}
	if port == 0 {
		lease, err := freeport.Take(1)
		if err != nil {
			return nil, err
		}
		l.lease, port = lease, lease.Ports()[0]
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		l.lease.Release()
		return nil, fmt.Errorf("counting connections on port %d: %w", port, err)
	}
	l.listener = listener
	l.loop.Go(l.count)
	return l, nil
}

func (l *CountingListener) count() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.connects = append(l.connects, time.Now())
		l.mu.Unlock()
		_ = c.Close()
	}
}

// Addr is where it listens.
func (l *CountingListener) Addr() string { return l.listener.Addr().String() }

// Connects returns the time of each connection so far.
func (l *CountingListener) Connects() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.connects)
}

// Close ends it; the address then refuses connections.
func (l *CountingListener) Close() {
	_ = l.listener.Close()
	l.loop.Wait()
	l.lease.Release()
}

package broker

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// state is what a client sees of a node.
type state uint8

const (
	down   state = iota // connections are refused
	up                  // connections are accepted and answered
	frozen              // connections are accepted and nothing answers, like a process under SIGSTOP
)

func (s state) String() string {
	switch s {
	case down:
		return "down"
	case up:
		return "up"
	case frozen:
		return "frozen"
	}
	return "state " + strconv.Itoa(int(s))
}

// A door is the listener that kfake is given for one node. Its Accept outlives the listening socket.
type door struct {
	node int
	addr *net.TCPAddr // set once before start; what Metadata tells clients

	accepted chan net.Conn // accepted connections on their way to kfake
	closed   chan struct{} // closed by Close

	mu         sync.Mutex
	state      state              // guarded by mu
	listener   net.Listener       // guarded by mu; nil while down
	thawed     chan struct{}      // guarded by mu; closed when the freeze ends, nil while not frozen
	conns      map[*conn]struct{} // guarded by mu; open connections
	connects   []time.Time        // guarded by mu
	idle       time.Duration      // guarded by mu; 0 means that idle connections stay
	idleForget bool               // guarded by mu; idle connections are not closed but forgotten
	idleClosed int                // guarded by mu
	pace       int                // guarded by mu; bytes a second that are read from a connection, 0 for no limit

	loops sync.WaitGroup // the accept loops
}

func newDoor(node, port int) *door {
	return &door{
		node:     node,
		addr:     &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port},
		accepted: make(chan net.Conn),
		closed:   make(chan struct{}),
		conns:    map[*conn]struct{}{},
	}
}

// Addr is fixed, whether or not somebody listens there.
func (d *door) Addr() net.Addr { return d.addr }

// Accept blocks while the door is shut: an error would end kfake's node for good.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.accepted:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close is called by kfake when the cluster ends, and by Broker.Close; the second call does nothing.
func (d *door) Close() error {
	d.mu.Lock()
	select {
	case <-d.closed:
		d.mu.Unlock()
		return nil
	default:
	}
	close(d.closed)
	d.mu.Unlock()
	d.shut()
	d.loops.Wait()
	return nil
}

// open listens again on the same port.
func (d *door) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.closed:
		return fmt.Errorf("starting node %d: %w", d.node, net.ErrClosed)
	default:
	}
	if d.state != down {
		return nil
	}
	ln, err := net.ListenTCP("tcp", d.addr)
	if err != nil {
		return fmt.Errorf("starting node %d: %w", d.node, err)
	}
	d.listener, d.state = ln, up
	d.loops.Go(func() { d.acceptLoop(ln) })
	return nil
}

// shut closes the listening socket and every connection, like a killed process.
func (d *door) shut() {
	d.mu.Lock()
	ln := d.listener
	d.listener, d.state = nil, down
	d.endFreeze()
	d.mu.Unlock()
	if ln != nil {
		_ = ln.Close()
	}
	d.disconnect()
}

// disconnect closes the open connections and leaves the listening socket alone.
func (d *door) disconnect() {
	d.mu.Lock()
	open := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		open = append(open, c)
	}
	d.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

var errDown = errors.New("it is down")

func (d *door) freeze() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.state {
	case down:
		return fmt.Errorf("freezing node %d: %w", d.node, errDown)
	case up:
		d.state, d.thawed = frozen, make(chan struct{})
	case frozen:
	}
	return nil
}

func (d *door) thaw() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.state {
	case down:
		return fmt.Errorf("thawing node %d: %w", d.node, errDown)
	case up:
	case frozen:
		d.state = up
		d.endFreeze()
		for c := range d.conns {
			c.rearm(d.idle) // a frozen process closes nothing, and afterwards reads before it looks for idle ones
		}
	}
	return nil
}

// endFreeze lets held bytes go on. Requires mu.
func (d *door) endFreeze() {
	if d.thawed != nil {
		close(d.thawed)
		d.thawed = nil
	}
}

func (d *door) acceptLoop(ln net.Listener) {
	for {
		raw, err := ln.Accept()
		if err != nil {
			return
		}
		c := d.admit(ln, raw)
		if c == nil {
			continue
		}
		select {
		case d.accepted <- c:
		case <-d.closed:
			_ = c.Close()
		}
	}
}

// admit counts a connection. It returns nil for one that the kernel accepted just before the door was shut.
// A frozen door admits too: the kernel completes the handshake of a stopped process just the same, and so the time
// of the connect is known at once.
func (d *door) admit(ln net.Listener, raw net.Conn) *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.connects = append(d.connects, time.Now())
	if d.listener != ln {
		_ = raw.Close()
		return nil
	}
	c := newConn(raw, d)
	c.shrink(d.pace)
	d.conns[c] = struct{}{}
	c.rearm(d.idle)
	return c
}

func (d *door) forget(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

// held returns nil while bytes may flow, else a channel that is closed when they may flow again.
func (d *door) held() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.thawed
}

func (d *door) setIdle(after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = after
	for c := range d.conns {
		c.rearm(after)
	}
}

// lose makes the open connections dead without a sign, as a load balancer does that has lost its state.
func (d *door) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		c.dead.Store(true)
	}
}

// slow limits what is read from each connection.
func (d *door) slow(bytesPerSecond int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pace = bytesPerSecond
	for c := range d.conns {
		c.shrink(d.pace)
	}
}

func (d *door) readPace() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pace
}

// expire is told that nothing moved on c for as long as idle connections live.
func (d *door) expire(c *conn) {
	d.mu.Lock()
	_, open := d.conns[c]
	expired := open && d.state == up && d.idle > 0
	if expired && d.idleForget {
		c.dead.Store(true)
		expired = false
	}
	if expired {
		d.idleClosed++
	}
	d.mu.Unlock()
	if expired {
		_ = c.Close()
	}
}

func (d *door) idleAfter() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.idle
}

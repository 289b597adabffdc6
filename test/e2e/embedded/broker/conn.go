package broker

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A conn is an accepted connection as kfake sees it.
type conn struct {
	net.Conn
	door   *door
	closed chan struct{}
	once   sync.Once

	dead atomic.Bool // bytes are swallowed in both directions, and nobody is told

	mu    sync.Mutex
	timer *time.Timer // guarded by mu; nil while idle connections stay
}

func newConn(raw net.Conn, d *door) *conn {
	return &conn{Conn: raw, door: d, closed: make(chan struct{})}
}

// Read holds back what arrived during a freeze: the kernel acknowledged it, the process has not seen it.
func (c *conn) Read(p []byte) (int, error) {
	pace := c.door.readPace()
	if pace > 0 {
		p = p[:min(len(p), slowRead)]
	}
	n, err := c.Conn.Read(p)
	for err == nil && c.dead.Load() {
		n, err = c.Conn.Read(p)
	}
	if pace > 0 {
		c.pause(time.Duration(n) * time.Second / time.Duration(pace))
	}
	c.rearm(c.door.idleAfter())
	if held := c.hold(); held != nil {
		return 0, held
	}
	return n, err
}

// slowRead is how much is taken at a time from a slow connection, slowBuffer what the kernel may take in beside that.
const (
	slowRead   = 1 << 10
	slowBuffer = 16 << 10
)

// Write holds back the answer to a request that was handled just before the freeze. The client must then think of it
// as possibly done, which is what a freeze is for.
func (c *conn) Write(p []byte) (int, error) {
	if held := c.hold(); held != nil {
		return 0, held
	}
	if c.dead.Load() {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	c.rearm(c.door.idleAfter())
	return n, err
}

// shrink keeps the kernel from taking in what a slow connection is not to have read yet.
func (c *conn) shrink(pace int) {
	if tcp, ok := c.Conn.(*net.TCPConn); ok && pace > 0 {
		_ = tcp.SetReadBuffer(slowBuffer) // then it takes in more, and the connection is less slow
	}
}

// pause waits, but not past the end of the connection.
func (c *conn) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.closed:
	}
}

// hold waits for the end of a freeze and returns an error when the connection ended first.
func (c *conn) hold() error {
	for {
		thawed := c.door.held()
		if thawed == nil {
			return nil
		}
		select {
		case <-thawed:
		case <-c.closed:
			return net.ErrClosed
		}
	}
}

// rearm starts the idle time anew, or ends the watch when after is 0.
func (c *conn) rearm(after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return
	default:
	}
	switch {
	case after <= 0 && c.timer != nil:
		c.timer.Stop()
		c.timer = nil
	case after <= 0:
	case c.timer == nil:
		c.timer = time.AfterFunc(after, func() { c.door.expire(c) })
	default:
		c.timer.Reset(after)
	}
}

// Close may be called by kfake, by a stop and by the idle timer; only the first does something.
func (c *conn) Close() error {
	var err error
	c.once.Do(func() {
		c.mu.Lock()
		close(c.closed)
		if c.timer != nil {
			c.timer.Stop()
		}
		c.mu.Unlock()
		c.door.forget(c)
		err = c.Conn.Close()
	})
	return err
}

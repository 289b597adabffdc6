package rdkafka

/*
#include <stdlib.h>
#include "api.h"
#include "okr.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// ErrClosed is what a client answers after Close.
var ErrClosed = errors.New("rdkafka: client is closed")

// Options are the settings of a client that do not change from one generation to the next.
type Options struct {
	// Properties are set on librdkafka's configuration in order.
	Properties []Property
	// Files are further properties, whose Value is the path of a file that holds the value: it is read
	// whenever a client is opened.
	Files []Property
	// KeepaliveIdle is the idle time after which the kernel probes a connection; 0 leaves
	// the kernel's own setting. KeepaliveTimeout is how long the probes may go unanswered.
	KeepaliveIdle, KeepaliveTimeout time.Duration
	// Tokens makes the tokens of OAUTHBEARER; nil leaves them to librdkafka.
	Tokens reconnect.TokenSource
	// TokenTimeout bounds one call of Tokens. After a failure the next one comes after a backoff between TokenBackoffMin and
	// TokenBackoffMax.
	TokenTimeout, TokenBackoffMin, TokenBackoffMax time.Duration
	// Logger takes the client's own lines; nil discards them.
	Logger *slog.Logger
}

// Opener returns the function with which a supervisor opens clients.
func Opener(o Options) reconnect.Opener {
	return func(gen int, sink func(reconnect.Notice)) (reconnect.Client, error) {
		return Open(o, gen, sink)
	}
}

// Client is a producer handle of librdkafka; it implements reconnect.Client.
type Client struct {
	gen    int
	sink   func(reconnect.Notice)
	logger *slog.Logger
	wake   *os.File // our own copy of C's eventfd
	// options, bounded, files and configured are what it was opened with: the settings, what the
	// files in them held, and the addresses.
	options    Options
	bounded    bool // its queue can be full
	files      files
	configured map[string]bool
	ended      chan struct{}
	tokens     *tokenKeeper // nil unless it makes tokens
	thread     thread       // hands large batches over

	mu         sync.RWMutex // held for reading around every call into c
	c          *C.okr_client
	topics     map[string]topicHandle // guarded by topicMu
	topicMu    sync.Mutex
	closeOnce  sync.Once
	closeError error

	gates atomic.Uint64 // counts SetGate

	pendingMu sync.Mutex
	pending   map[uint64]expected
	nextID    uint64

	dropped uint64 // ring events lost so far; owned by the event goroutine
}

type topicHandle struct {
	handle unsafe.Pointer
	code   C.int
}

// Open makes a client of generation gen, with the connection gate open: it connects at
// once. The error is librdkafka's own text.
func Open(o Options, gen int, sink func(reconnect.Notice)) (*Client, error) {
	return open(o, gen, sink, fsm.ConnOpen)
}

func open(o Options, gen int, sink func(reconnect.Notice), gate fsm.ConnGate) (*Client, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	// Before they are read: a change in between is then seen as one, which does no harm.
	files := lookAt(o.Properties, o.Files)
	conf, err := newConf(o.Properties, o.Files)
	if err != nil {
		return nil, err
	}
	if err := try(conf); err != nil {
		C.rd_kafka_conf_destroy(conf)
		return nil, err
	}
	if o.Tokens != nil {
		C.okr_want_tokens(conf)
	}
	so := socketOptions(o)
	var text [errorTextLen]C.char
	handle := C.okr_open(conf, &so, gateNumber(gate), &text[0], C.size_t(len(text)))
	if handle == nil {
		return nil, fmt.Errorf("rdkafka: opening the client: %s", C.GoString(&text[0]))
	}
	c := &Client{
		gen:     gen,
		sink:    sink,
		logger:  o.Logger,
		ended:   make(chan struct{}),
		c:       handle,
		topics:  map[string]topicHandle{},
		pending: map[uint64]expected{},

		options:    o,
		bounded:    bool(C.okr_bounded(handle)),
		files:      files,
		configured: configured(o.Properties),
	}
	if c.sink == nil {
		c.sink = func(reconnect.Notice) {}
	}
	if c.wake, err = dupFile(int(C.okr_event_fd(handle))); err != nil {
		C.okr_close(handle, 0)
		C.okr_free(handle)
		return nil, fmt.Errorf("rdkafka: opening the client: %w", err)
	}
	if o.Tokens != nil {
		c.tokens = startTokens(o, c)
	}
	go c.run(handle)
	return c, nil
}

// dupFile makes a file of its own for the event goroutine, which sleeps in the network
// poller and costs no thread.
func dupFile(fd int) (*os.File, error) {
	d, err := syscall.Dup(fd)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(d)
	return os.NewFile(uintptr(d), "okr-events"), nil
}

// socketOptions spreads the time-out over three probes: fewer would take one lost packet
// for a dead peer.
func socketOptions(o Options) C.okr_socket_options {
	const probes = 3
	if o.KeepaliveIdle <= 0 {
		return C.okr_socket_options{}
	}
	return C.okr_socket_options{
		keepalive_idle_s:     C.int(wholeSeconds(o.KeepaliveIdle)),
		keepalive_interval_s: C.int(wholeSeconds(o.KeepaliveTimeout / probes)),
		keepalive_count:      probes,
	}
}

func wholeSeconds(d time.Duration) int {
	return max(1, int(d/time.Second))
}

// SetGate rules connection attempts, see reconnect.Client.
func (c *Client) SetGate(g fsm.ConnGate) {
	c.with(func() {
		C.okr_set_gate(c.c, gateNumber(g))
	})
	n := c.gates.Add(1)
	if g == fsm.ConnShut {
		return
	}
	c.wakeBrokers(n)
	for _, after := range rewakes {
		time.AfterFunc(after, func() { c.wakeBrokers(n) })
	}
	if g == fsm.ConnSweep {
		go func() { _, _ = c.Heartbeat(demandFor) }()
	}
}

// demandFor is how long a sweep asks for metadata, for which librdkafka wants a connection at
// once. Without records in its hands it would want one by a timer of a second only. What
// comes of the question does not matter.
const demandFor = 500 * time.Millisecond

// rewakes are the times after the gate was opened at which the broker threads are woken once
// more: one that was refused just before is between its refusal and its sleep of a second when
// the first call comes, and sleeps on.
var rewakes = [...]time.Duration{50 * time.Millisecond, 250 * time.Millisecond, time.Second}

// wakeBrokers wakes the broker threads unless the gate was set again since.
func (c *Client) wakeBrokers(gate uint64) {
	c.with(func() {
		if c.gates.Load() == gate {
			C.okr_wake(c.c)
		}
	})
}

func gateNumber(g fsm.ConnGate) C.int {
	switch g {
	case fsm.ConnOpen:
		return C.OKR_GATE_OPEN
	case fsm.ConnSweep:
		return C.OKR_GATE_SWEEP
	default:
		return C.OKR_GATE_SHUT
	}
}

// Hold refuses attempts to one address for d, see reconnect.Client.
func (c *Client) Hold(addr string, d time.Duration) {
	name := C.CString(addr)
	defer C.free(unsafe.Pointer(name))
	c.with(func() { C.okr_hold(c.c, name, C.int64_t(d.Milliseconds())) })
}

// ShutSockets shuts every open connection down and returns how many there were.
func (c *Client) ShutSockets() int {
	n := 0
	c.with(func() { n = int(C.okr_shut_sockets(c.c)) })
	return n
}

// ShutSilent shuts connections without a sign of life, see reconnect.Client.
func (c *Client) ShutSilent(after time.Duration) { c.silence(after, true) }

// Silence looks for connections without a sign of life, see reconnect.Client.
func (c *Client) Silence(after time.Duration) reconnect.Silence { return c.silence(after, false) }

func (c *Client) silence(after time.Duration, shut bool) reconnect.Silence {
	var s C.okr_silence
	c.with(func() { C.okr_find_silent(c.c, C.int64_t(after.Milliseconds()), C.bool(shut), &s) })
	return reconnect.Silence{
		Ready: int(s.ready), Silent: int(s.silent), Suspect: int(s.suspect), Alive: int(s.alive),
		Next: time.Duration(s.next_ms) * time.Millisecond,
	}
}

// Changed looks at the files of the configuration, see reconnect.Client. It touches no
// handle, so it may be called at any time.
func (c *Client) Changed() (string, error) {
	changed := c.files.changed()
	if changed == "" {
		return "", nil
	}
	if err := CheckAll(c.options.Properties, c.options.Files); err != nil {
		return "", fmt.Errorf("%s: %w", changed, err)
	}
	return changed, nil
}

// Heartbeat asks any connected broker for metadata, see reconnect.Client. It blocks up to
// the timeout.
func (c *Client) Heartbeat(timeout time.Duration) (string, error) {
	c.mu.RLock()
	handle := c.c
	c.mu.RUnlock()
	if handle == nil {
		return "", ErrClosed
	}
	// The call is not made under mu: Close must not wait for it. The C side counts it as a
	// user of the handle and lets the destroying thread wait instead.
	var text [errorTextLen]C.char
	if code := int(C.okr_heartbeat(handle, C.int(timeout.Milliseconds()), &text[0], C.size_t(len(text)))); code != 0 {
		return "", fmt.Errorf("rdkafka: asking for metadata: %s", Text(code))
	}
	return C.GoString(&text[0]), nil
}

// with runs f while the handle is open.
func (c *Client) with(f func()) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.c != nil {
		f()
	}
}

// Close reports every outstanding message and releases the handle, see reconnect.Client.
func (c *Client) Close(timeout time.Duration) error {
	c.closeOnce.Do(func() {
		c.tokens.close()
		c.mu.Lock()
		handle := c.c
		c.c = nil
		c.mu.Unlock()
		c.thread.end()
		left := C.okr_close(handle, C.int(timeout.Milliseconds()))
		_ = c.wake.Close() // ends the event goroutine after what it is doing
		<-c.ended
		c.fetch(handle)
		C.okr_free(handle)
		if left != 0 {
			c.closeError = fmt.Errorf("rdkafka: closing the client took longer than %v: %w", timeout, context.DeadlineExceeded)
		}
	})
	return c.closeError
}

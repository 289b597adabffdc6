package reconnecttest

import (
	"slices"
	"sync"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// Mode is how a broker behaves.
type Mode uint8

// The modes of a broker.
const (
	// Serving: connections get ready, records are acknowledged.
	Serving Mode = iota
	// Down: connections end, attempts are refused.
	Down
	// Frozen: nothing is answered; connections stay, attempts hang.
	Frozen
	// Mute: connections get ready and heartbeats are answered, records are not.
	Mute
	// Closing: connections get ready and are closed after ten milliseconds.
	Closing
	// Rejecting: attempts fail as the credentials are refused.
	Rejecting
	// Unresolvable: the name of the broker can't be looked up.
	Unresolvable
	// Unwanted: the client has no reason to connect to it.
	Unwanted
)

// ready tells whether a connection gets ready in this mode.
func (m Mode) ready() bool { return m == Serving || m == Mute || m == Closing }

// Network is a set of brokers and the clients that talk to them. Its methods may be
// called from any goroutine.
type Network struct {
	// The fields up to the mutex are set before the first client is opened.

	// ConnectDelay is how long an attempt takes; default 1ms.
	ConnectDelay time.Duration
	// AckDelay is how long an acknowledgement takes; default 1ms.
	AckDelay time.Duration
	// CloseDelay is how long a client takes to close, whatever it was allowed.
	CloseDelay time.Duration
	// Queue is how many messages a client takes at most before it has reported some; 0 is no limit.
	Queue int
	// Reject returns why a broker refuses a message for good, or nil to accept it.
	Reject func(Message) *reconnect.Failure

	mu       sync.Mutex
	start    time.Time
	modes    map[string]Mode
	attempts []Attempt
	messages []Message
	clients  []*Client
	openErr  error
	opens    int
	version  int    // of the files that clients are opened with
	troubles string // what heartbeats tell
	// configured are the addresses that a new client begins with; set before the first.
	configured map[string]bool
}

// Attempt is one connection attempt that reached a broker, or a failed look-up.
type Attempt struct {
	At   time.Duration // since the network was made
	Addr string
	Gen  int
}

// Message is a message that a broker has acknowledged.
type Message struct {
	Topic      string
	Key, Value string
	NullKey    bool
	Timestamp  int64
}

// NewNetwork returns a network of brokers that serve.
func NewNetwork(addrs ...string) *Network {
	n := &Network{
		ConnectDelay: time.Millisecond, AckDelay: time.Millisecond,
		start: time.Now(), modes: map[string]Mode{}, configured: map[string]bool{},
	}
	for _, a := range addrs {
		n.modes[a] = Serving
	}
	return n
}

// Set changes how brokers behave from now on; without addresses all of them.
func (n *Network) Set(m Mode, addrs ...string) {
	n.mu.Lock()
	for a := range n.modes {
		if len(addrs) == 0 || slices.Contains(addrs, a) {
			n.modes[a] = m
		}
	}
	clients := slices.Clone(n.clients)
	n.mu.Unlock()
	for _, c := range clients {
		c.wakeAll(false)
	}
}

// Configure names the addresses of the configuration; the others were learned. Without it
// nothing is known of that.
func (n *Network) Configure(addrs ...string) {
	for _, a := range addrs {
		n.configured[a] = true
	}
}

// Change changes the files that clients are opened with.
func (n *Network) Change() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.version++
}

// Trouble makes heartbeats tell of something that keeps records waiting.
func (n *Network) Trouble(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.troubles = text
}

func (n *Network) trouble() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.troubles
}

// Cut ends the connections to brokers, as a server does with idle ones; without addresses
// to all of them. Whoever connects again is served.
func (n *Network) Cut(addrs ...string) {
	n.connections(addrs, func(b *broker) { b.end = true })
}

// Forget makes the connections to brokers dead without a sign, as a firewall does with
// quiet ones; without addresses to all of them. New connections are fine.
func (n *Network) Forget(addrs ...string) {
	n.connections(addrs, func(b *broker) { b.forgotten = true })
}

func (n *Network) connections(addrs []string, f func(*broker)) {
	n.mu.Lock()
	clients := slices.Clone(n.clients)
	n.mu.Unlock()
	for _, c := range clients {
		c.connections(addrs, f)
	}
}

// FailOpen makes opening a client fail with err from now on; nil ends that.
func (n *Network) FailOpen(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.openErr = err
}

// Open is the reconnect.Opener of the network.
func (n *Network) Open(gen int, sink func(reconnect.Notice)) (reconnect.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opens++
	if n.openErr != nil {
		return nil, n.openErr
	}
	c := newClient(n, gen, sink)
	for a := range n.modes {
		c.addBroker(a)
	}
	n.clients = append(n.clients, c)
	c.startAll()
	return c, nil
}

// Opens is how often a client was asked for, failures included.
func (n *Network) Opens() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.opens
}

// Client returns the client that was opened last, or nil.
func (n *Network) Client() *Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.clients) == 0 {
		return nil
	}
	return n.clients[len(n.clients)-1]
}

// Attempts returns the attempts so far.
func (n *Network) Attempts() []Attempt {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.attempts)
}

// AttemptsTo returns the times of the attempts to one address.
func (n *Network) AttemptsTo(addr string) []time.Duration {
	var at []time.Duration
	for _, a := range n.Attempts() {
		if a.Addr == addr {
			at = append(at, a.At)
		}
	}
	return at
}

// Messages returns the acknowledged messages in the order of acknowledgement.
func (n *Network) Messages() []Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.messages)
}

// Now is the time since the network was made.
func (n *Network) Now() time.Duration { return time.Since(n.start) }

func (n *Network) mode(addr string) Mode {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.modes[addr]
}

func (n *Network) attempted(addr string, gen int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attempts = append(n.attempts, Attempt{At: time.Since(n.start), Addr: addr, Gen: gen})
}

// acknowledge stores the messages of a batch and returns which of them are refused.
func (n *Network) acknowledge(ms []Message) []reconnect.Failure {
	var failures []reconnect.Failure
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, m := range ms {
		if n.Reject != nil {
			if f := n.Reject(m); f != nil {
				f.Index = i
				failures = append(failures, *f)
				continue
			}
		}
		n.messages = append(n.messages, m)
	}
	return failures
}

// classes and texts of the failures of each mode.
var failureOf = map[Mode]struct {
	class fsm.Class
	text  string
}{
	Down:         {fsm.ClassNetwork, "connection refused"},
	Rejecting:    {fsm.ClassAuthentication, "authentication failed: invalid credentials"},
	Unresolvable: {fsm.ClassResolve, "name or service not known"},
}

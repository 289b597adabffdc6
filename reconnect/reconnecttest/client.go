package reconnecttest

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

var errNoAnswer = errors.New("reconnecttest: no answer")

// Client is a reconnect.Client on a Network.
type Client struct {
	n    *Network
	gen  int
	sink func(reconnect.Notice)
	// version is that of the files that it was opened with.
	version int

	mu      sync.Mutex
	gate    fsm.ConnGate
	epoch   uint64
	gates   []GateChange
	holds   []Hold
	shuts   int
	beats   int
	brokers []*broker
	// noneLeft: every broker was found down since one was up or the gate was set.
	noneLeft bool
	queue    []*batch // handed over and not reported
	acked    uint64   // messages

	news   news          // guarded by mu, taken by the notifier
	notify chan struct{} // holds one token

	closed  chan struct{}
	closing sync.Once
	threads sync.WaitGroup
	quit    chan struct{} // ends the notifier
	ended   chan struct{} // the notifier has ended
}

// news is what the notifier has to tell.
type news struct {
	table, acked, reported bool
	words                  []reconnect.Notice
}

// batch is a batch in the queue.
type batch struct {
	delivery *reconnect.Delivery
	whole    *reconnect.Batch // our own copy of what was handed over
	messages []Message
	sent     bool // a broker had it
}

// GateChange is one call of SetGate.
type GateChange struct {
	At   time.Duration
	Gate fsm.ConnGate
}

// Hold is one call of Hold.
type Hold struct {
	At   time.Duration
	Addr string
	Wait time.Duration
}

func newClient(n *Network, gen int, sink func(reconnect.Notice)) *Client {
	return &Client{
		n: n, gen: gen, sink: sink, version: n.version,
		notify: make(chan struct{}, 1),
		closed: make(chan struct{}),
		quit:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
}

func (c *Client) addBroker(addr string) {
	c.brokers = append(c.brokers, &broker{c: c, addr: addr, wake: make(chan struct{}, 1)})
	slices.SortFunc(c.brokers, func(a, b *broker) int {
		if a.addr < b.addr {
			return -1
		}
		return 1
	})
}

func (c *Client) startAll() {
	for _, b := range c.brokers {
		c.threads.Go(b.run)
	}
	go c.notifier()
}

// Produce implements reconnect.Client. It keeps the bytes of a batch that are lent.
func (c *Client) Produce(b *reconnect.Batch) *reconnect.Delivery {
	d := reconnect.NewDelivery()
	q := &batch{delivery: d, messages: messagesOf(b)}
	if b.Lent && c.n.Queue == 0 {
		q.whole = &reconnect.Batch{Topics: slices.Clone(b.Topics), Data: b.Data, Messages: slices.Clone(b.Messages)}
		b.Data, b.Lent = nil, false
	} else {
		q.whole = clone(b)
	}
	c.mu.Lock()
	select {
	case <-c.closed:
		c.mu.Unlock()
		q.settle(0, q.failures())
		return d
	default:
	}
	if left := len(q.messages) - c.room(); left > 0 {
		q.leaveOut(left)
		if len(q.messages) == 0 {
			c.mu.Unlock()
			q.settle(0, nil)
			return d
		}
	}
	c.queue = append(c.queue, q)
	c.mu.Unlock()
	c.wakeAll(false)
	return d
}

// room is how many messages the queue takes; mu is held.
func (c *Client) room() int {
	if c.n.Queue == 0 {
		return math.MaxInt
	}
	room := c.n.Queue
	for _, q := range c.queue {
		room -= len(q.messages)
	}
	return room
}

// leaveOut takes the last n messages out of a batch.
func (b *batch) leaveOut(n int) {
	kept := len(b.messages) - n
	b.messages, b.whole.Messages = b.messages[:kept], b.whole.Messages[:kept]
	b.delivery.LeaveOut(n)
}

// Memory lends bytes that the clients of this package keep; what comes back is overwritten, as it is used anew.
type Memory struct{}

// Lend implements reconnect.Memory.
func (Memory) Lend(size int) []byte { return make([]byte, 0, size) }

// Return implements reconnect.Memory.
func (Memory) Return(lent []byte) {
	lent = lent[:cap(lent)]
	for i := range lent {
		lent[i] = 0xc1
	}
}

func messagesOf(b *reconnect.Batch) []Message {
	ms := make([]Message, len(b.Messages))
	for i, m := range b.Messages {
		ms[i] = Message{
			Topic:     b.Topics[m.Topic],
			Value:     string(b.Data[m.ValOff : m.ValOff+m.ValLen]),
			NullKey:   m.KeyLen == reconnect.NoKey,
			Timestamp: m.Timestamp,
		}
		if m.KeyLen > 0 {
			ms[i].Key = string(b.Data[m.KeyOff : m.KeyOff+m.KeyLen])
		}
	}
	return ms
}

// clone copies a batch, which the caller of Produce reuses.
func clone(b *reconnect.Batch) *reconnect.Batch {
	return &reconnect.Batch{
		Topics: slices.Clone(b.Topics), Data: slices.Clone(b.Data), Messages: slices.Clone(b.Messages),
	}
}

func (b *batch) settle(acked int, failures []reconnect.Failure) {
	b.delivery.Settle(acked, failures, b.whole.Left(failures))
}

func (b *batch) failures() []reconnect.Failure {
	fs := make([]reconnect.Failure, len(b.messages))
	for i := range fs {
		fs[i] = reconnect.Failure{Index: i, Class: fsm.ClassTransient, Text: "client closed"}
		if b.sent {
			fs[i].Status = reconnect.PossiblyPersisted
		}
	}
	return fs
}

// SetGate implements reconnect.Client.
func (c *Client) SetGate(g fsm.ConnGate) {
	c.mu.Lock()
	c.gate = g
	c.epoch++
	c.gates = append(c.gates, GateChange{c.n.Now(), g})
	c.noneLeft = false
	for _, b := range c.brokers {
		b.permit = g == fsm.ConnSweep
		if g == fsm.ConnOpen {
			b.heldUntil = time.Time{}
		}
	}
	c.tell(func(n *news) { n.table = true })
	c.mu.Unlock()
	if g != fsm.ConnShut {
		c.wakeAll(true)
	}
}

// Hold implements reconnect.Client.
func (c *Client) Hold(addr string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = append(c.holds, Hold{c.n.Now(), addr, d})
	for _, b := range c.brokers {
		if b.addr == addr {
			b.heldUntil = time.Now().Add(d)
		}
	}
}

// ShutSockets implements reconnect.Client.
func (c *Client) ShutSockets() int {
	c.mu.Lock()
	c.shuts++
	n := 0
	for _, b := range c.brokers {
		if b.up || b.attempting {
			b.end = true
			n++
		}
	}
	c.mu.Unlock()
	c.wakeAll(false)
	return n
}

// Silence implements reconnect.Client.
func (c *Client) Silence(after time.Duration) reconnect.Silence {
	return c.judge(after, func(*broker) {})
}

// ShutSilent implements reconnect.Client.
func (c *Client) ShutSilent(after time.Duration) {
	c.judge(after, func(b *broker) { b.end = true })
	c.wakeAll(false)
}

func (c *Client) judge(after time.Duration, silent func(*broker)) reconnect.Silence {
	var s reconnect.Silence
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.brokers {
		if b.up && !b.end && b.judge(now, after, &s) {
			silent(b)
		}
	}
	return s
}

// Changed implements reconnect.Client, see Network.Change.
func (c *Client) Changed() (string, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.n.version == c.version {
		return "", nil
	}
	if c.n.openErr != nil {
		return "", c.n.openErr
	}
	return "/etc/secret", nil
}

// Heartbeat implements reconnect.Client.
func (c *Client) Heartbeat(timeout time.Duration) (string, error) {
	c.mu.Lock()
	c.beats++
	answered := false
	now := time.Now()
	for _, b := range c.brokers {
		switch {
		case !b.up:
		case b.alive():
			answered = true
			b.answeredAt = now
		default:
			b.ask(now)
		}
	}
	c.mu.Unlock()
	if answered {
		timeout = c.n.AckDelay
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.closed:
		return "", errNoAnswer
	}
	if !answered {
		return "", errNoAnswer
	}
	return c.n.trouble(), nil
}

// Close implements reconnect.Client.
func (c *Client) Close(time.Duration) error {
	c.closing.Do(func() {
		c.mu.Lock()
		close(c.closed)
		c.mu.Unlock()
		c.threads.Wait()
		if c.n.CloseDelay > 0 {
			time.Sleep(c.n.CloseDelay)
		}
		c.mu.Lock()
		queue := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, q := range queue {
			q.settle(0, q.failures())
		}
		close(c.quit)
		<-c.ended
	})
	return nil
}

// Fatal makes the client report that it can't go on.
func (c *Client) Fatal(class fsm.Class, text string) {
	c.say(reconnect.Notice{Kind: reconnect.NoticeFatal, Class: class, Text: text})
}

// Error makes the client report an error.
func (c *Client) Error(class fsm.Class, text string) {
	c.say(reconnect.Notice{Kind: reconnect.NoticeError, Class: class, Text: text})
}

func (c *Client) say(n reconnect.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell(func(news *news) { news.words = append(news.words, n) })
}

// Gates returns the calls of SetGate so far.
func (c *Client) Gates() []GateChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.gates)
}

// Holds returns the calls of Hold so far.
func (c *Client) Holds() []Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.holds)
}

// Shuts is the number of calls of ShutSockets, Heartbeats that of Heartbeat.
func (c *Client) Shuts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shuts
}

// Heartbeats is the number of calls of Heartbeat.
func (c *Client) Heartbeats() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.beats
}

// Connected is the number of ready connections.
func (c *Client) Connected() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, b := range c.brokers {
		if b.up {
			n++
		}
	}
	return n
}

// tell notes news for the notifier; mu is held.
func (c *Client) tell(f func(*news)) {
	f(&c.news)
	select {
	case c.notify <- struct{}{}:
	default:
	}
}

// notifier calls the sink. It is the goroutine that belongs to the client.
func (c *Client) notifier() {
	defer close(c.ended)
	for {
		select {
		case <-c.notify:
			c.deliverNews()
		case <-c.quit:
			c.deliverNews()
			return
		}
	}
}

func (c *Client) deliverNews() {
	c.mu.Lock()
	n := c.news
	c.news = news{}
	epoch, noneLeft := c.epoch, c.noneLeft
	var table []reconnect.Broker
	for _, b := range c.brokers {
		table = append(table, b.row())
	}
	c.mu.Unlock()
	for _, w := range n.words {
		w.Gen = c.gen
		c.sink(w)
	}
	if n.table {
		c.sink(reconnect.Notice{Gen: c.gen, Kind: reconnect.NoticeBrokers, Brokers: table, Epoch: epoch, NoneLeft: noneLeft})
	}
	switch {
	case n.acked:
		c.sink(reconnect.Notice{Gen: c.gen, Kind: reconnect.NoticeAcked})
	case n.reported:
		c.sink(reconnect.Notice{Gen: c.gen, Kind: reconnect.NoticeReported})
	}
}

// wakeAll wakes the brokers' goroutines; out of turn also those that sleep after a
// refusal.
func (c *Client) wakeAll(outOfTurn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.brokers {
		if outOfTurn {
			b.asleepUntil = time.Time{}
		}
		b.poke()
	}
}

// foundUp notes that a broker is up, which gives all of them a new chance; mu is held.
func (c *Client) foundUp() {
	c.noneLeft = false
	for _, b := range c.brokers {
		b.foundDown = false
	}
}

// foundDown notes that a broker is down; mu is held. As with librdkafka the last of them is told of
// once, and not again before one was up.
func (c *Client) foundDown(b *broker) {
	if b.foundDown {
		return
	}
	b.foundDown = true
	c.noneLeft = !slices.ContainsFunc(c.brokers, func(b *broker) bool { return !b.foundDown })
}

// connections calls f for the ready connections to some addresses, or to all.
func (c *Client) connections(addrs []string, f func(*broker)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.brokers {
		if b.up && (len(addrs) == 0 || slices.Contains(addrs, b.addr)) {
			f(b)
			b.poke()
		}
	}
}

package delivery

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// Sender hands batches to Kafka: the supervisor.
type Sender interface {
	// Admitted tells whether batches are taken now, and if not, gives a channel that is
	// closed when they are.
	Admitted() (bool, <-chan struct{})
	// Produce hands a batch over; with an error nothing was handed over.
	Produce(*reconnect.Batch) (*reconnect.Delivery, error)
}

// TopicPolicy says what becomes of records whose topic is unknown or closed to us, which
// an operator can mend.
type TopicPolicy uint8

// The policies.
const (
	// TopicRetry keeps the records waiting.
	TopicRetry TopicPolicy = iota
	// TopicReject gives them up once the topic has been in trouble for TopicWait.
	TopicReject
)

// Options are what a Courier is made of.
type Options struct {
	// Limit bounds the bytes that wait or are in the client's hands.
	Limit int64
	// Ordered has one chunk at a time in the client's hands, in the order of Post.
	Ordered bool
	// OnTopicError and TopicWait rule records whose topic is in trouble.
	OnTopicError TopicPolicy
	TopicWait    time.Duration
	// BackoffMin and BackoffMax bound the wait before a topic in trouble is tried again.
	BackoffMin, BackoffMax time.Duration
	// LetterTopic is the dead-letter topic. Letters that were posted to another one, before a
	// Reconfigure, are rejected when they come back from there.
	LetterTopic string
	// Reject is told of messages that can never be written. Each of them must be accounted
	// for, see Rejected. It must not block.
	Reject func(Rejected)
	// Trouble is told of messages that came back and will be sent again. It must not block.
	Trouble func(Trouble)
	// Answered is called when a broker has judged a message, well or badly: it is there and
	// keeps up. It must not block.
	Answered func()
	// Blocked is told of a receipt when all that is left of it waits for an operator and some of it
	// has come to its end. It must not block longer than a write to the page cache.
	Blocked func(*Receipt)
	// Completed is told of a receipt that has come to its end. It must not block longer than
	// a write to the page cache.
	Completed func(*Receipt)
}

// Rejected is messages of one chunk that can never be written. The chunk is complete only
// when Courier.Account was called for it.
type Rejected struct {
	// Tag is that of the chunk.
	Tag string
	// Failures[i] tells of Batch.Messages[i]; its Index is the index in the chunk. All of them could be
	// mended by an operator, or none.
	Failures []reconnect.Failure
	// Again tells for each failure that its message was told of before: it was given up for want of
	// room, see Forgo, and supplied again.
	Again []bool
	Batch *reconnect.Batch
	// Letters is what PostLetters was given, if these are copies for the dead-letter topic.
	Letters any

	receipt *Receipt
	count   int
	size    int64
	origin  []int // of the messages in the chunk; nil for entries without a message
}

// Size is what the messages count against the limit, in bytes.
func (r Rejected) Size() int64 { return r.size }

// Trouble is messages of one chunk that came back and wait for another try.
type Trouble struct {
	Tag   string
	Topic string
	Count int
	// Failure is the first one's.
	Failure reconnect.Failure
	// Waits tells that an operator must help the topic.
	Waits bool
	// NoPartition tells that the topic has no partition of the number that they had: they go
	// where the partitioner wants them.
	NoPartition bool
}

// Courier brings the messages of receipts to their end. What can't be handed over now, or
// comes back, waits here and goes out when a broker is up, whether or not Fluent Bit has
// come back with the chunk. It is safe for concurrent use.
type Courier struct {
	o     Options
	wake  chan struct{} // holds one token
	quit  chan struct{}
	ended chan struct{}

	mu      sync.Mutex // held for short moments, never while a batch is handed over
	sender  Sender
	stopped bool
	// What waits, in the order in which it goes out: what came back goes first. Delayed
	// parts join when they are due. With Ordered both are sorted by the number of the chunk.
	returned, ready []*part
	delayed         []*part
	delayedUntil    time.Time // nothing of them is due before that; zero without any
	// hands counts the parts in the client's hands by topic.
	hands map[string]int
	// barred are the topics for which a message must be sent alone; nothing else goes there.
	barred map[string]*bar
	// troubled are the topics whose messages an operator must help.
	troubled map[string]*trouble
	current  *Receipt   // ordered: the one chunk under way
	sealed   bool       // nothing is owned, now and later
	window   window     // ruled by the pump
	full     full       // the client's queue
	blocked  []*Receipt // of which the pump has not told yet

	queued       int64 // bytes that wait or are in the client's hands
	stuck        int64 // of them, those that wait for an operator
	receipts     int   // not complete
	owned        int   // of them, those that exist here only
	openMessages int
	counts       Counts
}

// bar is a topic for which messages wait to be sent alone.
type bar struct {
	parts []*part
	sent  bool // one is in the client's hands
}

// trouble is a topic that an operator must help.
type trouble struct {
	since   time.Time
	due     time.Time // of the next probe
	wait    time.Duration
	probing bool
	failure reconnect.Failure
	parts   []*part
}

// Counts are totals since the courier was made.
type Counts struct {
	// Acked messages were acknowledged; Doubtful were sent again although the broker may
	// have written them: possible duplicates.
	Acked, Doubtful int64
	// Avoided messages were not sent again at a retry, because they were on their way or
	// acknowledged: duplicates avoided.
	Avoided int64
	// Letters were acknowledged by the dead-letter topic.
	Letters int64
	// Returned messages came back and are sent again, by why: a message counts each time.
	Returned map[fsm.Class]int64
}

// Status is what a courier holds at a moment.
type Status struct {
	Counts
	// Queued is the bytes that wait or are in the client's hands, Receipts the chunks that
	// are not complete, Open their messages that have not come to their end.
	Queued         int64
	Receipts, Open int
	// Owned is the number of chunks that are not complete and exist here only.
	Owned int
	// Topics are the topics in trouble.
	Topics []string
}

// New starts a courier that hands over to s.
func New(o Options, s Sender) *Courier {
	c := &Courier{
		o: o, sender: s,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}),
		hands: map[string]int{}, barred: map[string]*bar{}, troubled: map[string]*trouble{},
		counts: Counts{Returned: map[fsm.Class]int64{}},
	}
	go c.run()
	return c
}

// Reconfigure goes on with other options and another sender. What the old sender still has in
// hands comes back when it is closed, and goes to the new one. It returns the letters that
// wait, as the dead-letter topic may be another one: they are to be posted again. Those in the
// client's hands are rejected when they come back, if it is another one.
func (c *Courier) Reconfigure(o Options, s Sender) []Rejected {
	c.mu.Lock()
	defer c.nudge()
	defer c.mu.Unlock()
	c.o, c.sender, c.full = o, s, full{}
	if !o.Ordered {
		c.current = nil
	}
	for _, p := range c.ready {
		p.receipt.held = false // the line that held it is the old one's
	}
	if o.Ordered {
		for _, list := range [][]*part{c.returned, c.ready} {
			slices.SortStableFunc(list, func(a, b *part) int { return cmp.Compare(a.receipt.number, b.receipt.number) })
		}
	}
	var letters []Rejected
	take := func(p *part) bool {
		if p.letters != nil {
			letters = append(letters, p.rejected())
		}
		return p.letters != nil
	}
	c.ready, c.returned = slices.DeleteFunc(c.ready, take), slices.DeleteFunc(c.returned, take)
	c.delayed = slices.DeleteFunc(c.delayed, take)
	for topic, t := range c.troubled {
		t.parts = slices.DeleteFunc(t.parts, func(p *part) bool {
			taken := take(p)
			if taken {
				c.goOn(p)
			}
			return taken
		})
		c.forget(topic)
	}
	return letters
}

// Stop ends the sending. What is in the client's hands is still accounted for.
func (c *Courier) Stop() {
	c.mu.Lock()
	again := c.stopped
	c.stopped = true
	c.mu.Unlock()
	if !again {
		close(c.quit)
	}
	<-c.ended
}

// Room tells whether a chunk of that many bytes would be taken. A courier that is empty, but for
// what waits for an operator, takes any.
func (c *Courier) Room(size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room(size)
}

func (c *Courier) room(size int64) bool { return c.queued <= c.stuck || c.queued+size <= c.o.Limit }

// Post takes the messages of a chunk over and returns their receipt, or nil when there is
// no room; spare is how many bytes there may be above the limit. They are handed over at
// once if nothing stands in the way, else when it can be; if the place is not the first, not
// before the line lets it go on. Unusable counts the entries of the chunk that have no message
// and are to be accounted for too, see Receipt.Unusable. The tag is copied, and the batch may be
// reused after the return.
func (c *Courier) Post(at Place, tag string, b *reconnect.Batch, unusable int, spare int64) *Receipt {
	r := newReceipt(c, tag, len(b.Messages), unusable)
	r.number, r.held = at.number, !at.First
	c.mu.Lock()
	if c.stopped || !c.room(sizeOf(b)-spare) {
		c.mu.Unlock()
		return nil
	}
	c.receipts++
	c.openMessages += r.open
	if r.messages == 0 {
		c.mu.Unlock()
		return r
	}
	p := newPart(r, b, nil)
	c.queued += p.size
	s := c.sender
	if c.free(p) {
		c.lend(p)
		c.mu.Unlock()
		err := c.produce(s, p)
		if err == nil {
			return r
		}
		c.mu.Lock()
		c.takeBack(p)
		if errors.Is(err, errFull) {
			c.foundFull(s, p)
		}
	}
	p.batch = b.Pick(upTo(0, len(b.Messages))) // the caller's batch is only lent
	c.file(p)
	c.mu.Unlock()
	c.nudge()
	return r
}

// release lets a chunk go on that was held for its place in a line.
func (c *Courier) release(r *Receipt) {
	c.mu.Lock()
	r.held = false
	c.mu.Unlock()
	c.nudge()
}

// Supply gives the bytes of a chunk again to a receipt that is short of some. The tag is
// copied. It returns false for a chunk that can't be the same, as it has another number of
// messages; the receipt is given up then.
func (c *Courier) Supply(r *Receipt, tag string, b *reconnect.Batch) bool {
	if len(b.Messages) != r.messages {
		c.giveUp(r)
		return false
	}
	c.mu.Lock()
	if r.tag == "" { // it was recalled
		r.tag, r.posted = strings.Clone(tag), time.Now()
	}
	index := r.forgone
	r.forgone = nil
	r.wait(-len(index))
	if len(index) > 0 {
		p := newPart(r, b.Pick(index), index)
		c.queued += p.size
		c.file(p)
	}
	c.mu.Unlock()
	c.nudge()
	return true
}

// Own notes that Fluent Bit is told OK, so that the bytes of the chunk exist here only from
// now on. They are kept whatever happens; what the receipt is short of is supplied next. It returns
// false when the courier is sealed.
func (c *Courier) Own(r *Receipt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed {
		return false
	}
	if !r.owned && !r.Complete() {
		r.owned = true
		c.owned++
	}
	return true
}

// Seal has nothing owned from now on, as the courier is about to be stopped. It returns false if
// something is.
func (c *Courier) Seal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = c.owned == 0
	return c.sealed
}

// Disown takes Own back: Fluent Bit is not told OK after all.
func (c *Courier) Disown(r *Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.owned && !r.Complete() {
		r.owned = false
		c.owned--
	}
}

// Avoid counts the messages of a chunk that a retry need not send again, at its first retry.
func (c *Courier) Avoid(r *Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.avoided {
		r.avoided = true
		c.counts.Avoided += int64(r.messages - len(r.forgone))
	}
}

// Account ends messages or entries of a chunk that can never be written: they are in a
// dead-letter target, or were told of.
func (c *Courier) Account(rej Rejected) {
	c.mu.Lock()
	c.queued -= rej.size
	rej.receipt.settle(rej.count)
	complete, o := rej.receipt.open == 0, c.o
	c.mu.Unlock()
	c.nudge()
	if complete {
		o.Completed(rej.receipt)
	}
}

// Forgo gives the bytes of rejected messages up, as their dead-letter target takes none: Fluent
// Bit has the chunk too and comes back with it. It returns false if the bytes are here only.
func (c *Courier) Forgo(rej Rejected) bool {
	defer c.nudge()
	c.mu.Lock()
	defer c.mu.Unlock()
	if rej.origin == nil || rej.receipt.owned {
		return false
	}
	c.queued -= rej.size
	rej.receipt.forgo(rej.origin)
	return true
}

// PostLetters sends copies of rejected messages to the dead-letter topic, one for each. A
// message is accounted for when its copy was acknowledged. If copies are rejected too, the
// Rejected gives the letters back, and its failures name them by their index.
func (c *Courier) PostLetters(rej Rejected, b *reconnect.Batch, letters any) {
	c.mu.Lock()
	p := newPart(rej.receipt, b, nil)
	p.letters, p.origin = letters, rej.origin
	c.queued += p.size - rej.size
	c.enqueue(&c.ready, p)
	c.mu.Unlock()
	c.nudge()
}

// Status returns what the courier holds.
func (c *Courier) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Counts: c.counts, Queued: c.queued, Receipts: c.receipts, Open: c.openMessages, Owned: c.owned}
	s.Returned = maps.Clone(s.Returned)
	for t := range c.troubled {
		s.Topics = append(s.Topics, t)
	}
	return s
}

// completed forgets a receipt that has come to its end; mu is held.
func (c *Courier) completed(r *Receipt) {
	c.receipts--
	if r.owned {
		c.owned--
	}
	if c.current == r {
		c.current = nil
	}
}

// nudge wakes the pump.
func (c *Courier) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

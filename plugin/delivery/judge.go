package delivery

import (
	"math/rand/v2"
	"slices"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// The wait before messages are sent again that came back more than once.
const (
	againMin = 50 * time.Millisecond
	againMax = time.Second
)

// codeUnknownPartition is what the client says to a partition that the topic has not. Its
// fault is the message's own if that names the partition, and may be the topic's if not.
const codeUnknownPartition = -190

// verdict is what follows from the failure of a message.
type verdict uint8

const (
	written     verdict = iota // the broker has it after all
	again                      // to be sent again
	misplaced                  // to be sent again, to any partition
	suspect                    // refused in company: to be sent alone
	waits                      // for an operator
	never                      // can never be written
	astray                     // a letter that is not for the dead-letter topic of now
	numVerdicts = iota
)

// result is a part that has come back, while it is being sorted.
type result struct {
	*part
	failures []reconnect.Failure
	left     *reconnect.Batch // of the failures
	troubles []Trouble        // to be told
	rejected []Rejected
}

// pickLeft makes a part of some failures.
func (r *result) pickLeft(list []int) *part {
	index := make([]int, len(list))
	for i, x := range list {
		index[i] = r.failures[x].Index
	}
	return r.pick(r.left, index, list)
}

// byTopic sorts a list of failures by the topic of their message.
func (r *result) byTopic(list []int) map[string][]int {
	out := map[string][]int{}
	for _, i := range list {
		t := topicOf(r.left, i)
		out[t] = append(out[t], i)
	}
	return out
}

// settled takes the result of a part that the client has reported in full.
func (c *Courier) settled(p *part, d *reconnect.Delivery) {
	r := &result{part: p, failures: d.Failures(), left: d.Left()}
	acked := d.Acked()
	answered := acked > 0
	c.mu.Lock()
	c.queued -= p.size
	var lists [numVerdicts][]int // of failures
	for i := range r.failures {
		f := &r.failures[i]
		v := c.judge(p, f, topicOf(r.left, i), r.left.Messages[i].Partition)
		lists[v] = append(lists[v], i)
		if p.letters == nil && v != written && v != never {
			c.counts.Returned[f.Class]++
		}
		if f.Status == reconnect.PossiblyPersisted && v != never && v != astray {
			c.counts.Doubtful++
		}
		answered = answered || (v == waits || f.Class == fsm.ClassRecord) && !f.Refused
	}
	acked += len(lists[written])
	if answered {
		c.window.answered(p, time.Now(), c.o.Limit)
	}
	c.takeBack(p)
	c.full = full{}
	c.probed(p, acked > 0)
	c.sendAgain(r, lists[again])
	c.sendAnywhere(r, lists[misplaced])
	c.sendAlone(r, lists[suspect])
	c.letWait(r, lists[waits])
	c.reject(r, lists[never])
	c.giveBack(r, lists[astray])
	if p.letters == nil {
		c.counts.Acked += int64(acked)
	} else {
		c.counts.Letters += int64(acked)
	}
	p.receipt.settle(acked)
	complete := p.receipt.open == 0
	o := c.o
	c.mu.Unlock()
	c.nudge()
	if complete {
		o.Completed(p.receipt)
	}
	if answered {
		o.Answered()
	}
	for _, t := range r.troubles {
		o.Trouble(t)
	}
	for _, rej := range r.rejected {
		o.Reject(rej)
	}
}

// judge decides on one message that came back.
func (c *Courier) judge(p *part, f *reconnect.Failure, topic string, partition int32) verdict {
	switch {
	case f.Status == reconnect.Persisted:
		return written
	case p.letters != nil && topic != c.o.LetterTopic:
		return astray
	case f.Code == codeUnknownPartition && partition != reconnect.PartitionAny:
		return misplaced
	case f.Class == fsm.ClassRecord && (f.Refused || p.alone && p.messages == 1):
		return never
	case f.Class == fsm.ClassRecord:
		return suspect
	case f.Class != fsm.ClassTopic && f.Class != fsm.ClassAuthorization:
		return again
	case p.letters == nil && c.hopeless(c.troubled[topic]):
		return never
	default:
		return waits
	}
}

// hopeless tells whether the messages of a topic are to be given up.
func (c *Courier) hopeless(t *trouble) bool {
	return t != nil && c.o.OnTopicError == TopicReject && time.Since(t.since) >= c.o.TopicWait
}

// probed frees a topic that works again, so that what waited for it goes out, or plans the
// next probe.
func (c *Courier) probed(p *part, written bool) {
	if len(p.topics) != 1 {
		return // which of them was written to is not known
	}
	topic := p.topics[0]
	t := c.troubled[topic]
	switch {
	case t == nil:
	case written:
		delete(c.troubled, topic)
		for _, q := range t.parts {
			c.goOn(q)
			c.enqueue(&c.ready, q)
		}
	case p.probe:
		t.probing = false
		c.postpone(t)
	}
}

// postpone plans the next probe of a topic.
func (c *Courier) postpone(t *trouble) {
	t.wait = min(max(2*t.wait, c.o.BackoffMin), c.o.BackoffMax)
	t.due = time.Now().Add(t.wait - rand.N(t.wait/4+1))
}

// sendAgain lets messages go out again that came back for no reason of their own: at once
// the first time, as a lost client gives everything back, then after a while.
func (c *Courier) sendAgain(r *result, list []int) {
	if len(list) == 0 {
		return
	}
	q := r.pickLeft(list)
	q.tries++
	c.queued += q.size
	if q.tries > 1 {
		wait := min(againMin<<min(q.tries-2, 8), againMax)
		q.due = time.Now().Add(wait - rand.N(wait/4))
	}
	c.comeBack(q)
	r.troubles = append(r.troubles, Trouble{Tag: r.receipt.tag, Topic: q.topics[0], Count: len(list), Failure: r.failures[list[0]]})
}

// sendAnywhere lets messages go out again that name a partition that their topic has not: the
// number is the fault of the record, and must neither cost the record nor hold up its topic.
func (c *Courier) sendAnywhere(r *result, list []int) {
	if len(list) == 0 {
		return
	}
	q := r.pickLeft(list)
	for i := range q.batch.Messages {
		q.batch.Messages[i].Partition = reconnect.PartitionAny
	}
	c.queued += q.size
	c.enqueue(&c.returned, q)
	r.troubles = append(r.troubles, Trouble{
		Tag: r.receipt.tag, Topic: q.topics[0], Count: len(list), Failure: r.failures[list[0]], NoPartition: true,
	})
}

// sendAlone takes a group that was refused for good apart. A broker judges batches, and a
// batch holds messages of several chunks, so only a message that was sent with nothing else
// around is meant itself: a group is sent alone first, and halved when it is refused again.
func (c *Courier) sendAlone(r *result, list []int) {
	for _, group := range r.byTopic(list) {
		q := r.pickLeft(group)
		parts := []*part{q}
		if n := len(group); r.alone && n > 1 {
			parts = q.split(upTo(0, n/2), upTo(n/2, n))
		}
		for _, q := range parts {
			c.queued += q.size
			c.bar(q, false)
		}
	}
}

// letWait has messages wait until their topic works again.
func (c *Courier) letWait(r *result, list []int) {
	for topic, group := range r.byTopic(list) {
		t := c.troubled[topic]
		if t == nil {
			t = &trouble{since: time.Now()}
			c.troubled[topic] = t
			c.postpone(t)
		}
		t.failure = r.failures[group[0]]
		q := r.pickLeft(group)
		c.queued += q.size
		// A probe that failed goes first again, to keep the order, unless its failure may be its
		// own: then another one asks next time. The partition that its key leads to may be
		// missing, and the others be there.
		c.wait(q, t, r.probe && t.failure.Code != codeUnknownPartition)
		r.troubles = append(r.troubles, Trouble{Tag: r.receipt.tag, Topic: topic, Count: len(group), Failure: t.failure, Waits: true})
	}
}

// wait puts a part to its topic in trouble. Such parts may fill half of the room: beyond
// that their bytes are given up, as Fluent Bit has them too and comes back with them, so
// that a bad topic does not keep the good ones from their room.
func (c *Courier) wait(p *part, t *trouble, first bool) {
	if needed := p.needed(); needed != nil && len(t.parts) > 0 && c.stuck+p.size > c.o.Limit/2 {
		c.queued -= p.size
		p.receipt.forgo(needed)
		return
	}
	c.stuck += p.size
	if first {
		t.parts = slices.Insert(t.parts, 0, p)
	} else {
		t.parts = append(t.parts, p)
	}
	if p.receipt.stuck == nil {
		p.receipt.stuck = map[*part]struct{}{}
	}
	p.receipt.stuck[p] = struct{}{}
	p.receipt.wait(p.messages)
}

// goOn ends the wait of a part; whoever calls it takes it from its topic.
func (c *Courier) goOn(p *part) {
	c.stuck -= p.size
	delete(p.receipt.stuck, p)
	p.receipt.wait(-p.messages)
}

// reject gives messages up. When a topic is hopeless, what waits for it goes with them.
func (c *Courier) reject(r *result, list []int) {
	if len(list) == 0 {
		return
	}
	// Those that an operator could mend apart from the others: what becomes of the two differs.
	mendable := slices.DeleteFunc(slices.Clone(list), func(i int) bool { return r.failures[i].Class == fsm.ClassRecord })
	hopeless := slices.DeleteFunc(slices.Clone(list), func(i int) bool { return r.failures[i].Class != fsm.ClassRecord })
	for _, l := range [][]int{mendable, hopeless} {
		if len(l) > 0 {
			c.rejectPart(r, r.pickLeft(l), func(i int) reconnect.Failure { return r.failures[l[i]] })
		}
	}
	for topic := range r.byTopic(list) {
		t := c.troubled[topic]
		if !c.hopeless(t) {
			continue
		}
		for _, q := range t.parts {
			c.goOn(q)
			c.queued -= q.size
			c.rejectPart(r, q, func(int) reconnect.Failure { return t.failure })
		}
		t.parts = nil
	}
}

// giveBack rejects letters whose topic is no longer that of the dead letters.
func (c *Courier) giveBack(r *result, list []int) {
	if len(list) == 0 {
		return
	}
	q := r.pickLeft(list)
	c.rejectPart(r, q, func(i int) reconnect.Failure { return r.failures[list[i]] })
	for _, topic := range q.topics {
		c.forget(topic)
	}
}

// forget ends the trouble of a topic for which nothing waits any more.
func (c *Courier) forget(topic string) {
	if t := c.troubled[topic]; t != nil && len(t.parts) == 0 && !t.probing {
		delete(c.troubled, topic)
	}
}

// rejectPart turns a part that is in no list into a Rejected.
func (c *Courier) rejectPart(r *result, p *part, failure func(i int) reconnect.Failure) {
	rej := p.rejected()
	for i := range rej.Failures {
		index := rej.Failures[i].Index
		rej.Failures[i] = failure(i)
		rej.Failures[i].Index = index
	}
	if p.letters == nil {
		rej.origin = p.chunkIndexes()
		rej.Again = p.receipt.tell(rej.origin)
		p.receipt.rejected = append(p.receipt.rejected, rej.origin...)
	}
	c.queued += rej.size
	r.rejected = append(r.rejected, rej)
}

package delivery

import (
	"errors"
	"slices"
	"time"
)

// run hands over what waits, whenever the sender takes it, and tells of chunks that are blocked.
func (c *Courier) run() {
	defer close(c.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for shut := false; ; {
		c.mu.Lock()
		s := c.sender
		admitted, opened := s.Admitted()
		if admitted && shut {
			c.window.narrow()
		}
		shut = !admitted
		c.mu.Unlock()
		var due <-chan time.Time
		if admitted {
			opened = nil // it is closed, and says no more
			if at := c.sendAll(s); !at.IsZero() {
				timer.Reset(time.Until(at))
				due = timer.C
			}
		}
		c.tellBlocked()
		select {
		case <-c.wake:
		case <-opened:
		case <-due:
		case <-c.quit:
			return
		}
	}
}

// tellBlocked tells of the receipts of which all that is left has come to wait for an operator.
func (c *Courier) tellBlocked() {
	c.mu.Lock()
	blocked, o := c.blocked, c.o
	c.blocked = nil
	c.mu.Unlock()
	for _, r := range blocked {
		o.Blocked(r)
	}
}

// sendAll hands over all that may go, and returns when to come back, or zero.
func (c *Courier) sendAll(s Sender) time.Time {
	for {
		p, at := c.next(time.Now())
		if p == nil {
			return at
		}
		err := c.produce(s, p)
		if err == nil {
			continue
		}
		c.mu.Lock()
		c.takeBack(p)
		if errors.Is(err, errFull) {
			c.foundFull(s, p)
		}
		giveWay := p.unfit >= maxUnfit && !p.alone && !p.probe // those fitted before
		if !giveWay {
			c.putBack(p)
		}
		c.mu.Unlock()
		switch {
		case giveWay:
			c.giveWay(p)
		case !errors.Is(err, errFull):
			return time.Now().Add(againMin) // it was shut since it was asked, and its channel is not watched
		}
	}
}

// next takes the part that is to go out now, or tells when the next one is due.
func (c *Courier) next(now time.Time) (*part, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, time.Time{}
	}
	if c.full.now(now) {
		return nil, c.full.until
	}
	at := c.wakeDelayed(now)
	if wait := c.window.full(now); !wait.IsZero() {
		return nil, earlier(at, wait)
	}
	p, at := c.choose(now, at)
	switch {
	case p != nil:
		c.window.lend(p, now)
	case len(c.returned)+len(c.ready) == 0:
		c.window.drained()
	}
	return p, at
}

// choose takes the part whose turn it is. Parts of several chunks may wait for a topic though one
// chunk goes at a time: they came before Reconfigure.
func (c *Courier) choose(now time.Time, at time.Time) (*part, time.Time) {
	for topic, b := range c.barred {
		if i := slices.IndexFunc(b.parts, c.turn); i >= 0 && !b.sent && c.hands[topic] == 0 {
			return c.lend(takeOut(&b.parts, i)), at
		}
	}
	for _, list := range []*[]*part{&c.returned, &c.ready} {
		if i := c.firstToGo(*list); i >= 0 {
			return c.lend(takeOut(list, i)), at
		}
	}
	for _, t := range c.troubled {
		i := slices.IndexFunc(t.parts, c.turn)
		if t.probing || i < 0 {
			continue
		}
		if now.Before(t.due) {
			at = earlier(at, t.due)
			continue
		}
		p := takeOut(&t.parts, i)
		t.probing, p.probe = true, true
		c.goOn(p)
		return c.lend(p), at
	}
	return nil, at
}

// firstToGo is the index of the part that goes next, the first that may; -1 if there is none.
func (c *Courier) firstToGo(list []*part) int {
	for i, p := range list {
		if c.mayGo(p) {
			return i
		}
		if c.current != nil && p.receipt.number > c.current.number {
			break // what follows came later still, see enqueue
		}
	}
	return -1
}

// enqueue appends a part to a list of those that wait. With Ordered the chunk that came first goes
// first, and chunks with a place in a line may come in any order.
func (c *Courier) enqueue(list *[]*part, p *part) {
	l := append(*list, p)
	if c.o.Ordered {
		for i := len(l) - 1; i > 0 && l[i-1].receipt.number > p.receipt.number; i-- {
			l[i], l[i-1] = l[i-1], p
		}
	}
	*list = l
}

// takeOut removes a part from a list. Mostly it is the first one, and the list may be long.
func takeOut(list *[]*part, i int) *part {
	p := (*list)[i]
	if i == 0 {
		(*list)[0] = nil
		*list = (*list)[1:]
	} else {
		*list = slices.Delete(*list, i, i+1)
	}
	return p
}

// delay has parts wait until they are due.
func (c *Courier) delay(parts ...*part) {
	for _, p := range parts {
		c.delayed = append(c.delayed, p)
		c.delayedUntil = earlier(c.delayedUntil, p.due)
	}
}

// wakeDelayed makes ready what was delayed until now, and returns when the next is due.
func (c *Courier) wakeDelayed(now time.Time) time.Time {
	if now.Before(c.delayedUntil) {
		return c.delayedUntil
	}
	var at time.Time
	c.delayed = slices.DeleteFunc(c.delayed, func(p *part) bool {
		if now.Before(p.due) {
			at = earlier(at, p.due)
			return false
		}
		c.enqueue(&c.ready, p)
		return true
	})
	c.delayedUntil = at
	return at
}

// earlier is the earlier of two times, where zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// free tells whether a part that was just posted may be handed over without waiting.
func (c *Courier) free(p *part) bool {
	admitted, _ := c.sender.Admitted()
	return admitted && !c.stopped && !c.full.is && len(c.ready)+len(c.returned) == 0 && !c.window.narrowed() && c.mayGo(p) && !c.anyTroubled(p)
}

// mayGo tells whether nothing stands in the way of a part.
func (c *Courier) mayGo(p *part) bool {
	if p.receipt.held {
		return false
	}
	if len(c.barred) > 0 && slices.ContainsFunc(p.topics, func(t string) bool { return c.barred[t] != nil }) {
		return false
	}
	return c.turn(p)
}

// turn tells whether it is the chunk's turn, which it always is without Ordered.
func (c *Courier) turn(p *part) bool {
	return !c.o.Ordered || c.current == nil || c.current == p.receipt
}

// lend notes that the client gets the part.
func (c *Courier) lend(p *part) *part {
	if c.o.Ordered {
		c.current = p.receipt
	}
	p.inHands(true)
	for _, t := range p.topics {
		c.hands[t]++
	}
	if p.alone {
		c.barred[p.topics[0]].sent = true
	}
	return p
}

// takeBack notes that the client has the part no longer.
func (c *Courier) takeBack(p *part) {
	c.window.takeBack(p)
	p.inHands(false)
	for _, t := range p.topics {
		if c.hands[t]--; c.hands[t] == 0 {
			delete(c.hands, t)
		}
	}
	if p.alone {
		c.unbar(p.topics[0])
	}
}

// unbar lets a topic go on when none of its messages is to be sent alone.
func (c *Courier) unbar(topic string) {
	b := c.barred[topic]
	b.sent = false
	if len(b.parts) == 0 {
		delete(c.barred, topic)
	}
}

// putBack lets a part wait again that could not be handed over.
func (c *Courier) putBack(p *part) {
	t := c.troubled[p.topics[0]]
	switch {
	case p.alone:
		c.bar(p, true)
	case p.probe && t != nil:
		t.probing, p.probe = false, false
		c.wait(p, t, true)
	default:
		p.probe = false // the topic works again
		c.returned = slices.Insert(c.returned, 0, p)
	}
}

// bar has a part wait to be sent alone.
func (c *Courier) bar(p *part, first bool) {
	topic := p.topics[0]
	b := c.barred[topic]
	if b == nil {
		b = &bar{}
		c.barred[topic] = b
	}
	p.alone = true
	if first {
		b.parts = slices.Insert(b.parts, 0, p)
	} else {
		b.parts = append(b.parts, p)
	}
}

// produce hands a part over, without mu. What the client's queue has no room for waits again.
func (c *Courier) produce(s Sender, p *part) error {
	d, err := s.Produce(p.batch)
	if err != nil {
		return err
	}
	switch left := d.LeftOut(); left {
	case 0:
	case p.messages:
		return errFull
	default:
		c.cut(s, p, p.messages-left)
	}
	p.batch = nil // the client has the bytes now
	d.Then(func() { c.settled(p, d) })
	return nil
}

// file puts a part where it belongs: messages for a topic in trouble wait with the topic,
// the rest goes out in turn.
func (c *Courier) file(p *part) {
	if !c.anyTroubled(p) {
		c.enqueue(&c.ready, p)
		return
	}
	var rest []int
	lists := map[string][]int{}
	for i := range p.batch.Messages {
		if t := topicOf(p.batch, i); c.troubled[t] != nil {
			lists[t] = append(lists[t], i)
		} else {
			rest = append(rest, i)
		}
	}
	c.queued -= p.size
	for _, q := range p.split(rest) {
		c.queued += q.size
		c.enqueue(&c.ready, q)
	}
	for topic, list := range lists {
		for _, q := range p.split(list) {
			c.queued += q.size
			c.wait(q, c.troubled[topic], false)
		}
	}
}

// anyTroubled tells whether a message of the part is for a topic in trouble. An ordered
// chunk is not taken apart for that.
func (c *Courier) anyTroubled(p *part) bool {
	return len(c.troubled) > 0 && !c.o.Ordered &&
		slices.ContainsFunc(p.topics, func(t string) bool { return c.troubled[t] != nil })
}

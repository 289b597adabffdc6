package reconnecttest

import (
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// What librdkafka does by itself, as measured.
const (
	refusedSleep = time.Second            // a refused client asks again after this
	ownBackoff   = 100 * time.Millisecond // between attempts while the gate is open
	ownBackoffUp = 250 * time.Millisecond // the second and later ones
	askedWindow  = 3 * time.Second        // how long Asked is told after asking
	shortLife    = time.Second            // see reconnect.Broker.Shorts
	closesAfter  = 10 * time.Millisecond  // mode Closing
)

// broker is the client's side of one address: what a broker thread of librdkafka is. Its
// fields are guarded by the client's mu.
type broker struct {
	c    *Client
	addr string
	wake chan struct{} // holds one token

	permit      bool
	heldUntil   time.Time
	asleepUntil time.Time
	askedAt     time.Time
	attempting  bool
	endsAt      time.Time // of the attempt
	up          bool
	upAt        time.Time
	ackedAtUp   uint64
	ackAt       time.Time // the next acknowledgement, zero if none is due
	unanswered  time.Time // the connection was asked then and has not answered, or zero
	answeredAt  time.Time // the last sign of life
	end         bool      // the connection or attempt is to end
	forgotten   bool      // the connection is dead and nobody knows, see Network.Forget
	failedOnce  bool
	foundDown   bool     // since a broker was up
	answered    []*batch // taken from the queue, to be settled outside mu

	attempts, failures, ups, shorts uint64
	class                           fsm.Class
	text                            string
}

func (b *broker) row() reconnect.Broker {
	r := reconnect.Broker{
		Addr: b.addr, Attempts: b.attempts, Failures: b.failures, Ups: b.ups, Shorts: b.shorts,
		Class: b.class, Text: b.text, Configured: b.c.n.configured[b.addr],
		Asked: !b.askedAt.IsZero() && time.Since(b.askedAt) <= askedWindow,
	}
	if b.up {
		r.Up = 1
	}
	if b.attempting {
		r.InFlight = 1
	}
	if b.permit && b.c.gate == fsm.ConnSweep {
		r.Permits = 1
	}
	return r
}

func (b *broker) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run is the broker thread.
func (b *broker) run() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-b.c.closed:
			return
		case <-b.wake:
		case <-t.C:
		}
		if next := b.turn(); next.IsZero() {
			t.Stop()
		} else {
			t.Reset(time.Until(next))
		}
	}
}

// turn does what is to be done now and returns when to come back, or zero to be woken.
func (b *broker) turn() time.Time {
	now := time.Now()
	var next time.Time
	b.c.mu.Lock()
	// Read with the lock held: what was produced after a change of the mode meets the change.
	mode := b.c.n.mode(b.addr)
	switch {
	case b.up:
		next = b.connected(now, mode)
	case b.attempting:
		next = b.trying(now, mode)
	default:
		next = b.disconnected(now, mode)
	}
	answered := b.answered
	b.answered = nil
	b.c.mu.Unlock()
	if answered != nil {
		b.acknowledge(answered)
	}
	return next
}

func (b *broker) changed() { b.c.tell(func(n *news) { n.table = true }) }

func (b *broker) connected(now time.Time, mode Mode) time.Time {
	closes := b.upAt.Add(closesAfter)
	if b.end || mode == Down && !b.forgotten || mode == Closing && !now.Before(closes) {
		b.up, b.end, b.forgotten, b.ackAt, b.unanswered = false, false, false, time.Time{}, time.Time{}
		if now.Sub(b.upAt) < shortLife && b.c.acked == b.ackedAtUp {
			b.shorts++
		}
		b.c.foundDown(b)
		b.asleepUntil = now.Add(ownBackoff)
		b.changed()
		return b.asleepUntil
	}
	if mode == Closing {
		return closes
	}
	for _, q := range b.c.queue {
		q.sent = true
	}
	if len(b.c.queue) > 0 {
		b.ask(now)
	}
	if mode != Serving || b.forgotten || len(b.c.queue) == 0 {
		b.ackAt = time.Time{}
		return time.Time{}
	}
	if b.ackAt.IsZero() {
		b.ackAt = now.Add(b.c.n.AckDelay)
	}
	if now.Before(b.ackAt) {
		return b.ackAt
	}
	b.ackAt = time.Time{}
	b.answered, b.c.queue = b.c.queue, nil
	b.answer(now)
	return time.Time{}
}

// ask notes a request on the connection.
func (b *broker) ask(now time.Time) {
	if b.unanswered.IsZero() {
		b.unanswered = now
	}
}

// answer notes that nothing is left to answer.
func (b *broker) answer(now time.Time) { b.unanswered, b.answeredAt = time.Time{}, now }

// alive tells whether the broker answers on the connection.
func (b *broker) alive() bool { return !b.forgotten && b.c.n.mode(b.addr).ready() }

// judge adds what the connection looks like to s and tells whether it is silent.
func (b *broker) judge(now time.Time, after time.Duration, s *reconnect.Silence) bool {
	s.Ready++
	quiet := now.Sub(b.answeredAt)
	if !b.unanswered.IsZero() {
		quiet = now.Sub(b.unanswered)
	}
	switch {
	case b.c.n.mode(b.addr) == Mute && !b.forgotten:
		s.Alive++ // it says no to every request, which is an answer
		b.unanswered = time.Time{}
		b.ask(now)
	case quiet < after/2:
		s.Alive++
	case b.unanswered.IsZero():
	case quiet >= after:
		s.Silent++
		return true
	default:
		if s.Suspect++; s.Suspect == 1 || after-quiet < s.Next {
			s.Next = after - quiet
		}
	}
	return false
}

// acknowledge settles what was answered. Deliveries settle before the notice goes out.
func (b *broker) acknowledge(answered []*batch) {
	acked := uint64(0)
	for _, q := range answered {
		failures := b.c.n.acknowledge(q.messages)
		good := len(q.messages) - len(failures)
		acked += uint64(good)
		q.settle(good, failures)
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.acked += acked
	b.c.tell(func(n *news) {
		n.acked = n.acked || acked > 0
		n.reported = true
	})
}

func (b *broker) trying(now time.Time, mode Mode) time.Time {
	if !b.end && (mode == Frozen || now.Before(b.endsAt)) {
		if mode == Frozen {
			return time.Time{}
		}
		return b.endsAt
	}
	b.attempting = false
	if mode.ready() && !b.end {
		b.up, b.upAt, b.ackedAtUp = true, now, b.c.acked
		b.answer(now)
		b.ups++
		b.class, b.text, b.failedOnce = fsm.ClassNone, "", false
		b.c.foundUp()
		b.changed()
		b.poke()
		return time.Time{}
	}
	b.fail(now, mode)
	return b.asleepUntil
}

func (b *broker) fail(now time.Time, mode Mode) {
	f := failureOf[mode]
	if b.end || f.text == "" {
		f.class, f.text = fsm.ClassNetwork, "disconnected"
	}
	b.end = false
	b.failures++
	b.c.foundDown(b)
	b.class, b.text = f.class, f.text
	b.asleepUntil = now.Add(ownBackoff)
	if b.failedOnce {
		b.asleepUntil = now.Add(ownBackoffUp)
	}
	b.failedOnce = true
	b.c.tell(func(n *news) {
		n.table = true
		if mode == Rejecting {
			n.words = append(n.words, reconnect.Notice{Kind: reconnect.NoticeError, Class: f.class, Text: f.text})
		}
	})
}

func (b *broker) disconnected(now time.Time, mode Mode) time.Time {
	b.end = false
	if mode == Unwanted {
		b.permit = false
		return time.Time{}
	}
	if now.Before(b.asleepUntil) {
		return b.asleepUntil
	}
	b.askedAt = now
	if !b.allowed(now) {
		b.asleepUntil = now.Add(refusedSleep)
		return b.asleepUntil
	}
	b.attempts++
	b.c.n.attempted(b.addr, b.c.gen)
	if mode == Unresolvable {
		b.fail(now, mode)
		return b.asleepUntil
	}
	b.attempting = true
	b.endsAt = now.Add(b.c.n.ConnectDelay)
	b.changed()
	return b.endsAt
}

// allowed asks the gate and takes the permit of a sweep.
func (b *broker) allowed(now time.Time) bool {
	switch b.c.gate {
	case fsm.ConnOpen:
		return !now.Before(b.heldUntil)
	case fsm.ConnSweep:
		ok := b.permit
		b.permit = false
		return ok
	default:
		return false
	}
}

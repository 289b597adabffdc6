package herd

import (
	"math/rand/v2"
	"time"
)

// The defaults of librdkafka.
const (
	reconnectBackoff    = 100 * time.Millisecond
	reconnectBackoffMax = 10 * time.Second
)

// handle is what paces the attempts of one broker handle of librdkafka, versions 2.3.0 to
// 2.15.0: rd_kafka_broker_update_reconnect_backoff, in whole milliseconds as there.
type handle struct {
	base time.Duration // rkb_reconnect_backoff_ms
	next time.Duration // rkb_ts_reconnect
}

func (h *handle) update(now time.Duration, r *rand.Rand) {
	if h.next+reconnectBackoffMax < now {
		h.base = reconnectBackoff
	}
	low, high := (h.base * 3 / 4).Milliseconds(), (h.base * 3 / 2).Milliseconds()
	wait := min(time.Duration(low+r.Int64N(high-low+1))*time.Millisecond, reconnectBackoffMax)
	h.next = now + wait
	h.base = min(2*h.base, reconnectBackoffMax)
}

// attempt is one attempt, with an update as it starts and one more when it has failed: this is
// why the wait grows fourfold.
func (h *handle) attempt(at time.Duration, c *cluster, to int, r *rand.Rand) (ok bool, known time.Duration) {
	h.update(at, r)
	if ok, known = c.attempt(at, to); !ok {
		h.update(known, r)
	}
	return ok, known
}

// due is when the next attempt starts: what is left of the wait is cut to milliseconds.
func (h *handle) due(now time.Duration) time.Duration {
	return now + max(0, h.next-now).Truncate(time.Millisecond)
}

// plain is an agent with librdkafka alone. The handles of the leaders have records, and each of
// them goes by its own backoff.
type plain struct {
	rand    *rand.Rand
	leaders []leader
	// knocks: since 2.10 the addresses of the configuration come back as handles of their own in
	// an outage. Two timers of a second make one of them connect at once, whatever its backoff
	// says, until a handle is up. Seen with 2.15.0: two attempts 50 ms apart in each second.
	knocks bool
	knock  time.Duration // the next of these
	second bool          // it is the second of the two
}

type leader struct {
	handle
	at time.Duration // the next attempt
	up time.Duration
}

// knockGap is how soon another address may be picked: half of reconnect.backoff.ms, and the
// millisecond that the timer adds.
const knockGap = reconnectBackoff/2 + time.Millisecond

func newPlain(knocks bool, brokers int, r *rand.Rand) *plain {
	p := &plain{rand: r, knocks: knocks, knock: never, leaders: make([]leader, brokers)}
	for i := range p.leaders {
		p.leaders[i].base, p.leaders[i].up = reconnectBackoff, never
	}
	if knocks {
		// The timers run since the agent was started, which was not the same moment for all.
		p.knock = time.Duration(r.Int64N(int64(time.Second)))
	}
	return p
}

func (p *plain) due() time.Duration {
	next := p.knock
	for i := range p.leaders {
		next = min(next, p.leaders[i].at)
	}
	return next
}

// connected is when the last leader was reached: another handle that is up delivers nothing.
func (p *plain) connected() time.Duration {
	last := time.Duration(0)
	for i := range p.leaders {
		last = max(last, p.leaders[i].up)
	}
	return last
}

func (p *plain) turn(c *cluster) {
	now := p.due()
	for i := range p.leaders {
		l := &p.leaders[i]
		if l.at != now {
			continue
		}
		ok, known := l.attempt(now, c, i, p.rand)
		if ok {
			l.at, l.up = never, known
			p.knock = never
		} else {
			l.at = l.due(known)
		}
		return
	}
	p.knockNow(now, c)
}

func (p *plain) knockNow(now time.Duration, c *cluster) {
	if ok, _ := c.attempt(now, p.rand.IntN(len(c.brokers))); ok {
		p.knock = never
		return
	}
	if p.second {
		p.knock += time.Second - knockGap
	} else {
		p.knock += knockGap
	}
	p.second = !p.second
}

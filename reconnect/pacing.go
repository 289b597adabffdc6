package reconnect

import (
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// settledIn is how long a connection must last before an acknowledgement is put down to
// it: the client does not say which connection an acknowledgement came by.
const settledIn = time.Second

// pacer paces the attempts to single addresses while the connection gate is open and
// another broker serves, so that one dead broker of three is not tried several times a
// second for hours. When the last broker is lost the loop sets the gate anew, which ends
// every hold: from then on each address may be the one that is needed. It is pure and
// owned by the loop.
type pacer struct {
	min, max time.Duration
	rand     func() float64
	addrs    map[string]*pace
}

// pace is the backoff of one address.
type pace struct {
	backoff          fsm.Backoff
	failures, shorts uint64
	up               bool
	upSince          time.Duration
	heldUntil        time.Duration
	seen             bool
}

// hold is a call of Client.Hold.
type hold struct {
	addr string
	wait time.Duration
}

// clear forgets everything: the next table comes from a new client.
func (p *pacer) clear() { p.addrs = map[string]*pace{} }

// released notes that the gate was set, which ends every hold.
func (p *pacer) released() {
	for _, a := range p.addrs {
		a.heldUntil = 0
	}
}

// held tells whether an address is being held back.
func (p *pacer) held(at time.Duration) bool {
	for _, a := range p.addrs {
		if at < a.heldUntil {
			return true
		}
	}
	return false
}

// acked notes an acknowledgement: what has been up for a while works.
func (p *pacer) acked(at time.Duration) {
	for _, a := range p.addrs {
		if a.up && at-a.upSince >= settledIn {
			a.backoff.Reset()
		}
	}
}

// update takes a table and returns which addresses to hold back. While the gate is not
// open it only keeps count: the machine paces.
func (p *pacer) update(at time.Duration, table []Broker, open bool) []hold {
	var holds []hold
	up := 0
	for i := range table {
		if table[i].Up > 0 {
			up++
		}
	}
	for i := range table {
		b := &table[i]
		a := p.addrs[b.Addr]
		if a == nil {
			a = &pace{backoff: fsm.NewBackoff(p.min, p.max, p.rand)}
			p.addrs[b.Addr] = a
		}
		if a.take(at, b, up > 0, p.max) && open {
			wait := a.backoff.Next(at)
			a.heldUntil = at + wait
			holds = append(holds, hold{b.Addr, wait})
		}
	}
	for addr, a := range p.addrs {
		if !a.seen {
			delete(p.addrs, addr)
		}
		a.seen = false
	}
	return holds
}

// take notes the row of the address and tells whether it deserves to be held back: its
// attempt failed, or its connection ended at once, while another broker is up. If none is,
// the machine decides.
func (a *pace) take(at time.Duration, b *Broker, anyUp bool, longest time.Duration) bool {
	bad := b.Failures > a.failures || b.Shorts > a.shorts
	a.failures, a.shorts, a.seen = b.Failures, b.Shorts, true
	if up := b.Up > 0; up != a.up {
		if a.up && at-a.upSince > longest {
			a.backoff.Reset()
		}
		a.up, a.upSince = up, at
	}
	return bad && anyUp && !a.up
}

package reconnect

import (
	"out_kafka_reconnect/reconnect/fsm"
)

// evidence turns the client's tables of addresses into the counts that the machine
// decides by. A table holds totals and may stand for a burst of changes; what matters is
// what changed since a broker was last up, or since the connection gate was last set. It
// is pure and owned by the loop.
type evidence struct {
	addrs map[string]*address
	// epoch is the number of SetGate calls made on the client; tables with a lower one
	// were read before the gate that stands now.
	epoch uint64
	gate  fsm.ConnGate // the one that stands now
	// connects is of all tables of all clients.
	connects connects
}

// connects counts connection attempts since the start of the supervisor, in which a table is
// only a chapter: its totals begin anew with every client.
type connects struct{ attempts, failures, successes uint64 }

// address is what is known of one address.
type address struct {
	Broker
	// failures, ups and shorts are the totals when counting began.
	failures, ups, shorts uint64
	// failing: the last attempt failed, and no connection is ready.
	failing bool
	// shut: its connections were shut, and the table may not show it yet. They do not
	// count until the address was seen without one, or with a newer one.
	shut    bool
	shutUps uint64
	// cut is how many attempts were in flight when the sockets were shut: they fail by our
	// own doing.
	cut int
	// row counts connections in a row that ended at once. The first is free, brokers
	// restart; from the second on such an end is a failed attempt (short), or a broker
	// that always closes would be tried several times a second for ever.
	row   int
	short bool
	fresh bool // short since this table
	seen  bool // in the table that is being read
}

// counts are the facts of a BrokersChanged event.
type counts struct {
	up, failing, failed, pending, inFlight int
	class                                  fsm.Class
	// learnedOnly: what has failed was learned, no address of the configuration was tried.
	learnedOnly bool
}

// clear forgets every address: the next table comes from a new client.
func (e *evidence) clear() {
	e.addrs = map[string]*address{}
	e.epoch, e.gate = 0, fsm.ConnShut
}

// gateSet begins to count anew, as the gate was set once more. One that opens gives every
// address a new chance: what failed before is not failing until it fails again.
func (e *evidence) gateSet(g fsm.ConnGate) {
	e.epoch++
	e.gate = g
	for _, a := range e.addrs {
		a.rebase()
		a.failing = a.failing && g != fsm.ConnOpen
	}
}

// socketsShut marks the connections and attempts that are known now as gone.
func (e *evidence) socketsShut() {
	for _, a := range e.addrs {
		a.cut = a.InFlight
		if a.Up > 0 {
			a.shut, a.shutUps = true, a.Ups
		}
	}
}

// rebase begins to count anew for one address.
func (a *address) rebase() {
	a.failures, a.ups, a.shorts, a.short = a.Failures, a.Ups, a.Shorts, false
}

// update takes a table, and Notice.NoneLeft, and returns what they say.
func (e *evidence) update(table []Broker, epoch uint64, noneLeft bool) counts {
	stale := epoch < e.epoch
	newUps := false
	for i := range table {
		b := &table[i]
		a := e.addrs[b.Addr]
		if a == nil {
			a = &address{}
			e.addrs[b.Addr] = a
		}
		newUps = newUps || b.Ups > a.Ups
		e.connects.add(&a.Broker, b)
		a.take(b)
		if stale {
			a.rebase()
		}
	}
	up := false
	for addr, a := range e.addrs {
		if !a.seen {
			delete(e.addrs, addr)
			continue
		}
		a.seen = false
		up = up || a.up()
	}
	// Failures count since a broker was last up. A connection that came and went between
	// two tables was up too; what failed before it and after it can't be told apart, and
	// the next attempt follows soon. For a sweep see count.
	if up || newUps && e.gate != fsm.ConnSweep {
		for _, a := range e.addrs {
			a.rebase()
			a.short = a.fresh && !up
		}
	}
	return e.count(noneLeft)
}

// add counts what has happened to an address between two tables.
func (c *connects) add(before, now *Broker) {
	c.attempts += now.Attempts - before.Attempts
	c.failures += now.Failures - before.Failures
	c.successes += now.Ups - before.Ups
}

// take notes the row of the address.
func (a *address) take(b *Broker) {
	a.fresh = false
	switch {
	case b.Shorts > a.Shorts:
		a.row++
		a.fresh = a.row > 1 && b.Up == 0
	case a.Up > 0 && b.Up == 0:
		a.row = 0 // it had lasted, or was acknowledged by
	}
	a.short = a.fresh || a.short && b.Up == 0
	failures := b.Failures - a.Failures
	if forgiven := min(failures, uint64(a.cut)); forgiven > 0 {
		a.failures += forgiven
		a.cut -= int(forgiven)
		failures -= forgiven
	}
	if b.InFlight == 0 {
		a.cut = 0
	}
	switch {
	case b.Up > 0:
		a.failing = false
	case failures > 0 || a.fresh:
		a.failing = true
	case b.Ups > a.Ups:
		a.failing = false // it came and went
	}
	if a.shut && (b.Up == 0 || b.Ups > a.shutUps) {
		a.shut = false
	}
	a.Broker, a.seen = *b, true
}

func (a *address) up() bool { return a.Up > 0 && !a.shut }

// count sums the addresses up.
func (e *evidence) count(noneLeft bool) counts {
	var c counts
	configured, tried, short, left := false, false, false, !noneLeft
	for _, a := range e.addrs {
		configured = configured || a.Configured
		tried = tried || a.Configured && (a.InFlight > 0 || a.Failures > a.failures || a.Ups > a.ups)
		up := a.up()
		// In a sweep a connection that came and went counts: as a failed attempt if the broker
		// ended it at once, else as one that is up. The client drops a bootstrap handle as soon
		// as it knows the cluster, and the broker it has found there needs the gate open.
		gone := e.gate == fsm.ConnSweep && !up && a.Ups > a.ups
		failed := a.Failures > a.failures || a.short || gone && a.Shorts > a.shorts
		up = up || gone && !failed
		short = short || a.short
		left = left || a.Member && !failed
		c.inFlight += a.InFlight
		if up {
			c.up++
		}
		if a.failing {
			c.failing++
		}
		if failed {
			c.failed++
			c.class = fsm.Worse(fsm.Worse(c.class, a.Class), fsm.ClassNetwork)
		}
		// An address with a permit is untried even if it has failed: a name may stand for
		// several addresses.
		if !up && a.InFlight == 0 && (a.Permits > 0 || a.Asked && !failed) {
			c.pending++
		}
	}
	// Addresses that are in no table count as one that is untried, until the client has said
	// that none is left; so do brokers whose connection has ended and which have not failed
	// since: for the client they are down. Not if a broker ends each connection at once: it must
	// not be tried at the client's own pace.
	if c.up == 0 && c.failed > 0 && !short && e.gate == fsm.ConnOpen && left {
		c.pending++
	}
	c.learnedOnly = c.failed > 0 && configured && !tried
	return c
}

// worst returns the failing address with the most telling class, or nil.
func (e *evidence) worst() *address {
	var w *address
	for _, a := range e.addrs {
		if !a.failing {
			continue
		}
		if w == nil || a.Class.Rank() > w.Class.Rank() || a.Class.Rank() == w.Class.Rank() && a.Addr < w.Addr {
			w = a
		}
	}
	return w
}

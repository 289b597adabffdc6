package broker

import (
	"slices"
	"time"
)

// A Connect is one connection that a node accepted.
type Connect struct {
	Node int
	At   time.Time
}

// Connects returns every connection accepted so far, in the order of time. Connections that were refused are not
// among them, since the kernel refuses without telling anyone: CountingListener is for those.
func (b *Broker) Connects() []Connect {
	var all []Connect
	for _, d := range b.doors {
		d.mu.Lock()
		for _, at := range d.connects {
			all = append(all, Connect{Node: d.node, At: at})
		}
		d.mu.Unlock()
	}
	slices.SortStableFunc(all, func(x, y Connect) int { return x.At.Compare(y.At) })
	return all
}

// Stats are the sums over all nodes.
type Stats struct {
	// Connects is how many connections were accepted.
	Connects int
	// Open is how many of them are open.
	Open int
	// IdleClosed is how many were closed because they were idle.
	IdleClosed int
}

// Stats returns the sums over all nodes.
func (b *Broker) Stats() Stats {
	var s Stats
	for _, d := range b.doors {
		d.mu.Lock()
		s.Connects += len(d.connects)
		s.Open += len(d.conns)
		s.IdleClosed += d.idleClosed
		d.mu.Unlock()
	}
	return s
}

// State returns "up", "down" or "frozen" when all nodes are in that state, else "mixed".
func (b *Broker) State() string {
	var states []state
	for _, d := range b.doors {
		d.mu.Lock()
		states = append(states, d.state)
		d.mu.Unlock()
	}
	if states = slices.Compact(states); len(states) > 1 {
		return "mixed"
	}
	return states[0].String()
}

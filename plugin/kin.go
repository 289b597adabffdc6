package plugin

import (
	"slices"

	"out_kafka_reconnect/plugin/delivery"
)

// After a hot reload a chunk may come to another instance than the one that knows it: its section
// was added, removed or moved, Match was changed, or several sections have equal settings, which
// nothing else tells apart. As long as both have the same destination it makes no difference who
// delivers: so the one that knows the chunk serves it, with its own receipts, records and custody.
// Which of several equal chunks is served where makes no difference either, as they are told apart by
// count only.

// keeper returns the instance that serves a chunk: the section's own, unless only another one knows it.
func (in *Instance) keeper(chunk []byte, tag string) *Instance {
	others := in.otherInstances()
	if len(others) == 0 {
		return in
	}
	g := delivery.GlimpseOf(tag, chunk)
	kin := slices.DeleteFunc(others, func(o *Instance) bool { return !o.mayKnow(g) || !o.cfg.SameDestination(in.cfg) })
	if len(kin) == 0 {
		return in
	}
	key := delivery.KeyOf(tag, chunk)
	for _, o := range slices.Insert(kin, 0, in) {
		if o.knows(key) {
			return o
		}
	}
	return in
}

// mayKnow is a quick look for what can't be known.
func (in *Instance) mayKnow(g delivery.Glimpse) bool { return in.ledger.MayHave(g) || in.line != nil }

// knows tells whether a chunk has a receipt here, or a place in the order.
func (in *Instance) knows(k delivery.Key) bool {
	return in.ledger.Has(k) || in.line != nil && in.line.Has(k)
}

// kin lists the other instances of the same destination.
func (in *Instance) kin() []*Instance {
	return slices.DeleteFunc(in.otherInstances(), func(o *Instance) bool { return !o.cfg.SameDestination(in.cfg) })
}

func (in *Instance) otherInstances() []*Instance {
	if in.registry == nil {
		return nil
	}
	return in.registry.others(in)
}

// retire ends an instance that nobody has claimed. With kin its client finishes first what it has in
// hands, and kin gets to know what it remembers. It returns false if it has come to own a chunk
// meanwhile, which is to be delivered first.
func (in *Instance) retire() bool {
	if len(in.kin()) > 0 {
		in.finish(in.closing)
	}
	if !in.courier.Seal() {
		return false
	}
	in.close(in.bequeath)
	return true
}

// bequeath leaves what the instance remembers to kin, as a process does to the next one: what was
// delivered, wholly or in part. A chunk of which nothing was delivered is for whoever it comes to.
func (in *Instance) bequeath() {
	for _, o := range in.kin() {
		if o.adopt(in) {
			return
		}
	}
}

// adopt takes what an ended instance remembers; false if this one ends itself.
func (in *Instance) adopt(o *Instance) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	o.ledger.MoveTo(in.ledger, o.courier, in.courier)
	return true
}

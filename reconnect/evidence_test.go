package reconnect

import (
	"testing"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// seq is one thing that happens to an evidence: a table, or a reset.
type seq struct {
	what  string // open, shut, sweep, shut sockets, or a table
	stale bool   // the table was read under an older gate
	more  bool   // the client knows addresses that are in no table and untried
	rows  []Broker
	want  counts
}

func row(addr string, f func(*Broker)) Broker {
	b := Broker{Addr: addr}
	if f != nil {
		f(&b)
	}
	return b
}

func TestEvidence(t *testing.T) {
	const net = fsm.ClassNetwork
	up := func(b *Broker) { b.Up, b.Ups, b.Attempts = 1, 1, 1 }
	lost := func(b *Broker) { b.Ups, b.Attempts = 1, 1 }
	lostFailed := func(b *Broker) { b.Ups, b.Attempts, b.Failures, b.Class = 1, 2, 1, net }
	failed := func(b *Broker) { b.Attempts, b.Failures, b.Class, b.Asked = 1, 1, net, true }
	member := func(f func(*Broker)) func(*Broker) { return func(b *Broker) { f(b); b.Member = true } }
	for _, tc := range []struct {
		name string
		seq  []seq
	}{
		{"an attempt, then up, then lost, then the next attempt fails", []seq{
			{what: "open"},
			{rows: []Broker{row("a", func(b *Broker) { b.InFlight, b.Attempts = 1, 1 })}, want: counts{inFlight: 1}},
			{rows: []Broker{row("a", up)}, want: counts{up: 1}},
			{rows: []Broker{row("a", lost)}, want: counts{}},
			{rows: []Broker{row("a", lostFailed)}, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"untried addresses that are in no table count until the client has said that none is left", []seq{
			{what: "open"},
			{rows: []Broker{row("a", up)}, more: true, want: counts{up: 1}},
			{rows: []Broker{row("a", lost)}, more: true, want: counts{}},
			{rows: []Broker{row("a", lostFailed)}, more: true, want: counts{failed: 1, failing: 1, pending: 1, class: net}},
			{rows: []Broker{row("a", lostFailed)}, stale: true, want: counts{failing: 1}},
			{rows: []Broker{row("a", func(b *Broker) { lostFailed(b); b.Failures, b.Attempts = 2, 3 })}, more: true, want: counts{failed: 1, failing: 1, pending: 1, class: net}},
			{rows: []Broker{row("a", func(b *Broker) { lostFailed(b); b.Failures, b.Attempts = 2, 3 })}, want: counts{failed: 1, failing: 1, class: net}},
			{what: "sweep"}, // asks those too that were in none
			{rows: []Broker{row("a", func(b *Broker) { lostFailed(b); b.Failures, b.Attempts = 3, 4 })}, more: true, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"a broker that was connected once counts until it fails, though the client takes it for down", []seq{
			{what: "open"},
			{rows: []Broker{row("a", up), row("b", member(lost)), row("name", lost)}, want: counts{up: 1}},
			{rows: []Broker{row("a", lostFailed), row("b", member(lost)), row("name", lost)}, want: counts{failed: 1, failing: 1, pending: 1, class: net}},
			{rows: []Broker{row("a", lostFailed), row("b", member(lostFailed)), row("name", lost)}, want: counts{failed: 2, failing: 2, class: net}},
		}},
		{"failures from before a broker was up do not count", []seq{
			{what: "open"},
			{rows: []Broker{row("a", failed), row("b", func(b *Broker) { b.Asked = true })}, want: counts{failed: 1, failing: 1, pending: 1, class: net}},
			{rows: []Broker{row("a", failed), row("b", up)}, want: counts{up: 1, failing: 1, pending: 1}},
			{rows: []Broker{row("a", failed), row("b", lost)}, want: counts{failing: 1, pending: 1}},
		}},
		{"a burst in one table: up, lost and failed since", []seq{
			{what: "open"},
			{rows: []Broker{row("a", lostFailed)}, want: counts{failing: 1}},
			{rows: []Broker{row("a", func(b *Broker) { lostFailed(b); b.Failures, b.Attempts = 2, 3 })}, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"the sweep begins to count anew", []seq{
			{what: "open"},
			{rows: []Broker{row("a", failed)}, want: counts{failed: 1, failing: 1, class: net}},
			{what: "sweep"},
			{rows: []Broker{row("a", func(b *Broker) { failed(b); b.Permits = 1 })}, want: counts{failing: 1, pending: 1}},
			{rows: []Broker{row("a", func(b *Broker) { failed(b); b.InFlight, b.Attempts = 1, 2 })}, want: counts{failing: 1, inFlight: 1}},
			{rows: []Broker{row("a", func(b *Broker) { failed(b); b.Failures, b.Attempts = 2, 2 })}, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"a gate that opens gives every address a new chance", []seq{
			{what: "open"},
			{rows: []Broker{row("a", failed), row("b", failed)}, want: counts{failed: 2, failing: 2, class: net}},
			{what: "shut"},
			{rows: []Broker{row("a", failed), row("b", failed)}, want: counts{failing: 2, pending: 2}},
			{what: "sweep"},
			{rows: []Broker{row("a", failed), row("b", func(b *Broker) { failed(b); b.Up, b.Ups = 1, 1 })}, want: counts{up: 1, failing: 1, pending: 1}},
			{what: "open"},
			{rows: []Broker{row("a", failed), row("b", func(b *Broker) { failed(b); b.Up, b.Ups = 1, 1 })}, want: counts{up: 1, pending: 1}},
			{rows: []Broker{row("a", func(b *Broker) { failed(b); b.Failures = 2 }), row("b", func(b *Broker) { failed(b); b.Up, b.Ups = 1, 1 })}, want: counts{up: 1, failing: 1, pending: 1}},
		}},
		{"a table from before the sweep does not fail it", []seq{
			{what: "open"},
			{what: "sweep"},
			{stale: true, rows: []Broker{row("a", failed)}, want: counts{failing: 1, pending: 1}},
			{rows: []Broker{row("a", func(b *Broker) { failed(b); b.Permits = 1 })}, want: counts{failing: 1, pending: 1}},
		}},
		{"a table from before the sweep may tell of a broker that is up", []seq{
			{what: "sweep"},
			{stale: true, rows: []Broker{row("a", up)}, want: counts{up: 1}},
		}},
		{"in a sweep a connection that the broker ended at once is a failed attempt", []seq{
			{what: "sweep"},
			{rows: []Broker{row("a", func(b *Broker) { lost(b); b.Shorts = 1 })}, want: counts{failed: 1, class: net}},
		}},
		{"in a sweep a connection that the client itself ended was up: it drops a bootstrap handle once it knows the cluster", []seq{
			{what: "sweep"},
			{rows: []Broker{row("a", func(b *Broker) { b.InFlight, b.Attempts = 1, 1 })}, want: counts{inFlight: 1}},
			{rows: []Broker{row("a", lost)}, want: counts{up: 1}},
		}},
		{"an address of several keeps its sweep going", []seq{
			{what: "sweep"},
			{rows: []Broker{row("a", func(b *Broker) { failed(b); b.Permits = 1 })}, want: counts{failed: 1, failing: 1, pending: 1, class: net}},
			{rows: []Broker{row("a", func(b *Broker) { failed(b); b.Failures = 2 })}, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"sockets that were shut are not up, however long the table takes", []seq{
			{what: "open"},
			{rows: []Broker{row("a", up), row("b", nil)}, want: counts{up: 1}},
			{what: "shut sockets"},
			{rows: []Broker{row("a", up), row("b", nil)}, want: counts{}},
			{rows: []Broker{row("a", up), row("b", up)}, want: counts{up: 1}},
			{rows: []Broker{row("a", lost), row("b", nil)}, want: counts{}},
			{rows: []Broker{row("a", func(b *Broker) { b.Up, b.Ups = 1, 2 })}, want: counts{up: 1}},
		}},
		{"sockets that were shut, and a newer connection in the same table", []seq{
			{what: "open"},
			{rows: []Broker{row("a", up)}, want: counts{up: 1}},
			{what: "shut sockets"},
			{rows: []Broker{row("a", func(b *Broker) { b.Up, b.Ups = 1, 2 })}, want: counts{up: 1}},
		}},
		{"attempts that were cut with the sockets have not failed", []seq{
			{what: "open"},
			{rows: []Broker{row("a", func(b *Broker) { b.InFlight, b.Attempts = 1, 1 })}, want: counts{inFlight: 1}},
			{what: "shut sockets"},
			{rows: []Broker{row("a", func(b *Broker) { b.Attempts, b.Failures, b.Class = 1, 1, net })}, want: counts{}},
			{rows: []Broker{row("a", func(b *Broker) { b.Attempts, b.Failures, b.Class = 2, 2, net })}, want: counts{failed: 1, failing: 1, class: net}},
			{what: "shut sockets"},
			{rows: []Broker{row("a", func(b *Broker) { b.Attempts, b.Failures, b.Class = 3, 3, net })}, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"an attempt that escaped the cut does not excuse a later failure", []seq{
			{what: "open"},
			{rows: []Broker{row("a", func(b *Broker) { b.InFlight, b.Attempts = 1, 1 })}, want: counts{inFlight: 1}},
			{what: "shut sockets"},
			{rows: []Broker{row("a", up)}, want: counts{up: 1}},
			{rows: []Broker{row("a", lost)}, want: counts{}},
			{rows: []Broker{row("a", lostFailed)}, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"the second connection in a row that ends at once is a failed attempt", []seq{
			{what: "open"},
			{rows: []Broker{row("a", up)}, want: counts{up: 1}},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts = 1, 1 })}, want: counts{}},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts, b.Up = 2, 1, 1 })}, want: counts{up: 1}},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts = 2, 2 })}, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"the same within one table", []seq{
			{what: "open"},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts = 1, 1 })}, want: counts{}},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts = 2, 2 })}, want: counts{failed: 1, failing: 1, class: net}},
		}},
		{"a connection that lasted ends the row", []seq{
			{what: "open"},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts = 1, 1 })}, want: counts{}},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts, b.Up = 2, 1, 1 })}, want: counts{up: 1}},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts = 2, 1 })}, want: counts{}},
			{rows: []Broker{row("a", func(b *Broker) { b.Ups, b.Shorts = 3, 2 })}, want: counts{}},
		}},
		{"an address that is gone counts for nothing", []seq{
			{what: "open"},
			{rows: []Broker{row("a", failed), row("b", up)}, want: counts{up: 1, failing: 1, pending: 1}},
			{rows: []Broker{row("b", lost)}, want: counts{}},
		}},
		{"the most telling class is told", []seq{
			{what: "open"},
			{rows: []Broker{row("a", failed), row("b", func(b *Broker) { failed(b); b.Class = fsm.ClassAuthentication })}, want: counts{failed: 2, failing: 2, class: fsm.ClassAuthentication}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e evidence
			e.clear()
			for i, s := range tc.seq {
				switch s.what {
				case "open":
					e.gateSet(fsm.ConnOpen)
				case "shut":
					e.gateSet(fsm.ConnShut)
				case "sweep":
					e.gateSet(fsm.ConnSweep)
				case "shut sockets":
					e.socketsShut()
				default:
					epoch := e.epoch
					if s.stale {
						epoch--
					}
					if got := e.update(s.rows, epoch, !s.more); got != s.want {
						t.Errorf("table %d: %+v, want %+v", i, got, s.want)
					}
				}
			}
		})
	}
}

// Tables hold the totals of one client; the sum must neither lose nor count twice when a
// table is repeated, an address goes, or a new client begins at zero.
func TestEvidence_Connects(t *testing.T) {
	var e evidence
	e.clear()
	a := Broker{Addr: "a", Attempts: 3, Failures: 2, Ups: 1}
	b := Broker{Addr: "b", Attempts: 5, Failures: 4}
	for i, step := range []struct {
		newClient bool
		table     []Broker
		want      connects
	}{
		{table: []Broker{a}, want: connects{3, 2, 1}},
		{table: []Broker{a, b}, want: connects{8, 6, 1}},
		{table: []Broker{a, b}, want: connects{8, 6, 1}},
		{table: []Broker{{Addr: "a", Attempts: 4, Failures: 2, Ups: 2}}, want: connects{9, 6, 2}},
		{newClient: true, table: []Broker{a}, want: connects{12, 8, 3}},
		{newClient: true, table: nil, want: connects{12, 8, 3}},
	} {
		if step.newClient {
			e.clear()
		}
		e.update(step.table, e.epoch, false)
		if e.connects != step.want {
			t.Errorf("table %d: %+v, want %+v", i, e.connects, step.want)
		}
	}
}

func TestEvidence_Worst(t *testing.T) {
	var e evidence
	e.clear()
	if e.worst() != nil {
		t.Error("worst of nothing")
	}
	e.update([]Broker{
		{Addr: "b", Failures: 1, Class: fsm.ClassNetwork, Text: "refused"},
		{Addr: "a", Failures: 1, Class: fsm.ClassNetwork, Text: "refused"},
		{Addr: "c", Up: 1, Class: fsm.ClassAuthentication},
	}, 0, false)
	if w := e.worst(); w == nil || w.Addr != "a" {
		t.Errorf("worst is %+v, want a", w)
	}
	if got := e.failingAddrs(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("failing %v", got)
	}
	if got := e.snapshots(); len(got) != 3 || got[2].Addr != "c" || got[2].Failing || !got[0].Failing {
		t.Errorf("snapshots %+v", got)
	}
}

func TestPacer(t *testing.T) {
	const ms = time.Millisecond
	newPacer := func() *pacer {
		p := &pacer{min: 100 * ms, max: 400 * ms, rand: func() float64 { return 0 }}
		p.clear()
		return p
	}
	up := Broker{Addr: "up", Up: 1, Ups: 1}
	dead := func(failures, shorts uint64) Broker {
		return Broker{Addr: "dead", Failures: failures, Shorts: shorts}
	}
	update := func(t *testing.T, p *pacer, at time.Duration, open bool, want time.Duration, rows ...Broker) {
		t.Helper()
		holds := p.update(at, rows, open)
		switch {
		case want == 0 && len(holds) > 0:
			t.Errorf("at %s: holds %v, want none", at, holds)
		case want > 0 && (len(holds) != 1 || holds[0] != hold{"dead", want}):
			t.Errorf("at %s: holds %v, want dead for %s", at, holds, want)
		}
	}
	t.Run("each failure waits longer, up to the maximum", func(t *testing.T) {
		p := newPacer()
		update(t, p, 0, true, 75*ms, up, dead(1, 0))
		update(t, p, 1, true, 0, up, dead(1, 0)) // nothing new
		update(t, p, 2, true, 150*ms, up, dead(2, 0))
		update(t, p, 3, true, 300*ms, up, dead(3, 1))
		update(t, p, 4, true, 300*ms, up, dead(3, 2))
		if !p.held(5) || p.held(time.Second) {
			t.Error("held is wrong")
		}
		p.released()
		if p.held(5) {
			t.Error("held after the release")
		}
	})
	t.Run("no other broker is up", func(t *testing.T) {
		update(t, newPacer(), 0, true, 0, Broker{Addr: "up"}, dead(1, 1))
	})
	t.Run("the gate is not open", func(t *testing.T) {
		p := newPacer()
		update(t, p, 0, false, 0, up, dead(1, 0))
		update(t, p, 1, true, 0, up, dead(1, 0)) // it was counted then
	})
	t.Run("a connection that lasts resets", func(t *testing.T) {
		p := newPacer()
		update(t, p, 0, true, 75*ms, up, dead(1, 0))
		update(t, p, 0, true, 0, up, Broker{Addr: "dead", Failures: 1, Up: 1})
		update(t, p, 401*ms, true, 0, up, dead(1, 0))
		update(t, p, 402*ms, true, 75*ms, up, dead(2, 0))
	})
	t.Run("a short one does not", func(t *testing.T) {
		p := newPacer()
		update(t, p, 0, true, 75*ms, up, dead(1, 0))
		update(t, p, 0, true, 0, up, Broker{Addr: "dead", Failures: 1, Up: 1})
		p.acked(200 * ms) // by the other broker, most likely
		update(t, p, 300*ms, true, 150*ms, up, dead(1, 1))
	})
	t.Run("an acknowledgement resets what has been up for a while", func(t *testing.T) {
		p := newPacer()
		p.max = time.Minute
		update(t, p, 0, true, 75*ms, up, dead(1, 0))
		update(t, p, 0, true, 0, up, Broker{Addr: "dead", Failures: 1, Up: 1})
		p.acked(time.Second)
		update(t, p, 2*time.Second, true, 75*ms, up, dead(2, 0))
	})
	t.Run("addresses that are gone are forgotten", func(t *testing.T) {
		p := newPacer()
		update(t, p, 0, true, 75*ms, up, dead(1, 0))
		update(t, p, 1, true, 0, up)
		if len(p.addrs) != 1 {
			t.Errorf("%d addresses left", len(p.addrs))
		}
	})
}

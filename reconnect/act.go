package reconnect

import (
	"errors"
	"fmt"

	"out_kafka_reconnect/reconnect/fsm"
)

// step gives the machine one event and does what follows from it. Actions may raise
// further events, which are stepped after them.
func (l *loop) step(e fsm.Event) {
	l.pending = append(l.pending, e)
	l.settle()
}

// settle steps events until there are none left. Only OpenClient raises one, when it
// fails, and the machine then waits for its backoff, so this ends.
func (l *loop) settle() {
	for len(l.pending) > 0 {
		e := l.pending[0]
		l.pending = l.pending[:copy(l.pending, l.pending[1:])]
		e.At = l.now()
		e.Outstanding = l.s.outstanding.count()
		if e.ClientGen == 0 {
			e.ClientGen = l.machine.Generation()
		}
		l.stepOne(e)
	}
}

func (l *loop) stepOne(e fsm.Event) {
	reason := l.machine.Reason()
	actions := l.machine.Step(e)
	tr, moved := l.machine.Transition()
	if moved {
		l.account(tr)
	}
	l.publish()
	l.applyGate()
	l.perform(actions)
	if l.machine.State() == fsm.Closed {
		l.release()
	}
	if !moved && l.machine.Reason() == reason {
		return
	}
	l.publishStatus()
	l.tell(tr, moved)
}

// account keeps the times of outages.
func (l *loop) account(tr fsm.Transition) {
	l.last, l.since = tr, tr.At
	l.began = false
	switch {
	case tr.To == fsm.AllDown && !l.down:
		l.began = true
		l.down, l.downSince, l.reportAt = true, tr.At, tr.At+reportEvery
		l.refusals = l.s.refusals.Load()
	case l.down && (tr.To == fsm.Up || tr.To == fsm.Degraded || tr.To == fsm.Closed):
		l.down = false
		l.lastDown = tr.At - l.downSince
		l.downTotal += l.lastDown
		l.unconfirmed = true
	case tr.To == fsm.Up || tr.To == fsm.Degraded:
		l.lastDown = 0
	}
}

// tell calls the observer.
func (l *loop) tell(tr fsm.Transition, moved bool) {
	o := l.s.opts.Observer
	r := l.report()
	if !moved {
		o.Reason(r)
		return
	}
	o.Transition(r)
	if tr.To == fsm.AllDown && !r.Began {
		o.Attempt(r)
	}
}

// report collects what observers are told.
func (l *loop) report() Report {
	m := l.machine
	r := Report{
		At: l.now(), From: l.last.From, To: m.State(), Cause: l.last.Cause,
		Reason: m.Reason(), Text: l.text(), Began: l.began,
		Outage: m.Outage(), Resumed: m.Resumed(), Attempt: m.Attempt(), Step: m.BackoffStep(), Wait: m.Wait(),
		Down: l.lastDown, Refused: l.s.refusals.Load() - l.refusals,
		Outstanding: l.s.outstanding.count(), Failing: l.evidence.failingAddrs(),
	}
	if l.down {
		r.Down = r.At - l.downSince
	}
	return r
}

// text is what the client said about the trouble: the more telling of its last error and
// the last failure of an address.
func (l *loop) text() string {
	w := l.evidence.worst()
	if w == nil || l.cause.class.Rank() >= w.Class.Rank() && l.cause.text != "" {
		return l.cause.text
	}
	if w.Text == "" {
		return w.Addr + ": connection closed at once"
	}
	return w.Addr + ": " + w.Text
}

// publish replaces the view that flushes see, if it differs.
func (l *loop) publish() {
	state := l.machine.State()
	admit := l.machine.Gate() == fsm.Admit && l.client != nil
	if admit && l.released {
		l.refused, l.released = make(chan struct{}), false
	}
	old := l.s.view.Load()
	if old != nil && old.state == state && old.admit == admit && old.client == l.client && old.refused == l.refused {
		return
	}
	wasOpen := old != nil && old.admit
	if wasOpen && !admit {
		l.opened = make(chan struct{})
	}
	l.s.view.Store(&view{state: state, admit: admit, client: l.client, refused: l.refused, opened: l.opened})
	if admit && !wasOpen {
		close(l.opened)
	}
}

// release lets waiting flushes go. The view refuses by now, so that whoever takes the
// channel after this finds it closed.
func (l *loop) release() {
	if !l.released {
		close(l.refused)
		l.released = true
	}
}

// applyGate tells the client the connection gate, when the machine has set it anew.
func (l *loop) applyGate() {
	if l.client != nil && l.epoch != l.machine.GateEpoch() {
		l.setGate()
	}
}

// setGate tells the client the connection gate, which begins a new count of attempts.
func (l *loop) setGate() {
	g := l.machine.ConnGate()
	l.epoch = l.machine.GateEpoch()
	l.client.SetGate(g)
	l.evidence.gateSet(g)
	l.pacer.released()
}

// perform does the actions of a step, in order.
func (l *loop) perform(actions []fsm.Action) {
	for _, a := range actions {
		switch a.Kind {
		case fsm.OpenClient:
			l.openClient(a.ClientGen)
		case fsm.CloseClient:
			l.closeClient()
		case fsm.ShutSockets:
			l.evidence.socketsShut()
			l.up = 0
			l.client.ShutSockets()
		case fsm.StartHeartbeat:
			l.startHeartbeat(a)
		case fsm.FailOutstanding:
			l.release()
		}
	}
}

func (l *loop) openClient(gen int) {
	l.evidence.clear()
	l.pacer.clear()
	l.up, l.brokers, l.cause = 0, nil, errorText{}
	c, err := l.s.opts.Open(gen, l.s.sink(gen))
	if err != nil {
		l.cause = errorText{fsm.ClassFatal, err.Error()}
		l.pending = append(l.pending, fsm.Event{Kind: fsm.ClientFatal, ClientGen: gen, Class: fsm.ClassFatal})
		return
	}
	l.client = &handle{Client: c, gen: gen}
	l.setGate()
	l.publish()
}

// closeClient releases the client in the background: that may take a while, and the
// client's own goroutine may be waiting to tell us something.
func (l *loop) closeClient() {
	h := l.client
	if h == nil { // it could not be opened
		return
	}
	l.client = nil
	l.publish()
	l.jobs++
	go func() {
		err := guard(func() error { return h.close(l.s.opts.CloseTimeout) })
		select {
		case l.s.released <- err:
		case <-l.s.done:
		}
	}()
}

func (l *loop) startHeartbeat(a fsm.Action) {
	h := l.client
	timeout := l.machine.Config().KeepaliveTimeout
	e := fsm.Event{Kind: fsm.HeartbeatOK, ClientGen: a.ClientGen, Attempt: a.Attempt}
	l.jobs++
	go func() {
		if err := guard(func() error { return h.Heartbeat(timeout) }); err != nil {
			e.Kind = fsm.HeartbeatFailed
		}
		select {
		case l.s.heartbeat <- e:
		case <-l.s.done:
		}
	}()
}

// errPanic is what a client's panic becomes.
var errPanic = errors.New("reconnect: panic in the client")

// guard turns a panic into an error: it must not end the host program.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return f()
}

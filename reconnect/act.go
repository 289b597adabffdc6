package reconnect

import (
	"errors"
	"fmt"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// step gives the machine one event and does what follows from it. Actions may raise
// further events, which are stepped after them.
func (l *loop) step(e fsm.Event) {
	l.pending = append(l.pending, e)
	l.settle()
}

// settle steps events until there are none left. OpenClient raises one when it fails, and
// the machine then waits for its backoff; CheckSilence raises one, which raises no other. So
// this ends.
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
	reason, stuck := l.machine.Reason(), l.machine.Stuck()
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
		l.hurry.Do(func() { close(l.s.hurry) })
	}
	if l.machine.Stuck() != stuck {
		l.publishStatus()
	}
	if l.machine.Stuck() && (!stuck || e.Kind == fsm.HeartbeatOK) {
		l.s.opts.Observer.Stuck(l.report())
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
		l.checkFiles()
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
		Generation: m.Generation(), Renewal: l.renewal,
	}
	if m.Stuck() {
		r.Text = l.trouble
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
	// Only one client makes the attempts of a sweep.
	if g == fsm.ConnSweep {
		g = fsm.ConnShut
	}
	for h := range l.retired {
		h.SetGate(g)
	}
}

// perform does the actions of a step, in order.
func (l *loop) perform(actions []fsm.Action) {
	for _, a := range actions {
		switch a.Kind {
		case fsm.OpenClient:
			l.openClient(a)
		case fsm.RetireClient:
			l.retireClient()
		case fsm.CheckSilence:
			l.checkSilence(a)
		case fsm.ShutSilent:
			l.shutSilent(a.After)
		case fsm.CloseClient:
			l.closeClient()
		case fsm.ShutSockets:
			l.evidence.socketsShut()
			l.up = 0
			if l.client != nil { // it was opened in this very step, and could not be
				l.client.ShutSockets()
			}
		case fsm.StartHeartbeat:
			l.startHeartbeat(a)
		case fsm.FailOutstanding:
			l.release()
		}
	}
}

func (l *loop) openClient(a fsm.Action) {
	gen := a.ClientGen
	was := l.text()
	l.evidence.clear()
	l.pacer.clear()
	l.up, l.brokers, l.cause = 0, nil, errorText{}
	c, err := l.s.opts.Open(gen, l.s.sink(gen))
	if err != nil {
		l.cause = errorText{fsm.ClassFatal, err.Error()}
		l.pending = append(l.pending, fsm.Event{Kind: fsm.ClientFatal, ClientGen: gen, Class: fsm.ClassFatal})
		return
	}
	l.client = newHandle(c, gen)
	l.setGate()
	l.publish()
	l.filesAt = l.now() + filesEvery
	if a.Why != fsm.RenewNone {
		l.renewal = a.Why
		r := l.report()
		r.Text = was
		if a.Why == fsm.RenewFiles {
			r.Text = l.files
		}
		l.s.opts.Observer.Replaced(r)
	}
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

// retireClient lets the client finish in the background. Flushes go to the next one as
// soon as that is open.
func (l *loop) retireClient() {
	h := l.client
	if h == nil { // it could not be opened
		return
	}
	l.client = nil
	l.retired[h] = true
	l.jobs++
	idle := l.machine.Config().StallTimeout
	go func() {
		err := guard(func() error { return h.retire(idle, l.s.opts.CloseTimeout, l.s.hurry) })
		select {
		case l.s.retired <- retirement{h, err}:
		case <-l.s.done:
		}
	}()
}

// retirement tells that a client was let go.
type retirement struct {
	h   *handle
	err error
}

// checkSilence tells the machine which connections are silent.
func (l *loop) checkSilence(a fsm.Action) {
	if l.client == nil {
		return
	}
	s := l.client.Silence(a.After)
	l.pending = append(l.pending, fsm.Event{
		Kind: fsm.SilenceChecked, ClientGen: a.ClientGen, Attempt: a.Attempt,
		Ready: s.Ready, Silent: s.Silent, Suspect: s.Suspect, Alive: s.Alive, Next: s.Next,
	})
}

// lookForSilence shuts single silent connections while others answer: acknowledgements of
// those keep the machine from looking. Like the pacing of single addresses that is no
// matter of the machine.
func (l *loop) lookForSilence() {
	after := l.machine.Config().StallTimeout
	l.lookAt = l.now() + after/looksPerStall
	if l.client == nil || l.s.outstanding.count() == 0 || l.machine.ConnGate() != fsm.ConnOpen {
		return
	}
	if s := l.client.Silence(after); s.Silent > 0 && s.Alive > 0 {
		l.shutSilent(after)
	}
}

// looksPerStall is how often lookForSilence looks in the time after which a connection is
// silent: a silent one is found at most a quarter of that time later.
const looksPerStall = 4

func (l *loop) shutSilent(after time.Duration) {
	l.client.ShutSilent(after)
	l.s.opts.Logger.Info("silent connections were shut, others answer")
}

const (
	// filesEvery is the time between two looks at the files while all is well: an
	// orchestrator takes about a minute to spread a new secret, and the old one is good for
	// longer. While the brokers are down each failed round looks too, as the change may be
	// the repair, but not more often than filesPause.
	filesEvery = 30 * time.Second
	filesPause = time.Second
)

// checkFiles looks in the background whether what the client was opened with has changed.
func (l *loop) checkFiles() {
	h := l.client
	if h == nil || l.checking || l.now() < l.filesAt-filesEvery+filesPause {
		return
	}
	l.checking = true
	l.filesAt = l.now() + filesEvery
	l.jobs++
	go func() {
		look := look{gen: h.gen}
		look.err = guard(func() (err error) {
			look.files, err = h.Changed()
			return err
		})
		select {
		case l.s.looks <- look:
		case <-l.s.done:
		}
	}()
}

// look is what checkFiles has found.
type look struct {
	gen   int
	files string
	err   error
}

// filesLooked acts on it. A file that is only half written makes no client: the one that
// is open stays in service, and the next look sees the rest.
func (l *loop) filesLooked(k look) {
	l.checking = false
	switch {
	case k.err != nil:
		if text := k.err.Error(); text != l.badFiles {
			l.badFiles = text
			l.s.opts.Logger.Warn("files have changed, but no client can be opened with them; the one that is open stays", "err", k.err)
		}
	case k.files != "":
		l.badFiles, l.files = "", k.files
		l.step(fsm.Event{Kind: fsm.RenewRequested, ClientGen: k.gen})
	default:
		l.badFiles = ""
	}
}

func (l *loop) startHeartbeat(a fsm.Action) {
	h := l.client
	timeout := l.machine.Config().KeepaliveTimeout
	e := fsm.Event{Kind: fsm.HeartbeatOK, ClientGen: a.ClientGen, Attempt: a.Attempt}
	l.jobs++
	go func() {
		b := beat{Event: e}
		if err := guard(func() (err error) {
			b.trouble, err = h.Heartbeat(timeout)
			return err
		}); err != nil {
			b.Kind = fsm.HeartbeatFailed
		}
		b.Trouble = b.trouble != ""
		select {
		case l.s.heartbeat <- b:
		case <-l.s.done:
		}
	}()
}

// beat is the answer to a heartbeat, with the words that the machine does not need.
type beat struct {
	fsm.Event
	trouble string
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

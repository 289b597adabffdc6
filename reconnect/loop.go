package reconnect

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

const (
	// reportEvery is the time between two calls of Observer.StillDown.
	reportEvery = time.Minute
	// closeGrace is what a client may take beyond the time it was given.
	closeGrace = time.Second
)

// loop is the goroutine of a supervisor. It owns everything in here: one inbox of
// events, one timer, the machine. It never waits for a client, except while opening one.
type loop struct {
	s       *Supervisor
	machine *fsm.Machine
	timer   *time.Timer

	client   *handle // nil when none is open
	epoch    int     // the machine's GateEpoch that the client was told
	evidence evidence
	pacer    pacer
	pending  []fsm.Event // raised by actions, stepped after them
	retired  map[*handle]bool
	hurry    sync.Once // closes Supervisor.hurry

	refused  chan struct{} // of the current view
	released bool          // refused is closed
	opened   chan struct{} // of the current view, closed while it admits

	lookAt   time.Duration // when to look for single silent connections
	checking bool          // a look at the client's files is under way
	filesAt  time.Duration // when the next is due
	files    string        // what the last one found changed
	badFiles string        // the last thing told of files that make no client
	trouble  string        // what the last heartbeat told
	renewal  fsm.Renewal   // why the client that is open was opened

	// jobs counts goroutines that close a client, look at its files or wait for a heartbeat.
	jobs  int
	endBy time.Duration // when to end although some are left; 0 while not closed

	up      int           // addresses up in the last table
	upSince time.Duration // since when up is above zero; valid while it is
	brokers []BrokerSnapshot
	cause   errorText

	last        fsm.Transition
	since       time.Duration // the last change of state
	down        bool          // an outage lasts
	began       bool          // with the last change of state
	downSince   time.Duration
	downTotal   time.Duration // of the outages that have ended
	lastDown    time.Duration // how long the last outage was
	refusals    uint64        // the count when it began
	unconfirmed bool          // nothing was acknowledged since the last outage
	reportAt    time.Duration // the next StillDown; valid while down
}

// errorText is the last error that the client reported while no broker was up.
type errorText struct {
	class fsm.Class
	text  string
}

func newLoop(s *Supervisor) *loop {
	l := &loop{
		s:       s,
		timer:   time.NewTimer(time.Hour),
		refused: make(chan struct{}),
		opened:  make(chan struct{}),
		retired: map[*handle]bool{},
	}
	machine, actions := fsm.New(s.opts.Config, 0)
	l.machine = machine
	cfg := machine.Config()
	l.pacer = pacer{min: cfg.BackoffMin, max: cfg.BackoffMax, rand: cfg.Rand}
	l.evidence.clear()
	l.pacer.clear()
	l.publish()
	l.perform(actions)
	l.publishStatus()
	l.settle()
	l.arm()
	return l
}

func (l *loop) now() time.Duration { return time.Since(l.s.start) }

// run takes events until the machine is closed and nothing of it is left.
func (l *loop) run() {
	defer l.end()
	drain, abandon := l.s.drain, l.s.abandon
	for !l.finished() {
		select {
		case n := <-l.s.inbox:
			l.notice(n)
		case <-l.s.chunks:
			l.step(fsm.Event{Kind: fsm.ChunkArrived})
		case <-l.s.outstanding.none:
			l.step(fsm.Event{Kind: fsm.Reported})
		case b := <-l.s.heartbeat:
			l.jobs--
			l.trouble = b.trouble
			l.step(b.Event)
		case k := <-l.s.looks:
			l.jobs--
			l.filesLooked(k)
		case r := <-l.s.retired:
			delete(l.retired, r.h)
			l.clientReleased(r.err)
		case err := <-l.s.released:
			l.clientReleased(err)
		case <-l.timer.C:
			l.tick()
		case <-drain:
			drain = nil
			l.step(fsm.Event{Kind: fsm.DrainRequested})
		case <-abandon:
			abandon = nil
			if drain != nil { // both were closed at once
				drain = nil
				l.step(fsm.Event{Kind: fsm.DrainRequested})
			}
			l.step(fsm.Event{Kind: fsm.Drained})
		}
		l.arm()
	}
}

// clientReleased notes that a client is gone.
func (l *loop) clientReleased(err error) {
	l.jobs--
	if err != nil {
		l.s.opts.Logger.Warn("closing the client", "err", err)
	}
}

// finished tells whether the loop may end.
func (l *loop) finished() bool {
	if l.machine.State() != fsm.Closed {
		return false
	}
	if l.endBy == 0 {
		l.endBy = l.now() + l.s.opts.CloseTimeout + closeGrace
		l.arm()
	}
	if l.jobs > 0 && l.now() >= l.endBy {
		l.s.opts.Logger.Warn("client not released in time, leaving it behind", "jobs", l.jobs)
		return true
	}
	return l.jobs == 0
}

// end leaves a supervisor behind that refuses everything. A panic must not end the host
// program; it ends this instance and says so.
func (l *loop) end() {
	if p := recover(); p != nil {
		l.s.opts.Logger.Error("panic in the supervisor, flushes are refused from now on",
			"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		if h := l.client; h != nil {
			go func() { _ = guard(func() error { return h.close(l.s.opts.CloseTimeout) }) }()
		}
	}
	l.timer.Stop()
	l.hurry.Do(func() { close(l.s.hurry) })
	l.s.view.Store(&view{state: fsm.Closed, refused: l.refused, opened: make(chan struct{})})
	l.release()
	close(l.s.done)
}

// arm sets the timer to the earliest of what is waited for.
func (l *loop) arm() {
	next, armed := l.machine.Deadline()
	earlier := func(at time.Duration) {
		if !armed || at < next {
			next, armed = at, true
		}
	}
	if l.down {
		earlier(l.reportAt)
	}
	if l.client != nil && !l.checking {
		earlier(l.filesAt)
	}
	if l.client != nil && l.s.outstanding.count() > 0 {
		earlier(l.lookAt)
	}
	if l.endBy > 0 {
		earlier(l.endBy)
	}
	if armed {
		l.timer.Reset(max(0, next-l.now()))
	} else {
		l.timer.Stop()
	}
}

// tick handles the timer. One that fires for a deadline that has moved does nothing.
func (l *loop) tick() {
	now := l.now()
	if at, ok := l.machine.Deadline(); ok && now >= at {
		l.step(fsm.Event{Kind: fsm.DeadlineReached})
	}
	if now >= l.lookAt {
		l.lookForSilence()
	}
	if now >= l.filesAt {
		l.checkFiles()
	}
	if l.down && now >= l.reportAt {
		l.reportAt += reportEvery
		l.s.opts.Observer.StillDown(l.report())
	}
}

// notice translates what a client reports.
func (l *loop) notice(n Notice) {
	if l.client == nil || n.Gen != l.client.gen {
		return // a client that was given up
	}
	switch n.Kind {
	case NoticeBrokers:
		l.brokersChanged(n)
	case NoticeAcked:
		l.pacer.acked(l.now())
		l.step(fsm.Event{Kind: fsm.Acked})
		if l.unconfirmed && l.machine.Gate() == fsm.Admit {
			l.unconfirmed = false
			l.s.opts.Observer.Confirmed(l.report())
		}
	case NoticeReported:
		l.step(fsm.Event{Kind: fsm.Reported})
	case NoticeError:
		l.remember(n)
		l.step(fsm.Event{Kind: fsm.ErrorSeen, Class: n.Class})
	case NoticeFatal:
		l.remember(n)
		l.step(fsm.Event{Kind: fsm.ClientFatal, Class: n.Class})
	}
}

// remember keeps the most telling text while no broker is up.
func (l *loop) remember(n Notice) {
	if n.Class.Rank() > 0 && n.Class.Rank() >= l.cause.class.Rank() && (l.up == 0 || n.Kind == NoticeFatal) {
		l.cause = errorText{n.Class, n.Text}
	}
}

func (l *loop) brokersChanged(n Notice) {
	c := l.evidence.update(n.Brokers, n.Epoch, n.NoneLeft)
	lost := l.up > 0 && c.up == 0
	if l.up == 0 && c.up > 0 {
		l.upSince = l.now()
	}
	l.up = c.up
	if c.up > 0 {
		l.cause = errorText{}
	}
	l.brokers = l.evidence.snapshots()
	epoch := l.machine.GateEpoch()
	l.step(fsm.Event{
		Kind: fsm.BrokersChanged, Epoch: l.machine.GateEpoch(), Class: c.class,
		Up: c.up, Failing: c.failing, Failed: c.failed, Pending: c.pending, InFlight: c.inFlight,
		LearnedOnly: c.learnedOnly,
	})
	// The client itself ends its first connection as soon as it knows the cluster.
	lasted := l.now()-l.upSince >= settledIn
	if state := l.machine.State(); lost && lasted && (state == fsm.Up || state == fsm.Degraded) {
		l.s.opts.Observer.Lost(l.report())
	}
	// What failed under a gate that was just set anew is not held against an address.
	open := l.machine.ConnGate() == fsm.ConnOpen
	l.pace(n.Brokers, lost && open, open && epoch == l.machine.GateEpoch())
	l.publishStatus()
}

// pace holds single addresses back while the gate is open. When the last broker is lost
// every hold ends: each address may be the one that is needed, and a record that comes
// later must not wait either.
func (l *loop) pace(table []Broker, lost, open bool) {
	if l.client == nil {
		return
	}
	now := l.now()
	if lost && l.pacer.held(now) {
		l.setGate()
	}
	for _, h := range l.pacer.update(now, table, open) {
		l.client.Hold(h.addr, h.wait)
	}
}

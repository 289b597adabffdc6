package reconnect

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// Options are what a Supervisor is made of. Open is required.
type Options struct {
	// Config holds the times of the machine and its source of chance.
	Config fsm.Config
	// Open makes a client. It is called on the goroutine of New for the first one and on
	// the loop for the others, and may take some tens of milliseconds.
	Open Opener
	// Observer is told of changes; nil means a LogObserver on Logger.
	Observer Observer
	// Logger takes the few lines of the supervisor itself; nil discards.
	Logger *slog.Logger
	// CloseTimeout bounds the release of a client; default 1s. A Close of the supervisor
	// lasts at most Config.DrainTimeout and this.
	CloseTimeout time.Duration
}

// Supervisor keeps one client connected, or knows why not. Its methods may be called
// from any goroutine.
type Supervisor struct {
	opts  Options
	start time.Time

	view        atomic.Pointer[view]
	status      atomic.Pointer[Snapshot]
	refusals    atomic.Uint64
	outstanding outstanding

	inbox     chan Notice     // from the clients
	chunks    chan struct{}   // a token: at least one chunk was handed over
	heartbeat chan beat       // answers
	looks     chan look       // at the files of a client
	released  chan error      // a client was closed
	retired   chan retirement // the same of one that was allowed to finish
	hurry     chan struct{}   // closed when no client may take its time any more
	drain     chan struct{}   // closed by the first Close
	abandon   chan struct{}   // closed when nobody waits for the drain any longer
	done      chan struct{}   // closed when the loop has ended
	closing   sync.Once       // closes drain
	giveUp    sync.Once       // closes abandon
}

// inboxSize is how many notices may wait while the loop opens a client. A client that
// finds it full waits; it holds no lock then.
const inboxSize = 64

// New opens the first client and starts the loop. No broker has to be reachable, and a
// client that can't be opened is tried again; the error is about the options only.
func New(o Options) (*Supervisor, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if o.Open == nil {
		return nil, errors.New("reconnect: Options.Open is missing")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = NewLogObserver(o.Logger)
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = time.Second
	}
	s := &Supervisor{
		opts:        o,
		start:       time.Now(),
		outstanding: outstanding{none: make(chan struct{}, 1)},
		inbox:       make(chan Notice, inboxSize),
		chunks:      make(chan struct{}, 1),
		heartbeat:   make(chan beat),
		looks:       make(chan look),
		released:    make(chan error),
		retired:     make(chan retirement),
		hurry:       make(chan struct{}),
		drain:       make(chan struct{}),
		abandon:     make(chan struct{}),
		done:        make(chan struct{}),
	}
	l := newLoop(s)
	go l.run()
	return s, nil
}

// Close stops admitting flushes, waits for what is outstanding for at most
// Config.DrainTimeout, closes the client and ends the loop. If ctx has a deadline, the
// wait is cut so that the client can still be closed before it. The error is that of ctx
// when it ends first; the loop then ends on its own within CloseTimeout. Close may be
// called again and from several goroutines.
func (s *Supervisor) Close(ctx context.Context) error {
	s.closing.Do(func() { close(s.drain) })
	if at, ok := ctx.Deadline(); ok {
		cut := time.NewTimer(time.Until(at) - s.opts.CloseTimeout)
		defer cut.Stop()
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
		case <-cut.C:
		}
	} else {
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
		}
	}
	s.giveUp.Do(func() { close(s.abandon) })
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when the loop has ended and nothing of the supervisor is left.
func (s *Supervisor) Done() <-chan struct{} { return s.done }

// sink returns what the client of a generation reports to. It waits while the loop is
// busy, and not at all once the loop has ended.
func (s *Supervisor) sink(gen int) func(Notice) {
	return func(n Notice) {
		n.Gen = gen
		select {
		case s.inbox <- n:
		case <-s.done:
		}
	}
}

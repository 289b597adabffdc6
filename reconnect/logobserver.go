package reconnect

import (
	"context"
	"log/slog"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

const (
	// logEvery is the least time between two lines of the same kind while things stay as
	// they are.
	logEvery = time.Minute
	// logBurst is how many outages in a row are told before that applies to them.
	logBurst = 3
)

// LogObserver writes what an operator should read and nothing else: normal operation is
// silent, an outage has one error line at its start, a warning a minute, and one line at
// its end. A broker that comes and goes all the time gets no more than that either.
type LogObserver struct {
	log *slog.Logger

	// The times are of the last line of a kind; all are owned by the loop.
	resumed, degraded, lost, attempt, stuck stamp
	// untold is when a connection was lost that was not worth a line then: idle ones come
	// and go. If an outage follows it is told after all.
	untold stamp
	// starts are the times of the last lines at the beginning of an outage.
	starts [logBurst]stamp
	// told: the outage that runs has had a line at warning or above, so its end is worth
	// one too.
	told bool
	// quiet counts outages that began and ended without a line.
	quiet int
	step  time.Duration // of the last attempt line
	warn  bool          // the last Degraded was told
}

// stamp is the time of the last line of a kind.
type stamp struct {
	at  time.Duration
	set bool
}

// due tells whether a line may be written at the given time, and notes it if so.
func (s *stamp) due(at time.Duration) bool {
	if s.set && at-s.at < logEvery {
		return false
	}
	s.at, s.set = at, true
	return true
}

// NewLogObserver returns an observer that writes to log; nil discards.
func NewLogObserver(log *slog.Logger) *LogObserver {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &LogObserver{log: log}
}

// Transition logs the beginning and the end of outages, and degraded operation.
func (o *LogObserver) Transition(r Report) {
	switch r.To {
	case fsm.AllDown:
		o.allDown(r)
	case fsm.Up, fsm.Degraded:
		o.up(r)
	case fsm.Connecting:
		switch {
		case r.From == fsm.Idle:
			o.log.Debug("connecting for a new chunk")
		case r.Cause == fsm.SilenceChecked:
			o.log.Info("idle connection is dead, connecting anew")
		}
	case fsm.Idle:
		o.log.Debug("idle, connections closed")
	case fsm.Closed:
		if r.Outstanding > 0 {
			o.log.Warn("closing with records that are not delivered", "outstanding", r.Outstanding, "state", r.From)
		}
	case fsm.Draining:
		o.log.Debug("draining", "outstanding", r.Outstanding)
	case fsm.Probing:
		o.log.Debug("probing", "outage", r.Outage, "attempt", r.Attempt)
	}
}

func (o *LogObserver) allDown(r Report) {
	switch {
	case !r.Began: // a failed attempt, see Attempt
	case r.Resumed:
		if o.resumed.due(r.At) {
			o.told = true
			o.said(r).Warn("all brokers down again, nothing was acknowledged in between",
				"outage", r.Outage, "reason", r.Reason, "next_in", short(r.Wait), "outstanding", r.Outstanding)
		}
	default:
		o.step, o.attempt = 0, stamp{}
		if !o.mayStart(r.At) {
			o.told = false
			o.quiet++
			o.said(r).Debug("all brokers down", "outage", r.Outage, "reason", r.Reason)
			return
		}
		o.told = true
		if o.untold.set {
			o.log.Info("broker connection lost", "ago", short(r.At-o.untold.at))
			o.untold = stamp{}
		}
		args := []any{
			"state", r.To, "outage", r.Outage, "reason", r.Reason,
			"next_in", short(r.Wait), "outstanding", r.Outstanding,
		}
		if o.quiet > 0 {
			args = append(args, "short_outages_before", o.quiet)
			o.quiet = 0
		}
		o.said(r).Error("all brokers down", args...)
	}
}

// mayStart tells whether an outage may have its line: up to logBurst of them within
// logBurst times logEvery.
func (o *LogObserver) mayStart(at time.Duration) bool {
	oldest := &o.starts[0]
	for i := range o.starts {
		if s := &o.starts[i]; !s.set || oldest.set && s.at < oldest.at {
			oldest = s
		}
	}
	if oldest.set && at-oldest.at < logBurst*logEvery {
		return false
	}
	*oldest = stamp{at, true}
	return true
}

func (o *LogObserver) up(r Report) {
	o.untold = stamp{}
	if r.From.Gate() == fsm.Refuse || r.From == fsm.Connecting && r.Down > 0 {
		level := slog.LevelDebug
		if o.told && !r.Resumed {
			level = slog.LevelInfo
		}
		o.log.Log(context.Background(), level, "connected again",
			"outage", r.Outage, "down_s", seconds(r.Down), "attempts", r.Attempt, "refused", r.Refused, "outstanding", r.Outstanding)
	}
	switch {
	case r.To == fsm.Degraded:
		if o.degraded.due(r.At) {
			o.warn = true
			o.said(r).Warn("degraded: some brokers are unreachable", "addr", r.Failing)
		}
	case r.From == fsm.Degraded && o.warn:
		o.warn = false
		o.log.Info("all brokers are reachable again")
	}
}

// Attempt logs each new backoff step, and one attempt a minute once the step stays.
func (o *LogObserver) Attempt(r Report) {
	level := slog.LevelDebug
	if r.Step != o.step {
		o.step, o.attempt = r.Step, stamp{at: r.At, set: true}
		level = slog.LevelInfo
	} else if o.attempt.due(r.At) {
		level = slog.LevelInfo
	}
	if !o.told {
		level = slog.LevelDebug
	}
	o.said(r).Log(context.Background(), level, "reconnect attempt failed",
		"outage", r.Outage, "attempt", r.Attempt, "reason", r.Reason, "next_in", short(r.Wait), "step", r.Step)
}

// Reason logs that the reason is known better.
func (o *LogObserver) Reason(r Report) {
	o.said(r).Warn("reason of the outage is known", "outage", r.Outage, "reason", r.Reason)
}

// StillDown logs how the outage goes on.
func (o *LogObserver) StillDown(r Report) {
	o.told = true
	o.said(r).Warn("all brokers still down",
		"state", r.To, "outage", r.Outage, "reason", r.Reason, "down_s", seconds(r.Down), "attempts", r.Attempt,
		"refused", r.Refused, "outstanding", r.Outstanding)
}

// Confirmed logs that records are delivered again, if the connection came back more than
// once before that.
func (o *LogObserver) Confirmed(r Report) {
	if r.Resumed && o.told {
		o.log.Info("delivering again", "outage", r.Outage, "attempts", r.Attempt)
	}
	o.told = false
}

// Lost logs a lost connection that somebody may be waiting for.
func (o *LogObserver) Lost(r Report) {
	if r.Outstanding > 0 && o.lost.due(r.At) {
		o.untold = stamp{}
		o.log.Info("broker connection lost", "state", r.To, "outstanding", r.Outstanding)
		return
	}
	o.untold = stamp{r.At, true}
	o.log.Debug("broker connection lost", "state", r.To)
}

// Stuck logs once a minute that records wait although the brokers answer.
func (o *LogObserver) Stuck(r Report) {
	if o.stuck.due(r.At) {
		o.why(r).Warn("records wait although the brokers answer", "outstanding", r.Outstanding)
	}
}

// Replaced logs every new client.
func (o *LogObserver) Replaced(r Report) {
	o.why(r).Info("client replaced", "because", r.Renewal, "generation", r.Generation)
}

// said adds what the client said, if it said anything.
func (o *LogObserver) said(r Report) *slog.Logger { return o.with("err", r.Text) }

// why adds what explains the line and is no error of the client.
func (o *LogObserver) why(r Report) *slog.Logger { return o.with("why", r.Text) }

func (o *LogObserver) with(key, text string) *slog.Logger {
	if text == "" {
		return o.log
	}
	return o.log.With(key, text)
}

// short rounds a wait to what is worth reading.
func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// seconds rounds to a tenth, which is enough to read.
func seconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Millisecond)) / float64(time.Second)
}

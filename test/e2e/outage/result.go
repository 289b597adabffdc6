package outage

import (
	"fmt"
	"strings"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// A Result is what a run has shown. Times are in seconds.
type Result struct {
	Run      string `json:"run"`
	Host     string `json:"host"`
	Accepted int    `json:"accepted"`
	InTopic  int    `json:"in_topic"`
	Lost     int    `json:"lost"`
	Doubled  int    `json:"doubled"`
	// DoubledAllowed is the bar: what was in flight when the agent ended.
	DoubledAllowed int `json:"doubled_allowed"`
	// Late is how many stand behind a larger number of their partition, LateInChunk of their chunk. Unless Exact that is
	// the most that it can be.
	Late        int  `json:"late"`
	LateInChunk int  `json:"late_in_chunk"`
	Exact       bool `json:"late_exact"`
	// First is the time from ready to the first delivery, of the worst outage, and FirstAllowed its bar. It is below 0
	// when records were written before Kafka was found to be ready as a whole.
	First        float64 `json:"first_delivery_s"`
	FirstAllowed float64 `json:"first_delivery_allowed_s"`
	// Drained is the time from ready until the last record was written that had been logged before, of the worst outage.
	Drained float64 `json:"drained_s"`
	// Down is how long the plugin was in an outage, Attempts how many connection attempts it told of in it.
	Down            float64 `json:"down_s"`
	Attempts        int     `json:"attempts"`
	AttemptsAllowed int     `json:"attempts_allowed"`
	// Connects is what the proxies have counted while the plugin was in an outage; -1 without proxies.
	Connects int `json:"connects"`
	// Lines is how many warnings and errors the plugin wrote.
	Lines   int     `json:"warning_and_error_lines"`
	PeakRSS float64 `json:"peak_rss_mib"`
	// Life is the longest stop or reload of the agent.
	Life float64 `json:"longest_stop_or_reload_s"`
	// Took is how long the run was.
	Took float64 `json:"took_s"`
	// Failures are the bars that were not kept.
	Failures []string `json:"failures,omitempty"`

	picture picture
	worst   time.Time // when the outage that First is about was over
}

// The bars that hold for all runs.
const (
	linesAllowed = 20
	backoffMin   = 100 * time.Millisecond
	backoffMax   = 5 * time.Second
	// firstAfterWait is how long after the wait that was running a delivery may come, firstAlways after any.
	firstAfterWait = time.Second
	firstAlways    = backoffMax + 2*time.Second
	flushEvery     = time.Second
	// unheard is how long the host may not know that a record was written: it hears of it at the retry of the chunk,
	// which is due at most scheduler.cap (3 s) after a flush that comes within a second and waits a little.
	unheard = 5 * time.Second
	// unanswered is the same for a fault: what was written just before it has had no answer.
	unanswered = time.Second
	// mustStop is how long a fault is that must be seen to stop the deliveries for half of its time.
	mustStop = 5 * time.Second
)

// measure makes the figures.
func (w *world) measure(h *harvest) *Result {
	end := time.Now()
	messages := w.host.LogLines().Messages(0, "") // a reload may count the instances on
	appended := h.firstCopies()
	spans := timeline(messages, w.gone, appended, w.began, end)
	r := &Result{
		Run: w.run.Name, Accepted: w.tally.Accepted(), InTopic: h.result.Records,
		Lost: len(h.result.Lost), Doubled: len(h.result.Doubled), Late: len(h.result.Late),
		Connects: -1, Took: seconds(end.Sub(w.began)),
	}
	r.LateInChunk, r.Exact = h.lateInChunk(w.tally.ChunkEnds(), flushEvery)
	if w.run.Bars.InFlight {
		r.DoubledAllowed = h.inFlight(w.gone, w.outages)
	}
	r.Attempts, r.AttemptsAllowed = attempts(messages, end, backoffMin, backoffMax)
	for _, m := range messages {
		if m.Level == "warn" || m.Level == "error" {
			r.Lines++
		}
	}
	for _, s := range spans {
		if s.state == down {
			r.Down += seconds(s.to.Sub(s.from))
		}
	}
	if w.run.Proxied {
		r.Connects = 0
		for _, s := range spans {
			if s.state == down {
				for _, p := range w.arena.proxies {
					r.Connects += p.connects.between(s.from, s.to)
				}
			}
		}
	}
	for _, l := range w.lives {
		r.Life = max(r.Life, seconds(l.took))
	}
	w.measureReturns(r, h, messages)
	r.picture = w.paint(r, h, spans, end)
	return r
}

// measureReturns finds the outage with the worst return.
func (w *world) measureReturns(r *Result, h *harvest, messages []rig.Message) {
	worst := 0.0
	for i, o := range w.outages {
		var first, drained time.Time
		until := time.Now()
		if i+1 < len(w.outages) {
			until = w.outages[i+1].Fault
		}
		for _, d := range h.deliveries {
			if !d.appended.Before(o.Back) && d.appended.Before(until) && (first.IsZero() || d.appended.Before(first)) {
				first = d.appended
			}
			if d.logged.Before(o.Ready) && d.appended.After(drained) {
				drained = d.appended
			}
		}
		limit := firstAlways
		if wait, outage := waiting(messages, o.Ready); outage {
			limit = min(limit, wait+firstAfterWait)
		}
		took := until.Sub(o.Ready)
		if !first.IsZero() {
			took = first.Sub(o.Ready)
		}
		if over := seconds(took - limit); i == 0 || over > worst {
			worst, r.First, r.FirstAllowed, r.worst = over, seconds(took), seconds(limit), o.Ready
		}
		r.Drained = max(r.Drained, seconds(drained.Sub(o.Ready)))
	}
}

// judge compares the figures with the bars.
func (w *world) judge(r *Result, h *harvest) {
	fail := func(format string, args ...any) { r.Failures = append(r.Failures, fmt.Sprintf(format, args...)) }
	if r.Lost > 0 {
		fail("%d records are lost, none may be", r.Lost)
	}
	if r.Doubled > r.DoubledAllowed {
		fail("%d records are doubled, %d may be; %s", r.Doubled, r.DoubledAllowed, h.copies())
	}
	if h.result.Stray+h.result.Unreadables > 0 {
		fail("%d records were not expected, %d have no number", h.result.Stray, h.result.Unreadables)
	}
	if r.First > r.FirstAllowed {
		fail("the first delivery came %.2f s after ready (at %s), %.2f s are allowed", r.First, r.worst.Format("15:04:05.000"), r.FirstAllowed)
	}
	for _, o := range w.outages {
		if pause, stopped := h.pause(o); !stopped && !w.run.Bars.GoesOn {
			fail("the fault at %s stopped nothing: the longest time without a delivery was %.2f s", o.Fault.Format("15:04:05.000"), seconds(pause))
		}
	}
	if r.Attempts > r.AttemptsAllowed {
		fail("%d connection attempts, the schedule allows %d in %.1f s", r.Attempts, r.AttemptsAllowed, r.Down)
	}
	if allowed := r.AttemptsAllowed * len(w.arena.proxies); r.Connects > allowed {
		fail("%d connects were counted in an outage, the schedule allows %d", r.Connects, allowed)
	}
	if r.Lines > linesAllowed {
		fail("%d warnings and errors, %d are allowed", r.Lines, linesAllowed)
	}
	for _, l := range w.lives {
		if limit := lifeWithin[l.what]; l.took > limit {
			fail("a %s took %.1f s, %s are allowed", l.what, seconds(l.took), limit)
		}
	}
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// String is one line for the terminal.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d logged, %d lost, %d doubled, %d late; first delivery %.2f s (≤ %.2f), drained %.2f s after ready; ",
		r.Accepted, r.Lost, r.Doubled, r.Late, r.First, r.FirstAllowed, r.Drained)
	fmt.Fprintf(&b, "down %.1f s, %d attempts (≤ %d), %d lines, %.0f MiB", r.Down, r.Attempts, r.AttemptsAllowed, r.Lines, r.PeakRSS)
	return b.String()
}

package delivery

import (
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// Receipt follows the messages of one chunk over any number of attempts. Messages are
// named by their index in the batch that the chunk encodes to, which is the same at every
// attempt. It is owned by one goroutine at a time.
type Receipt struct {
	// open lists the messages that must be produced, ascending.
	open []int
	// suspects are groups of messages that a broker refused for good. It judges batches, and a
	// batch holds messages of several chunks, so only a message that was sent with nothing else
	// around is meant itself. Each group is sent apart, and halved when it is refused again.
	suspects [][]int
	// current is what the client has in hands, sent the messages that it covers.
	current *reconnect.Delivery
	sent    []int
	apart   bool // nothing else was in the client's hands
	// Rejected lists the messages that no attempt can deliver, in the order of their end.
	Rejected []reconnect.Failure
	acked    int
	doubtful int
	// since is when the first message was handed over, until when the last delivery settled.
	since, until time.Time
}

// NewReceipt returns the receipt of a chunk of n messages, none of which was produced yet.
func NewReceipt(n int) *Receipt {
	open := make([]int, n)
	for i := range open {
		open[i] = i
	}
	return &Receipt{open: open}
}

// Open lists the messages to be produced next, ascending; empty while a delivery is
// running or when none is left.
func (r *Receipt) Open() []int {
	switch {
	case r.current != nil:
		return nil
	case len(r.open) > 0:
		return r.open
	case len(r.suspects) > 0:
		return r.suspects[0]
	default:
		return nil
	}
}

// Apart tells whether the messages of Open are to be produced while nothing else is in the
// client's hands.
func (r *Receipt) Apart() bool { return len(r.open) == 0 && len(r.suspects) > 0 }

// Produced notes that the messages of Open are in the client's hands.
func (r *Receipt) Produced(d *reconnect.Delivery) {
	r.sent, r.apart = r.Open(), r.Apart()
	r.current = d
	if r.since.IsZero() {
		r.since = d.MadeAt()
	}
	if r.apart {
		r.suspects = r.suspects[1:]
	} else {
		r.open = nil
	}
}

// Running returns the delivery that is under way, or nil.
func (r *Receipt) Running() *reconnect.Delivery { return r.current }

// Waiting tells whether a delivery is under way that has not settled yet.
func (r *Receipt) Waiting() bool {
	if r.current == nil {
		return false
	}
	select {
	case <-r.current.Done():
		return false
	default:
		return true
	}
}

// Complete tells whether every message has come to its end.
func (r *Receipt) Complete() bool {
	return r.current == nil && len(r.open) == 0 && len(r.suspects) == 0
}

// Acked is the number of messages that the brokers have acknowledged so far.
func (r *Receipt) Acked() int { return r.acked }

// Doubtful is the number of messages that were produced again although the broker may
// have written them: possible duplicates.
func (r *Receipt) Doubtful() int { return r.doubtful }

// Took is the time from handing the first message over to the last report, which may be
// long before the result was collected; valid once the receipt is complete.
func (r *Receipt) Took() time.Duration { return r.until.Sub(r.since) }

// Collect takes the result of a delivery that is done: what can never be written is
// rejected, what a broker refused along with others is suspected, what failed otherwise
// becomes open again. It returns the failures that became open.
func (r *Receipt) Collect() []reconnect.Failure {
	d := r.current
	if d == nil || r.Waiting() {
		return nil
	}
	r.current, r.until = nil, d.SettledAt()
	r.acked += d.Acked()
	var again []reconnect.Failure
	var suspects []int
	for _, f := range d.Failures() {
		f.Index = r.sent[f.Index]
		switch {
		case f.Class == fsm.ClassRecord && (f.Refused || r.apart && len(r.sent) == 1):
			r.Rejected = append(r.Rejected, f)
		case f.Class == fsm.ClassRecord:
			suspects = append(suspects, f.Index)
		default:
			if f.Status == reconnect.PossiblyPersisted {
				r.doubtful++
			}
			r.open = append(r.open, f.Index)
			again = append(again, f)
		}
	}
	r.suspect(suspects)
	return again
}

// suspect takes a refused group apart. What was refused as part of a batch with strangers is
// sent as it is first; what was refused by itself is halved.
func (r *Receipt) suspect(group []int) {
	switch half := len(group) / 2; {
	case len(group) == 0:
	case r.apart && half > 0:
		r.suspects = append(r.suspects, group[:half], group[half:])
	default:
		r.suspects = append(r.suspects, group)
	}
}

package delivery

import (
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// Receipt follows the messages of one chunk over any number of attempts. Messages are
// named by their index in the batch that the chunk encodes to, which is the same at every
// attempt. It is owned by one goroutine at a time.
type Receipt struct {
	// open lists the messages that must be produced, ascending.
	open []int
	// alone lists messages to be produced one at a time: the broker refused the batch they
	// were in as too large, which says nothing about any single one of them.
	alone []int
	// current is what the client has in hands, sent the messages that it covers.
	current *reconnect.Delivery
	sent    []int
	// Rejected lists the messages that no attempt can deliver, in the order of their end.
	Rejected []reconnect.Failure
	acked    int
	doubtful int
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
	if r.current != nil {
		return nil
	}
	if len(r.open) > 0 {
		return r.open
	}
	if len(r.alone) > 0 {
		return r.alone[:1]
	}
	return nil
}

// Alone tells whether the messages of Open are to be produced singly.
func (r *Receipt) Alone() bool { return len(r.open) == 0 && len(r.alone) > 0 }

// Produced notes that the messages of Open are in the client's hands.
func (r *Receipt) Produced(d *reconnect.Delivery) {
	r.sent = r.Open()
	r.current = d
	if r.Alone() {
		r.alone = r.alone[1:]
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
	return r.current == nil && len(r.open) == 0 && len(r.alone) == 0
}

// Acked is the number of messages that the brokers have acknowledged so far.
func (r *Receipt) Acked() int { return r.acked }

// Doubtful is the number of messages that were produced again although the broker may
// have written them: possible duplicates.
func (r *Receipt) Doubtful() int { return r.doubtful }

// tooLarge is Kafka's code for a message, or a batch, that is larger than a limit.
const tooLarge = 10

// Collect takes the result of a delivery that is done: what failed for good is rejected,
// what failed otherwise becomes open again. It returns the failures that became open.
func (r *Receipt) Collect() []reconnect.Failure {
	d := r.current
	if d == nil || r.Waiting() {
		return nil
	}
	wasAlone := len(r.sent) == 1
	r.current = nil
	r.acked += d.Acked()
	var again []reconnect.Failure
	for _, f := range d.Failures() {
		f.Index = r.sent[f.Index]
		switch {
		case f.Code == tooLarge && f.Refused:
			r.Rejected = append(r.Rejected, f)
		case f.Code == tooLarge && !wasAlone:
			r.alone = append(r.alone, f.Index)
		case f.Class == fsm.ClassRecord:
			r.Rejected = append(r.Rejected, f)
		default:
			if f.Status == reconnect.PossiblyPersisted {
				r.doubtful++
			}
			r.open = append(r.open, f.Index)
			again = append(again, f)
		}
	}
	return again
}

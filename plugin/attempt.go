package plugin

import (
	"math"
	"time"

	"out_kafka_reconnect/plugin/delivery"
)

// attempt carries out one flush call after the other on a goroutine of its own.
type attempt struct {
	in    *Instance
	enc   *encoder
	timer *time.Timer

	// Of the call at hand:
	job     *job
	key     delivery.Key
	keyed   bool
	own     bool  // to be taken over whatever comes of it
	spare   int64 // how many bytes above queue_limit may be taken
	receipt *delivery.Receipt
}

// serve answers the job. A panic of ours becomes Retry: nothing is lost by it.
func (a *attempt) serve(j *job) {
	defer func() {
		if p := recover(); p != nil {
			a.in.panicLogged(p)
			j.result = resultOf(panicked)
			if a.receipt != nil {
				a.keep(a.receipt)
			}
		}
		a.job, a.receipt = nil, nil
		j.done <- struct{}{}
	}()
	a.job, a.keyed = j, false
	j.result = resultOf(a.run())
}

// patience is how long this call may wait for acknowledgements.
func (a *attempt) patience() time.Duration {
	short := min(a.in.cfg.DeliveryWaitEngine, a.in.cfg.DeliveryWait)
	switch slow := a.in.slow.Load(); {
	case a.job.worker && !slow:
		return a.in.cfg.DeliveryWait
	case a.job.worker || !slow:
		return short
	default:
		return 0
	}
}

func (a *attempt) run() outcome {
	expires := time.Now().Add(a.patience())
	a.own, a.spare = a.job.own, 0
	if a.own {
		a.spare = a.in.cfg.CustodyLimit
	}
	// Taken before anything is handed over: a refusal from then on is not missed.
	refusal := a.in.sup.Refused()
	r := a.known()
	if r == nil {
		var o outcome
		if r, o = a.post(); r == nil {
			return o
		}
	}
	a.receipt = r
	o := notInTurn
	if !r.Held() {
		o = a.wait(r, expires, refusal)
	}
	a.receipt = nil
	if o != delivered && a.own {
		o = a.takeOver(r)
	}
	if o == delivered || o == takenOver {
		a.in.ledger.Collected(r)
		return o
	}
	a.keep(r)
	return o
}

// takeOver makes a chunk ours that could not be delivered in time.
func (a *attempt) takeOver(r *delivery.Receipt) outcome {
	if err := a.in.custody.take(r, a.job.tag, a.job.chunk); err != nil {
		a.in.courier.Disown(r)
		a.in.quiet.warn("state_path can't be written to: chunks are not taken over, and a hot reload waits for Kafka", 1, "err", err)
		return waiting
	}
	a.in.quiet.warn("a hot reload waits for Kafka: chunks are taken over, and delivered when a broker is back", 1,
		"on_disk", a.in.custody.store != nil)
	return takenOver
}

// known returns the receipt of an earlier attempt at the same bytes.
func (a *attempt) known() *delivery.Receipt {
	if a.in.ledger.Len() == 0 {
		return nil
	}
	r := a.in.ledger.Take(a.identify())
	if r == nil {
		return nil
	}
	a.in.courier.Avoid(r)
	a.own = a.own && a.in.courier.Own(r)
	if r.Short() && a.enc.ready() && !a.in.courier.Supply(r, a.job.tag, a.enc.encode(a.job.chunk, a.job.tag, time.Now())) {
		a.in.ledger.Collected(r) // it tells of nothing
		return nil
	}
	return r
}

// rest goes on with a chunk in custody of which an earlier process has delivered all but some
// messages; nil if it knew of none.
func (a *attempt) rest(messages int, open []int) *delivery.Receipt {
	if len(open) == 0 {
		return nil
	}
	r := a.in.courier.Recall(messages, open)
	a.in.courier.Avoid(r)
	a.in.courier.Own(r)
	if !a.in.courier.Supply(r, a.job.tag, a.enc.encode(a.job.chunk, a.job.tag, time.Now())) {
		return nil
	}
	return r
}

// identify computes the key at the first need only.
func (a *attempt) identify() delivery.Key {
	if !a.keyed {
		a.key, a.keyed = delivery.KeyOf(a.job.tag, a.job.chunk), true
	}
	return a.key
}

// post hands the chunk over to the courier, or says why not.
func (a *attempt) post() (*delivery.Receipt, outcome) {
	at := delivery.Place{First: true}
	if a.in.line != nil {
		a.in.line.Lock()
		defer a.in.line.Unlock()
		at = a.in.line.Place(a.identify())
	}
	if !a.enc.ready() {
		a.turnAway(at)
		return nil, schemaUnknown
	}
	b := a.enc.encode(a.job.chunk, a.job.tag, time.Now())
	var unusable []unusable // that are to be kept
	if a.in.clerk.hasTarget() {
		unusable = a.enc.faults.unusable
	}
	if len(b.Messages) == 0 && len(unusable) == 0 {
		a.passed(at, nil)
		return nil, a.nothing()
	}
	spare := a.spare
	if at.Awaited {
		spare = math.MaxInt64 // what waits for it takes up the room
	}
	r := a.in.courier.Post(at, a.job.tag, b, len(unusable), spare)
	if r == nil {
		a.turnAway(at)
		return nil, queueFull
	}
	a.passed(at, r)
	a.own = a.own && a.in.courier.Own(r)
	a.in.reportFaults(a.job.tag, &a.enc.faults)
	a.in.keepUnusable(r, a.job.tag, a.job.chunk, unusable)
	if a.own && r.Short() { // given up before it was ours; a client may keep the batch
		a.in.courier.Supply(r, a.job.tag, a.enc.encode(a.job.chunk, a.job.tag, time.Now()))
	}
	return r, delivered
}

// turnAway keeps the chunk's place in the order for its next attempt.
func (a *attempt) turnAway(at delivery.Place) {
	if a.in.line != nil {
		a.in.line.Refused(a.identify(), at)
	}
}

// passed notes that the chunk is in, or that there is nothing in it.
func (a *attempt) passed(at delivery.Place, r *delivery.Receipt) {
	if a.in.line != nil {
		a.in.line.Passed(a.identify(), at, r)
	}
}

// nothing is the outcome of a chunk without a record to send.
func (a *attempt) nothing() outcome {
	a.in.reportFaults(a.job.tag, &a.enc.faults)
	f := &a.enc.faults
	if f.undecodable > 0 && f.unencodable == 0 {
		return undecodable
	}
	return noRecords
}

// wait waits for the receipt: delivered when it is complete, else why not.
func (a *attempt) wait(r *delivery.Receipt, expires time.Time, refusal <-chan struct{}) outcome {
	o := refused
	a.timer.Reset(time.Until(expires))
	select {
	case <-r.Done():
	case <-r.Blocked():
		o = waiting
	case <-refusal:
	case <-a.in.closing:
	case <-a.timer.C:
		a.in.slow.Store(true)
		o = waiting
	}
	if r.Complete() { // a result that is there is better than any reason to give up
		return delivered
	}
	return o
}

// keep puts the receipt back for Fluent Bit's next attempt.
func (a *attempt) keep(r *delivery.Receipt) {
	glimpse := delivery.GlimpseOf(a.job.tag, a.job.chunk)
	if n := a.in.ledger.Put(a.identify(), glimpse, r); n > 0 {
		a.in.quiet.warn("receipts of chunks that did not come back were forgotten", n)
	}
}

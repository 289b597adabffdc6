package plugin

import (
	"slices"
	"time"

	"out_kafka_reconnect/plugin/delivery"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
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
	receipt *delivery.Receipt
	batch   *reconnect.Batch // nil until the chunk was encoded
	expires time.Time
	// Of the attempts before it:
	acked   int                 // messages acknowledged
	carried *reconnect.Delivery // under way, or nil
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
		a.job, a.receipt, a.batch, a.carried = nil, nil, nil, nil
		j.done <- struct{}{}
	}()
	a.job, a.keyed, a.batch = j, false, nil
	a.expires = time.Now().Add(a.patience())
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
	r := a.known()
	if r == nil {
		if !a.in.sup.Admit() {
			return refused
		}
		a.encode()
		if len(a.batch.Messages) == 0 {
			return a.nothing()
		}
		if a.full() {
			return queueFull
		}
		r = delivery.NewReceipt(len(a.batch.Messages))
	}
	a.acked, a.carried = r.Acked(), r.Running()
	a.receipt = r
	o := a.deliver(r)
	a.receipt = nil
	if o == delivered {
		a.finish(r)
	} else {
		a.keep(r)
	}
	return o
}

// known returns the receipt of an earlier attempt at the same bytes.
func (a *attempt) known() *delivery.Receipt {
	if a.in.ledger.Len() == 0 {
		return nil
	}
	return a.in.ledger.Take(a.identify())
}

// identify computes the key at the first need only.
func (a *attempt) identify() delivery.Key {
	if !a.keyed {
		a.key, a.keyed = delivery.KeyOf(a.job.tag, a.job.chunk), true
	}
	return a.key
}

// encode turns the chunk into a batch, once for each call, and reports what was odd.
func (a *attempt) encode() {
	if a.batch != nil {
		return
	}
	a.batch = a.enc.encode(a.job.chunk, time.Now())
	a.in.reportFaults(a.job.tag, &a.enc.faults)
}

// nothing is the outcome of a chunk without a record to send.
func (a *attempt) nothing() outcome {
	f := &a.enc.faults
	if f.undecodable > 0 && f.unencodable == 0 {
		return undecodable
	}
	return noRecords
}

// full tells whether the chunk must wait for room. An empty queue takes any chunk.
func (a *attempt) full() bool {
	queued := a.in.queued.Load()
	return queued > 0 && queued+batchBytes(a.batch) > a.in.cfg.QueueLimit
}

func batchBytes(b *reconnect.Batch) int64 {
	return int64(len(b.Data)) + messageOverhead*int64(len(b.Messages))
}

// deliver brings the receipt as far as the time allows.
func (a *attempt) deliver(r *delivery.Receipt) outcome {
	for {
		// Taken before anything is handed over: a refusal from then on is not missed.
		refusal := a.in.sup.Refused()
		if r.Running() == nil {
			if o := a.produce(r); o != delivered {
				return o
			}
		}
		if o := a.wait(r.Running(), refusal); o != delivered {
			return o
		}
		again := r.Collect()
		if r.Complete() {
			return delivered
		}
		if len(again) > 0 {
			a.in.quiet.warn("records were not delivered and will be produced again", len(again),
				"tag", a.job.tag, "class", again[0].Class, "code", again[0].Code, "err", again[0].Text)
			return failed
		}
		// What is left is to be produced apart, as long as the time lasts.
	}
}

// produce hands the open messages over: delivered when that is done, else why not.
func (a *attempt) produce(r *delivery.Receipt) outcome {
	if !a.in.sup.Admit() {
		return refused
	}
	a.encode()
	release := func() {}
	if r.Apart() {
		if !a.clear() {
			return waiting
		}
		release = a.in.lane.Unlock
	} else {
		if !a.poll(a.in.lane.TryRLock) {
			return waiting // another chunk has the client for itself
		}
		defer a.in.lane.RUnlock()
	}
	b := subset(a.batch, r.Open())
	d, err := a.in.sup.Produce(b)
	if err != nil {
		release()
		return refused
	}
	a.in.follow(d, batchBytes(b), release)
	r.Produced(d)
	return delivered
}

// clear takes the lane and waits until nothing is in the client's hands; false, without the
// lane, when the time does not last for that.
func (a *attempt) clear() bool {
	if !a.poll(a.in.lane.TryLock) {
		return false
	}
	if !a.poll(func() bool { return a.in.queued.Load() == 0 }) {
		a.in.lane.Unlock()
		return false
	}
	return true
}

// poll tries every millisecond until it succeeds or the time of the call is over. It waits for
// the lane only, which is free unless a broker has refused a batch for good.
func (a *attempt) poll(ok func() bool) bool {
	for !ok() {
		left := time.Until(a.expires)
		if left <= 0 || !a.in.sup.Admit() {
			return false
		}
		a.timer.Reset(min(left, time.Millisecond))
		<-a.timer.C
	}
	return true
}

// follow keeps the account of what is in the client's hands; release is called when this
// delivery has settled.
func (in *Instance) follow(d *reconnect.Delivery, bytes int64, release func()) {
	in.queued.Add(bytes)
	d.Then(func() {
		in.queued.Add(-bytes)
		in.counts.acked.Add(int64(d.Acked()))
		if answered(d) {
			in.slow.Store(false)
		}
		release()
	})
}

// answered tells whether a broker has judged any of the records: it is there and keeps up.
func answered(d *reconnect.Delivery) bool {
	return d.Acked() > 0 || slices.ContainsFunc(d.Failures(), func(f reconnect.Failure) bool {
		return f.Class == fsm.ClassRecord && !f.Refused
	})
}

// wait waits for the delivery: delivered when it has settled, else why not.
func (a *attempt) wait(d *reconnect.Delivery, refusal <-chan struct{}) outcome {
	a.timer.Reset(time.Until(a.expires))
	select {
	case <-d.Done():
		return delivered
	case <-refusal:
	case <-a.in.closing:
	case <-a.timer.C:
		a.in.slow.Store(true)
		return a.settledOr(d, waiting)
	}
	return a.settledOr(d, refused)
}

// settledOr prefers a result that is there over any reason to give up.
func (a *attempt) settledOr(d *reconnect.Delivery, o outcome) outcome {
	select {
	case <-d.Done():
		return delivered
	default:
		return o
	}
}

// keep puts the receipt back for Fluent Bit's next attempt.
func (a *attempt) keep(r *delivery.Receipt) {
	if n := a.in.ledger.Put(a.identify(), r); n > 0 {
		a.in.quiet.warn("receipts of chunks that did not come back were forgotten", n)
	}
}

// finish accounts for a chunk whose records have all come to their end.
func (a *attempt) finish(r *delivery.Receipt) {
	c := &a.in.counts
	c.doubtful.Add(int64(r.Doubtful()))
	c.avoided.Add(int64(a.avoided()))
	if len(r.Rejected) == 0 {
		a.in.scrape.ObserveAck(r.Took())
		return
	}
	c.rejected.Add(int64(len(r.Rejected)))
	a.encode()
	byCode := map[int]int{}
	for _, f := range r.Rejected {
		byCode[f.Code]++
	}
	for _, f := range r.Rejected {
		n := byCode[f.Code]
		if n == 0 {
			continue
		}
		delete(byCode, f.Code)
		m := a.batch.Messages[f.Index]
		a.in.quiet.warn("records can never be written and were left out", n,
			"tag", a.job.tag, "topic", a.batch.Topics[m.Topic], "size", m.ValLen, "code", f.Code, "err", f.Text)
	}
}

// avoided counts, at the end of a chunk, the messages that attempts before this one have
// delivered: handed over as a whole the chunk would have doubled them.
func (a *attempt) avoided() int {
	if a.carried == nil {
		return a.acked
	}
	return a.acked + a.carried.Acked()
}

// reportFaults writes one line for each kind of oddity in a chunk.
func (in *Instance) reportFaults(tag string, f *faults) {
	if f.undecodable > 0 {
		in.quiet.warn("bytes of a chunk are no record and were left out", f.undecodable,
			"tag", tag, "offset", f.undecodableOffset, "err", f.undecodableReason)
	}
	if f.unencodable > 0 {
		in.quiet.warn("records have no JSON form and were left out", f.unencodable,
			"tag", tag, "offset", f.unencodableOffset, "err", f.unencodableReason)
	}
	if f.badTimes > 0 {
		in.quiet.warn("records without a usable time got the time of the flush", f.badTimes, "tag", tag)
	}
	if f.refusedTopics > 0 {
		in.quiet.warn("records went to the default topic, theirs is not possible", f.refusedTopics,
			"tag", tag, "topic", f.refusedTopic, "too_many_topics", f.refusedLimit)
	}
}

package plugin

import (
	"out_kafka_reconnect/plugin/delivery"
)

// trouble tells of records that came back. It is called on the client's goroutine.
func (in *Instance) trouble(t delivery.Trouble) {
	msg := "records were not delivered and will be produced again"
	if t.Waits {
		msg = "records wait until their topic can be written to"
	}
	in.quiet.warn(msg, t.Count,
		"tag", t.Tag, "topic", t.Topic, "class", t.Failure.Class, "code", t.Failure.Code, "err", t.Failure.Text)
}

// reject accounts for records that can never be written. It is called on the client's
// goroutine.
func (in *Instance) reject(r delivery.Rejected) {
	in.counts.rejected.Add(int64(len(r.Failures)))
	byCode := map[int]int{}
	for _, f := range r.Failures {
		byCode[f.Code]++
	}
	for i, f := range r.Failures {
		n := byCode[f.Code]
		if n == 0 {
			continue
		}
		delete(byCode, f.Code)
		m := &r.Batch.Messages[i]
		in.quiet.warn("records can never be written and were left out", n,
			"tag", r.Tag, "topic", r.Batch.Topics[m.Topic], "size", m.ValLen, "code", f.Code, "err", f.Text)
	}
	in.courier.Account(r)
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

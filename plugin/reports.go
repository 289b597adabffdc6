package plugin

import (
	"bytes"
	"strings"
	"sync/atomic"
	"time"

	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/deadletter"
	"out_kafka_reconnect/plugin/delivery"
)

// trouble tells of records that came back. It is called on the client's goroutine.
func (in *Instance) trouble(t delivery.Trouble) {
	msg := "records were not delivered and will be produced again"
	switch {
	case t.Waits:
		msg = "records wait until their topic can be written to"
	case t.NoPartition:
		msg = "records name a partition that their topic has not, the partitioner chooses one"
	}
	in.quiet.warn(msg, t.Count,
		"tag", t.Tag, "topic", t.Topic, "class", t.Failure.Class, "code", t.Failure.Code, "err", t.Failure.Text)
}

// reject deals with records that can never be written: they are counted, told of, and kept
// where the section says. It is called on the client's goroutine.
func (in *Instance) reject(r delivery.Rejected) {
	if r.Letters != nil {
		in.clerk.refused(r)
		return
	}
	byKind := map[deadletter.Kind][]int{}
	for i, f := range r.Failures {
		if !r.Again[i] {
			k := deadletter.KindOf(f)
			byKind[k] = append(byKind[k], i)
		}
	}
	dropped := in.drops(deadletter.KindOf(r.Failures[0])) // as all of them are, see Rejected
	for kind, list := range byKind {
		in.counts.reject(kind, len(list))
		first := list[0]
		m, f := &r.Batch.Messages[first], r.Failures[first]
		in.quiet.warn(rejectedLine(kind), len(list), "tag", r.Tag, "topic", r.Batch.Topics[m.Topic], "size", m.ValLen,
			"code", f.Code, "err", f.Text, "dead_letters", !dropped)
	}
	if dropped {
		in.courier.Account(r)
		return
	}
	l := letters{rejected: r}
	now := time.Now()
	for i, f := range r.Failures {
		letter := deadletter.FromBatch(r.Batch, i, f)
		letter.Tag, letter.Time = r.Tag, now
		l.list = append(l.list, letter)
	}
	in.clerk.keep(l)
}

// skipped tells of chunks that ordered mode does not wait for any longer.
func (in *Instance) skipped(n int) {
	in.quiet.warn("chunks did not come back and are no longer waited for, later ones go first", n)
}

// drops tells whether records of this kind are kept nowhere.
func (in *Instance) drops(k deadletter.Kind) bool {
	return !in.clerk.hasTarget() || k.OperatorCanFix() && in.cfg.OnTopicError == config.TopicErrorDrop
}

// rejectedLine is the constant text for a kind, as each is told once a minute.
func rejectedLine(k deadletter.Kind) string {
	return "records can never be written and were left out: " + string(k)
}

// keepUnusable makes dead letters of entries that gave no message.
func (in *Instance) keepUnusable(r *delivery.Receipt, tag string, chunk []byte, list []unusable) {
	if len(list) == 0 {
		return
	}
	l := letters{rejected: r.Unusable(len(list))}
	now := time.Now()
	for _, u := range list {
		l.list = append(l.list, deadletter.Letter{
			Kind: u.kind, Reason: u.reason.Error(), Tag: strings.Clone(tag), Time: now,
			Value: bytes.Clone(chunk[u.offset : u.offset+u.len]),
		})
	}
	in.clerk.keep(l)
}

// reject counts rejected records.
func (c *counts) reject(k deadletter.Kind, n int) {
	v, _ := c.rejected.LoadOrStore(k, &atomic.Int64{})
	v.(*atomic.Int64).Add(int64(n))
}

// rejectedByKind lists the counts of every kind.
func (c *counts) rejectedByKind() map[string]int64 {
	out := make(map[string]int64, len(deadletter.Kinds))
	for _, k := range deadletter.Kinds {
		out[string(k)] = 0
		if v, ok := c.rejected.Load(k); ok {
			out[string(k)] = v.(*atomic.Int64).Load()
		}
	}
	return out
}

// rejectedInAll is their sum.
func (c *counts) rejectedInAll() (sum int64) {
	for _, n := range c.rejectedByKind() {
		sum += n
	}
	return sum
}

// reportFaults writes one line for each kind of oddity in a chunk.
func (in *Instance) reportFaults(tag string, f *faults) {
	for _, u := range f.unusable {
		in.counts.reject(u.kind, 1)
	}
	if f.undecodable > 0 {
		in.quiet.warn("bytes of a chunk are no record and were left out", f.undecodable,
			"tag", tag, "offset", f.undecodableOffset, "err", f.undecodableReason)
	}
	if f.unencodable > 0 {
		in.quiet.warn("records can't be written in this format and were left out", f.unencodable,
			"tag", tag, "offset", f.unencodableOffset, "err", f.unencodableReason)
	}
	if f.badTimes > 0 {
		in.quiet.warn("records without a usable time got the time of the flush", f.badTimes, "tag", tag)
	}
	if f.refusedTopics > 0 {
		in.quiet.warn("records went to the default topic, theirs is not possible", f.refusedTopics,
			"tag", tag, "topic", f.refusedTopic, "too_many_topics", f.refusedLimit)
	}
	if f.topicGaps > 0 {
		in.quiet.warn("records lack a field of topic_template and went to the default topic", f.topicGaps, "tag", tag)
	}
	if n := f.leftOut.Fields; n > 0 {
		in.counts.leftOut.Add(int64(n))
		in.quiet.warn("the schema has no name for fields of records, which were written without them", n, "tag", tag, "field", f.leftOut.Name)
	}
	if f.keyGaps > 0 {
		in.quiet.warn("records lack a field of message_key_template and got message_key or no key", f.keyGaps, "tag", tag)
	}
	if f.badPartitions > 0 {
		in.quiet.warn("records name something that is no partition, the partitioner chose one", f.badPartitions, "tag", tag)
	}
}

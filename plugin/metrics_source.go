package plugin

import "out_kafka_reconnect/plugin/metrics"

// Metrics implements metrics.Source.
func (in *Instance) Metrics() metrics.Sample {
	st, held := in.sup.Status(), in.courier.Status()
	c := &in.counts
	s := metrics.Sample{
		State:              st.State,
		Outages:            st.Outages,
		OutageTime:         st.DownTotal,
		ConnectSuccesses:   st.ConnectSuccesses,
		ConnectFailures:    st.ConnectFailures,
		Acknowledged:       held.Acked,
		Open:               held.Open,
		Rejected:           c.rejectedByKind(),
		DuplicatesAvoided:  held.Avoided,
		PossibleDuplicates: held.Doubtful,
		DeadLetters:        map[string]int64{},
		QueueBytes:         held.Queued,
		Receipts:           in.ledger.Len(),
		Forgotten:          c.forgotten.Load(),
		LeftOut:            c.leftOut.Load(),
		ChunksOK:           c.ok.Load(),
		ChunksRetried:      c.retried.Load(),
		ChunksError:        c.undecodable.Load(),
	}
	if in.clerk.file != nil {
		s.DeadLetters["file"] = in.clerk.written.Load()
	}
	if in.clerk.topic.Name != "" {
		s.DeadLetters["topic"] = held.Letters
	}
	return s
}

package plugin

import (
	"out_kafka_reconnect/plugin/metrics"
	"out_kafka_reconnect/reconnect/fsm"
)

// Metrics implements metrics.Source. It takes no lock, so that a scrape never holds a flush
// up.
func (in *Instance) Metrics() metrics.Sample {
	st := in.sup.Status()
	c := &in.counts
	return metrics.Sample{
		State:              st.State,
		Outages:            st.Outages,
		OutageTime:         st.DownTotal,
		ConnectSuccesses:   st.ConnectSuccesses,
		ConnectFailures:    st.ConnectFailures,
		Acknowledged:       c.acked.Load(),
		Open:               st.Outstanding,
		Rejected:           map[string]int64{fsm.ClassRecord.String(): c.rejected.Load()},
		DuplicatesAvoided:  c.avoided.Load(),
		PossibleDuplicates: c.doubtful.Load(),
		QueueBytes:         in.queued.Load(),
		Receipts:           in.ledger.Len(),
		ChunksOK:           c.ok.Load(),
		ChunksRetried:      c.retried.Load(),
		ChunksError:        c.undecodable.Load(),
	}
}

package plugin

import (
	"out_kafka_reconnect/plugin/metrics"
	"out_kafka_reconnect/reconnect/fsm"
)

// Metrics implements metrics.Source.
func (in *Instance) Metrics() metrics.Sample {
	state, clients, held := in.sup.Status().State, in.clientCounts(), in.courier.Status()
	c := in.counts
	s := metrics.Sample{
		State:              state,
		Outages:            clients.outages,
		OutageTime:         clients.outageTime,
		ConnectSuccesses:   clients.connectSuccesses,
		ConnectFailures:    clients.connectFailures,
		Acknowledged:       held.Acked,
		Open:               held.Open,
		Rejected:           c.rejectedByKind(),
		FieldsLeftOut:      c.leftOut.Load(),
		DuplicatesAvoided:  held.Avoided,
		PossibleDuplicates: held.Doubtful,
		Returned:           map[string]int64{},
		DeadLetters:        map[string]int64{},
		QueueBytes:         held.Queued,
		Receipts:           in.ledger.Len(),
		Forgotten:          c.forgotten.Load(),
		LeftOut:            c.leftOutChunks.Load(),
		ChunksOK:           c.ok.Load(),
		ChunksRetried:      c.retried.Load(),
		ChunksError:        c.undecodable.Load(),
	}
	for _, class := range fsm.Classes() {
		s.Returned[class.String()] = held.Returned[class]
	}
	if in.clerk.file != nil {
		s.DeadLetters["file"] = in.clerk.written.Load()
	}
	if in.clerk.topic.Name != "" {
		s.DeadLetters["topic"] = held.Letters
	}
	return s
}

// clientCounts adds what the client has counted to what those before it had.
func (in *Instance) clientCounts() clientCounts {
	st, c := in.sup.Status(), in.clients
	c.outages += st.Outages
	c.connectSuccesses += st.ConnectSuccesses
	c.connectFailures += st.ConnectFailures
	c.outageTime += st.DownTotal
	return c
}

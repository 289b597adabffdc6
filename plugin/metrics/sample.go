package metrics

import (
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// Source is where an endpoint gets its numbers. Metrics is called at every scrape, on a
// goroutine of the server, and must neither wait for a broker nor hold a flush up.
type Source interface {
	Metrics() Sample
}

// Sample is what an instance has to say at one moment. Counts are totals since its start.
type Sample struct {
	State fsm.State

	// Outages includes the one that lasts, as does OutageTime.
	Outages    int
	OutageTime time.Duration

	// ConnectSuccesses and ConnectFailures are attempts by how they ended.
	ConnectSuccesses, ConnectFailures uint64

	// Acknowledged counts records that the brokers have, Open those that the client has and
	// no broker has acknowledged yet.
	Acknowledged int64
	Open         int
	// Rejected counts records that can never be written, by class of the reason.
	Rejected map[string]int64
	// Returned counts records that came back from the client and are sent again, each time, by
	// the class of the error.
	Returned map[string]int64
	// FieldsLeftOut counts fields of records that were written without them, as the schema has
	// no name for them.
	FieldsLeftOut int64
	// DuplicatesAvoided counts records that a retry of their chunk did not send again, because
	// an attempt before it had brought them to the brokers.
	DuplicatesAvoided int64
	// PossibleDuplicates counts records that had to be sent again although a broker may have
	// written them.
	PossibleDuplicates int64
	// DeadLetters counts rejected records that were kept, by target: "topic" or "file".
	DeadLetters map[string]int64

	// QueueBytes is what the client holds, Receipts the chunks whose retry is waited for.
	QueueBytes int64
	Receipts   int

	// Forgotten is how many chunks in state_path were found to be no section's.
	Forgotten int64

	// LeftOut is how many chunks of metrics or traces were answered with OK and not written, as the
	// format has no form for them.
	LeftOut int64

	// ChunksOK, ChunksRetried and ChunksError count the answers to Fluent Bit.
	ChunksOK, ChunksRetried, ChunksError int64
}

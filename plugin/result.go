package plugin

// Result is what a flush answers. The numbers are Fluent Bit's; the root package checks
// that at compile time.
type Result int

// The results.
const (
	// Error makes Fluent Bit drop the chunk.
	Error Result = 0
	// OK ends the chunk: every record was acknowledged, or can never be written.
	OK Result = 1
	// Retry makes Fluent Bit bring the same chunk again later.
	Retry Result = 2
)

// String names the result.
func (r Result) String() string {
	switch r {
	case Error:
		return "error"
	case OK:
		return "ok"
	case Retry:
		return "retry"
	default:
		return "unknown"
	}
}

// outcome is how one attempt at a chunk ended.
type outcome uint8

const (
	delivered     outcome = iota // every record came to its end
	takenOver                    // the records are ours now: Fluent Bit is being reloaded
	noRecords                    // nothing in the chunk is a record, and nothing is broken
	undecodable                  // there are bytes, and no record among them
	refused                      // all brokers are down, or the instance is closing
	schemaUnknown                // the schema of the messages could not be fetched yet
	queueFull                    // the bound on what waits is reached
	notInTurn                    // ordered: an earlier chunk has not come back yet
	waiting                      // the acknowledgements did not come in time
	panicked                     // a fault of ours
)

// resultOf is the only place that chooses what Fluent Bit hears. Error is for a chunk that
// no attempt can make anything of: Fluent Bit drops it, or keeps its file when
// storage.keep.rejected is on.
func resultOf(o outcome) Result {
	switch o {
	case delivered, takenOver, noRecords:
		return OK
	case undecodable:
		return Error
	default:
		return Retry
	}
}

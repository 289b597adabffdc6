// Package delivery brings the records of chunks to Kafka exactly once each, over any number
// of Fluent Bit's attempts at a chunk.
//
// A flush that can't wait for the acknowledgements answers retry, and its records stay here
// or in the client's queue and go out when a broker is up. Fluent Bit comes back with the
// same bytes and the same tag; the [Ledger] finds the [Receipt] of the first attempt, and
// the retry collects the result instead of sending anything twice.
//
// The [Courier] holds what waits. It decides by the report of each record: acknowledged,
// to be sent again, refused in company and so to be sent alone, waiting for an operator to
// help its topic, or rejected for good. One goroutine of its own sends; a chunk that nothing
// stands in the way of is handed over by the flush itself.
//
// A receipt in the ledger belongs to nobody: [Ledger.Take] gives it to one flush call,
// [Ledger.Put] takes it back with an answer of retry. So every answer of OK consumes exactly
// one delivery, and two chunks with equal bytes are two deliveries, whichever of the two
// calls collects which. The content hash is computed only when there is something to find or
// to keep: a chunk that is acknowledged in time costs nothing here.
//
// A [Journal] is told of what the next process must know: receipts in the ledger that are
// complete, and at the end those that are partly. [Ledger.Restore] brings them back.
package delivery

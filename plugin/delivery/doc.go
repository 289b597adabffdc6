// Package delivery remembers what has become of a chunk between two of Fluent Bit's
// attempts at it.
//
// A flush that can't wait for the acknowledgements answers retry, and its records stay in
// the client's queue and go out when they can. Fluent Bit comes back with the same bytes
// and the same tag; the ledger finds the receipt of the first attempt, and the retry
// collects the result instead of sending anything twice.
//
// A receipt belongs to one flush call at a time: [Ledger.Take] removes it, [Ledger.Put]
// gives it back with an answer of retry. So every answer of OK consumes exactly one
// delivery, and two chunks with equal bytes are two deliveries, whichever of the two calls
// collects which. The content hash is computed only when there is something to find or to
// keep: a chunk that is acknowledged in time costs nothing here.
package delivery

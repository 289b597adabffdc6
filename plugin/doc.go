// Package plugin is one [OUTPUT] section as a Go value: configuration, encoder, receipts
// and the supervisor behind it. It knows neither C nor librdkafka.
//
// The life of a chunk. Fluent Bit calls [Instance.Flush] on one of its threads, with a
// small stack (a coroutine's), and the bytes live for the call only. While the supervisor
// refuses and no receipt waits, the answer is Retry within microseconds. Otherwise the
// chunk goes to a goroutine of ours, which looks for a receipt of an earlier attempt,
// encodes the records, produces them in one call and waits: up to delivery_wait on a worker
// thread, up to delivery_wait_engine on the engine's own thread, where every other input
// and output would wait too. All acknowledged: OK. Not in time, or all brokers went down:
// the receipt is kept and the answer is Retry; what is in the client's queue goes out when
// it can, and the next attempt collects the result.
//
// Who blocks: Flush for the waits above and never longer; Close for shutdown_timeout or
// reload_timeout. Nothing here sleeps, and nothing keeps a byte of a chunk after Flush.
package plugin

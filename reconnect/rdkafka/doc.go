// Package rdkafka binds librdkafka's public C API for the supervisor. It is the only
// package that knows librdkafka.
//
// The Go client of the same module is not used because it shows no broker state, no
// message status and no connection callbacks, and because it crosses into C once per
// record; here a chunk crosses once. librdkafka itself, archive and header, is taken
// from that module.
//
// Threads. librdkafka runs one thread per broker and a main thread of its own. This
// package adds one poll thread in C, which settles delivery reports, and one goroutine
// per client, which sleeps in the network poller until C has news, and turns them into
// notices. No Go code runs on a thread of librdkafka and none of its locks is ever held
// while Go runs. Words (log lines, errors) pass through a bounded ring; facts (states,
// counters, reports) are kept in tables that are fetched whole, so an overflow loses
// words and never facts.
//
// What blocks: [Client.Heartbeat] up to its timeout, [Client.Close] up to its timeout and
// about a tenth of a second. Everything else returns at once; [Client.Produce] takes
// about a fifth of a microsecond a message, and copies the bytes unless [Memory] has lent them.
package rdkafka

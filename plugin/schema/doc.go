// Package schema brings the Avro schema of an instance: it is in the section, or a schema
// registry has it.
//
// A [Source] asks the registry on a goroutine of its own, never on a thread of Fluent Bit:
// each attempt is bounded in time, failed ones are repeated with a growing, jittered wait,
// and the first answer is kept for the life of the source. Until then [Source.Schema] is
// nil, and the chunks that come are to be tried again later.
package schema

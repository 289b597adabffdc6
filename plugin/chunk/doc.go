// Package chunk walks the bytes that Fluent Bit hands over in one flush call.
//
// A chunk is a row of msgpack values, normally one log record each. A [Walker]
// goes over them without a copy and without an allocation per record, and gives
// an account of every byte: each [Entry] is a record, a group marker, or a stretch
// that is not a record, with its offset, its length and the reason, and the lengths
// of all entries add up to the length of the chunk. Nothing is passed over in
// silence, because what the walker does not report the plugin would lose and still
// answer OK for.
//
// The entries are slices of the chunk. Fluent Bit owns those bytes and takes them
// back when the flush call returns, so nobody may keep an entry longer than that.
//
// The package also holds the only msgpack reader of the plugin, [ReadHead] and
// [Skip], which the formats use for the insides of a record. Both are safe on any
// input: they never read past the slice, never recurse (hundreds of thousands of
// nesting levels cost no stack), and a length that the bytes cannot hold is
// refused before anything is sized by it.
//
// Everything here runs on the goroutine of the caller and never blocks, logs or
// panics.
package chunk

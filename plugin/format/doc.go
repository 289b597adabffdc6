// Package format turns one record of a chunk into what Kafka gets: the value of the
// message (an [Encoder] for each format, [JSON] first of all), its topic and its key by the
// built-in output's rules ([Router]), and what is beyond them: templates, partition, headers
// ([Envelope]).
//
// All work on the msgpack bytes that package chunk hands out and go straight to the
// bytes of the message, with no values, maps or strings in between. In the steady
// state a record costs no allocation. That is the reason for the scratch buffers
// inside, and so each of them belongs to one goroutine at a time: a plugin
// instance that flushes on several workers gives each its own.
//
// # What the JSON looks like
//
// The bytes are those of Fluent Bit's own Kafka output, so that a consumer sees no
// difference after the switch, except where that output is not valid JSON or loses
// text:
//
//   - Text that is not ASCII stands as itself in UTF-8, and a byte that is not part of
//     valid UTF-8 becomes U+FFFD, one for each byte. A bin is text.
//   - NaN and the infinities are null. Other floats are the shortest text that reads
//     back as the same float64, and a whole one keeps its ".0".
//   - A key that is not text becomes the text of its JSON form: 1, true and null stand
//     in quotes, an array or a map is quoted and escaped as a whole.
//   - If a map has a key twice, the last one stays, at its own place. Keys are compared
//     as they are written, so the number 1 and the text "1" are the same key. The time
//     field is the first entry of the record and follows the same rule: a record that
//     brings the key itself keeps its own value.
//   - An ext is an object of its type and its bytes in base64,
//     {"type":5,"data":"AX+A/w=="}, and an event time inside a record (ext type 0 of
//     8 bytes) is its RFC 3339 text with nine fractional digits.
//
// Everything here runs on the goroutine of the caller and never blocks, logs or
// panics, whatever the bytes are.
package format

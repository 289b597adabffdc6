// Package accessor reads the two little languages of the routing options: record accessors,
// which point to a value of a record, and templates, which make a text of several.
//
// The forms are those of Fluent Bit's own record accessor ($TAG, $TAG[1], $key,
// $key['sub'][0]) and of its output to S3 (%Y.%m.%d). They survive Fluent Bit's
// configuration: it takes ${name} for an environment variable of its own, and where a "}"
// stands before one it expands none at all, so that braces of any kind are no choice.
//
// A text is parsed once, when the section is read. [Fields] then finds the values of all paths
// in one pass over a record, on the msgpack bytes and without an allocation. The package does
// not write values: how they look is the business of package format.
//
// Everything here runs on the goroutine of the caller and never blocks, logs or panics.
package accessor

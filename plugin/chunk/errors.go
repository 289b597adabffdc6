package chunk

import (
	"errors"
	"fmt"
)

// The two kinds of undecodable entries. Every [Entry.Reason] wraps one of them; the
// text behind it says which rule was broken.
var (
	// ErrNotRecord marks a complete msgpack value that is not a log record. The
	// walk goes on behind it.
	ErrNotRecord = errors.New("chunk: not a record")
	// ErrCorrupt marks bytes that cannot be divided into msgpack values. Where the
	// next record begins is unknown, so the entry covers the rest of the chunk.
	ErrCorrupt = errors.New("chunk: corrupt msgpack")
)

// The reasons are built once: an undecodable entry then costs no allocation, and a
// chunk full of them cannot make the plugin slow.
var (
	// ErrTruncated says that a value is longer than the bytes that are left.
	ErrTruncated = fmt.Errorf("%w: the value goes past the end of the data", ErrCorrupt)
	// ErrReserved says that the byte 0xc1, which msgpack never uses, begins a value.
	ErrReserved = fmt.Errorf("%w: reserved byte 0xc1", ErrCorrupt)

	errNotArray     = fmt.Errorf("%w: not an array", ErrNotRecord)
	errArrayLen     = fmt.Errorf("%w: the array has not two elements", ErrNotRecord)
	errHeaderLen    = fmt.Errorf("%w: the header has not two elements", ErrNotRecord)
	errMetadataType = fmt.Errorf("%w: the metadata is not a map", ErrNotRecord)
	errBodyType     = fmt.Errorf("%w: the body is not a map", ErrNotRecord)
)

package format

import (
	"errors"

	"out_kafka_reconnect/plugin/accessor"
	"out_kafka_reconnect/plugin/chunk"
)

// ErrNoRawField says that a record lacks the field that is to be its message.
var ErrNoRawField = errors.New("format: the record has no text under raw_log_key")

// Raw makes the text of one field the value, byte for byte. The rest of the record plays
// no part.
type Raw struct{ key string }

// NewRaw returns an encoder that writes the text under the given top-level key.
func NewRaw(key string) *Raw { return &Raw{key: key} }

// AppendValue appends the text of the first field of that name that holds one, or fails
// with [ErrNoRawField]. An empty text is an empty value, not null.
func (r *Raw) AppendValue(dst []byte, e *chunk.Entry) ([]byte, error) {
	b := e.Body
	pairs, pos, err := readBody(b)
	if err != nil {
		return dst, err
	}
	for ; pairs > 0; pairs-- {
		name, value, err := accessor.ReadKey(b, pos)
		if err != nil {
			return dst, err
		}
		if string(name) == r.key && name != nil {
			if h, at := chunk.ReadHead(b, value); h.Type == chunk.Str {
				return append(dst, b[at:at+int(h.N)]...), nil
			}
		}
		if pos, err = chunk.Skip(b, value); err != nil {
			return dst, err
		}
	}
	return dst, ErrNoRawField
}

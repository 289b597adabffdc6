package format

import (
	"errors"

	"out_kafka_reconnect/plugin/chunk"
)

// Encoder writes the values of messages that hold one record each. It is used by one goroutine at a time.
type Encoder interface {
	// AppendValue appends the value of the record's message to dst and returns the longer
	// slice. An error speaks of this record alone: dst is returned unchanged then, and the
	// next record is as good as any. The time of the record is e.Sec and e.Nsec as they
	// stand: a caller that found e.TimeOK false sets them first.
	AppendValue(dst []byte, e *chunk.Entry) ([]byte, error)
}

// Predictor is an [Encoder] that finds the end of a body by writing it, if it is as predicted.
type Predictor interface {
	Encoder
	// Predicts tells whether the next record is predicted; else AppendPredicted is tried in vain.
	Predicts() bool
	// AppendPredicted appends the value of a record whose body is the first n bytes of e.Body. It
	// reports false, and returns dst unchanged, for a record that needs AppendValue, which must know
	// the body's end.
	AppendPredicted(dst []byte, e *chunk.Entry) (out []byte, n int, ok bool)
}

// Bundler writes the values of messages that hold many records each. It is used by one goroutine
// at a time, chunk after chunk: Begin, Add for each entry, AppendMessage until there is none.
// The same chunk gives the same messages.
type Bundler interface {
	// Begin forgets the chunk before.
	Begin()
	// Add takes a record or a group marker, whose slices may change afterwards. An error speaks
	// of this entry alone. The time of a record is as with [Encoder].
	Add(e *chunk.Entry) error
	// AppendMessage appends the value of the next message to dst. The key is valid until the
	// next Begin; nil is none.
	AppendMessage(dst []byte) (out, key []byte, ok bool)
}

var (
	errNotMap   = errors.New("format: the record body is not a map")
	errTrailing = errors.New("format: bytes behind the record body")
)

// readBody reads the head of a record's body: the number of pairs, and where they begin.
func readBody(body []byte) (pairs uint64, pos int, err error) {
	h, pos := chunk.ReadHead(body, 0)
	if h.Type != chunk.Map {
		return 0, 0, errNotMap
	}
	return h.N, pos, nil
}

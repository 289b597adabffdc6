package format

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"out_kafka_reconnect/plugin/accessor"
	"out_kafka_reconnect/plugin/chunk"
)

// maxOTLPDepth is the number of messages inside each other that readers of protobuf take by
// default (those of C++ and Java); the outermost is not counted.
const maxOTLPDepth = 100

// The depth of the values in a message: the body of a record is in the record, in the scope's
// logs, in the resource's logs; an attribute is one pair further down.
const (
	depthBody      = 4
	depthAttribute = 5
)

var (
	// ErrOTLPTime says that the time of a record is one that OTLP can't express.
	ErrOTLPTime = errors.New("format: the time is past the year 2554, where that of OTLP ends")
	// ErrOTLPGroup says that a resource and scope leave too little room for records. As each
	// message repeats them, a chunk would become many times as large.
	ErrOTLPGroup = errors.New("format: a resource and its scope take up more than half of a message")
)

// maxOTLPSec is the last second whose nanoseconds all fit into 64 bits.
const maxOTLPSec = math.MaxUint64/1_000_000_000 - 1

// otlpBodyKeys are the fields whose value is the body of a record, the first one that is there.
var otlpBodyKeys = [...]string{"log", "message"}

// appendRecord appends one log record, as an item of the logs of a scope. What the OpenTelemetry
// input of Fluent Bit knew of the record beside its body is in the metadata, under "otlp".
func (o *OTLP) appendRecord(dst []byte, e *chunk.Entry) ([]byte, error) {
	w := o.wire
	known, _ := otlpMapField(e.Metadata, "otlp")
	time, ok := otlpUint(known, "timestamp", math.MaxUint64)
	if !ok {
		if e.Sec > maxOTLPSec {
			return dst, ErrOTLPTime
		}
		time = uint64(e.Sec)*1_000_000_000 + uint64(e.Nsec)
	}
	dst = w.openItem(dst, otlpLogRecords)
	at := len(dst)
	if time > 0 {
		dst = w.time(dst, otlpTime, time)
	}
	if n, ok := otlpUint(known, "observed_timestamp", math.MaxUint64); ok {
		dst = w.time(dst, otlpObservedTime, n)
	}
	if n, ok := otlpUint(known, "severity_number", math.MaxInt32); ok {
		dst = w.count(dst, otlpSeverityNumber, uint32(n))
	}
	dst = o.appendTextField(dst, otlpSeverityText, known, "severity_text")

	body, bodyAt := otlpBodyOf(e.Body)
	dst, err := o.appendAttributes(dst, known, e.Body, bodyAt)
	if err != nil {
		return dst, err
	}
	dst = o.appendID(dst, otlpTraceID, known, "trace_id", 16)
	dst = o.appendID(dst, otlpSpanID, known, "span_id", 8)

	dst = w.open(dst, otlpBody)
	inside := len(dst)
	if dst, _, err = o.appendAny(dst, body, 0, depthBody); err != nil {
		return dst, err
	}
	dst = w.close(dst, inside)

	dst = o.appendCount(dst, otlpDropped, known)
	if n, ok := otlpUint(known, "trace_flags", math.MaxUint32); ok && n > 0 { // the input writes zero for none
		dst = w.flags(dst, otlpFlags, uint32(n))
	}
	dst = o.appendTextField(dst, otlpEventName, known, "event_name")
	return w.close(dst, at), nil
}

// otlpBodyOf returns the value that is the body of a record, and the position of its key among
// the fields of the record; that is -1 if it is the record as a whole.
func otlpBodyOf(record []byte) (value []byte, keyAt int) {
	for _, name := range otlpBodyKeys {
		if value, keyAt := otlpLookup(record, name); value != nil {
			return value, keyAt
		}
	}
	return record, -1
}

// appendAttributes appends the attributes of a record: those that it came with, and its fields
// beside the one at bodyAt that is the body. The built-in output drops the latter.
func (o *OTLP) appendAttributes(dst, known, record []byte, bodyAt int) ([]byte, error) {
	attributes, ok := otlpMapField(known, "attributes")
	start := len(dst)
	dst = o.wire.openList(dst, otlpAttributes)
	empty := len(dst)
	var err error
	if ok {
		if dst, _, err = o.appendPairs(dst, attributes, 0, otlpAttributes, depthAttribute, -1); err != nil {
			return dst, err
		}
	}
	if bodyAt >= 0 {
		if dst, _, err = o.appendPairs(dst, record, 0, otlpAttributes, depthAttribute, bodyAt); err != nil {
			return dst, err
		}
	}
	if len(dst) == empty {
		return dst[:start], nil
	}
	return o.wire.closeList(dst), nil
}

// appendPairs appends the pairs of the map at b[pos:] as items of a field, but not the one whose
// key is at skip, and returns the position behind the map. Their values are at the given depth.
func (o *OTLP) appendPairs(dst, b []byte, pos int, f otlpField, depth, skip int) ([]byte, int, error) {
	h, pos := chunk.ReadHead(b, pos)
	if h.Type != chunk.Map {
		return dst, pos, errNotMap
	}
	for pairs := h.N; pairs > 0; pairs-- {
		var err error
		if pos == skip {
			if pos, err = chunk.Skip(b, pos); err == nil {
				pos, err = chunk.Skip(b, pos)
			}
			if err != nil {
				return dst, pos, err
			}
			continue
		}
		dst = o.wire.openItem(dst, f)
		at := len(dst)
		if dst, pos, err = o.appendKey(dst, b, pos); err != nil {
			return dst, pos, err
		}
		dst = o.wire.open(dst, otlpValue)
		inside := len(dst)
		if dst, pos, err = o.appendAny(dst, b, pos, depth); err != nil {
			return dst, pos, err
		}
		dst = o.wire.close(dst, inside)
		dst = o.wire.close(dst, at)
	}
	return dst, pos, nil
}

// appendKey appends the key at b[pos:] as a text, which is its JSON if it is none itself.
func (o *OTLP) appendKey(dst, b []byte, pos int) ([]byte, int, error) {
	h, at := chunk.ReadHead(b, pos)
	switch h.Type {
	case chunk.Invalid:
		return dst, pos, chunk.HeadError(b, pos)
	case chunk.Array, chunk.Map:
		return o.appendJSON(dst, otlpKey, b, pos)
	case chunk.Str, chunk.Bin:
		end := at + int(h.N)
		return o.wire.text(dst, otlpKey, b[at:end]), end, nil
	default:
		o.word, pos = appendScalar(o.word[:0], b, at, h)
		return o.wire.text(dst, otlpKey, bytes.Trim(o.word, `"`)), pos, nil
	}
}

// appendJSON appends the array or map at b[pos:] as a text in a field: its JSON.
func (o *OTLP) appendJSON(dst []byte, f otlpField, b []byte, pos int) ([]byte, int, error) {
	end, err := chunk.Skip(b, pos)
	if err == nil {
		o.word, err = o.json.appendAny(o.word[:0], b, pos)
	}
	if err != nil {
		return dst, pos, err
	}
	return o.wire.text(dst, f, o.word), end, nil
}

// The messages that an array and a map put between their own AnyValue and those of their elements.
const (
	depthOfArray = 2
	depthOfMap   = 3
)

// appendAny appends the value at b[pos:] as the field of an AnyValue that is for it, and returns
// the position behind it. Which one that is follows the OpenTelemetry specification (mapping to
// AnyValue): integers past 64 bits with a sign become texts, texts that are no UTF-8 bytes.
// Arrays and maps whose elements would be deeper than readers go become texts too.
func (o *OTLP) appendAny(dst, b []byte, pos, depth int) ([]byte, int, error) {
	w := o.wire
	h, at := chunk.ReadHead(b, pos)
	if h.Type == chunk.Array && depth+depthOfArray > maxOTLPDepth || h.Type == chunk.Map && depth+depthOfMap > maxOTLPDepth {
		return o.appendJSON(dst, otlpString, b, pos)
	}
	switch h.Type {
	case chunk.Invalid:
		return dst, pos, chunk.HeadError(b, pos)
	case chunk.Bool:
		return w.boolean(dst, otlpBool, h.N != 0), at, nil
	case chunk.Uint:
		if h.N > math.MaxInt64 {
			o.word = strconv.AppendUint(o.word[:0], h.N, 10)
			return w.text(dst, otlpString, o.word), at, nil
		}
		return w.integer(dst, otlpInt, h.Int()), at, nil
	case chunk.Int:
		return w.integer(dst, otlpInt, h.Int()), at, nil
	case chunk.Float:
		return w.double(dst, otlpDouble, h.Float()), at, nil
	case chunk.Str:
		end := at + int(h.N)
		if text := b[at:end]; utf8.Valid(text) {
			return w.text(dst, otlpString, text), end, nil
		}
		return w.bytes(dst, otlpBytes, b[at:end]), end, nil
	case chunk.Bin:
		end := at + int(h.N)
		return w.bytes(dst, otlpBytes, b[at:end]), end, nil
	case chunk.Ext:
		end := at + int(h.N)
		dst, err := o.appendExt(dst, h.ExtType, b[at:end], depth)
		return dst, end, err
	case chunk.Array:
		return o.appendArray(dst, b, at, h.N, depth)
	case chunk.Map:
		dst = w.open(dst, otlpKVList)
		inside := len(dst)
		dst, pos, err := o.appendPairs(w.openList(dst, otlpValues), b, pos, otlpValues, depth+depthOfMap, -1)
		return w.close(w.closeList(dst), inside), pos, err
	default: // null is a value without a field
		return dst, at, nil
	}
}

// appendArray appends n elements at b[pos:].
func (o *OTLP) appendArray(dst, b []byte, pos int, n uint64, depth int) ([]byte, int, error) {
	w := o.wire
	dst = w.open(dst, otlpArray)
	inside := len(dst)
	dst = w.openList(dst, otlpValues)
	for ; n > 0; n-- {
		dst = w.openItem(dst, otlpValues)
		at := len(dst)
		var err error
		if dst, pos, err = o.appendAny(dst, b, pos, depth+depthOfArray); err != nil {
			return dst, pos, err
		}
		dst = w.close(dst, at)
	}
	return w.close(w.closeList(dst), inside), pos, nil
}

// appendExt appends an event time as its text, and any other ext as a map of its type and bytes.
func (o *OTLP) appendExt(dst []byte, typ int8, payload []byte, depth int) ([]byte, error) {
	if typ == 0 && len(payload) == 8 {
		o.word = appendExt(o.word[:0], typ, payload)
		return o.wire.text(dst, otlpString, bytes.Trim(o.word, `"`)), nil
	}
	number := chunk.Head{Type: chunk.Uint, N: uint64(typ)}
	if typ < 0 {
		number.Type = chunk.Int
	}
	o.word = appendHead(append(o.word[:0], "\x82\xa4type"...), number)
	o.word = appendHead(append(o.word, "\xa4data"...), chunk.Head{Type: chunk.Bin, N: uint64(len(payload))})
	o.word = append(o.word, payload...)
	dst, _, err := o.appendAny(dst, o.word, 0, depth)
	return dst, err
}

// appendTextField appends the text under the name, if there is one.
func (o *OTLP) appendTextField(dst []byte, f otlpField, m []byte, name string) []byte {
	if v, _ := otlpLookup(m, name); v != nil {
		if h, at := chunk.ReadHead(v, 0); h.Type == chunk.Str {
			return o.wire.text(dst, f, v[at:])
		}
	}
	return dst
}

// appendCount appends how many attributes were dropped, if that is known.
func (o *OTLP) appendCount(dst []byte, f otlpField, m []byte) []byte {
	if n, ok := otlpUint(m, "dropped_attributes_count", math.MaxUint32); ok {
		return o.wire.count(dst, f, uint32(n))
	}
	return dst
}

// appendID appends an id of n bytes, which may also be a text in hex. One of another length is
// none to a reader either, and left out.
func (o *OTLP) appendID(dst []byte, f otlpField, m []byte, name string, n int) []byte {
	v, _ := otlpLookup(m, name)
	if v == nil {
		return dst
	}
	h, at := chunk.ReadHead(v, 0)
	switch {
	case h.Type == chunk.Bin && h.N == uint64(n):
		return o.wire.id(dst, f, v[at:])
	case h.Type == chunk.Str && h.N == uint64(2*n):
		var err error
		if o.word, err = hex.AppendDecode(o.word[:0], v[at:]); err == nil {
			return o.wire.id(dst, f, o.word)
		}
	}
	return dst
}

// otlpLookup returns the value under a name in a msgpack map and the position of its key, or nil.
// As in the built-in output the first one counts, in any letter case.
func otlpLookup(m []byte, name string) (value []byte, keyAt int) {
	h, pos := chunk.ReadHead(m, 0)
	if h.Type != chunk.Map {
		return nil, 0
	}
	for pairs := h.N; pairs > 0; pairs-- {
		key, next, err := accessor.ReadKey(m, pos)
		if err != nil {
			return nil, 0
		}
		end, err := chunk.Skip(m, next)
		if err != nil {
			return nil, 0
		}
		if len(key) == len(name) && strings.EqualFold(string(key), name) {
			return m[next:end:end], pos
		}
		pos = end
	}
	return nil, 0
}

// otlpMapField returns the map under a name, if there is one.
func otlpMapField(m []byte, name string) ([]byte, bool) {
	v, _ := otlpLookup(m, name)
	h, _ := chunk.ReadHead(v, 0)
	return v, h.Type == chunk.Map
}

// otlpUint returns the number under a name, if there is one up to the largest.
func otlpUint(m []byte, name string, largest uint64) (uint64, bool) {
	v, _ := otlpLookup(m, name)
	h, _ := chunk.ReadHead(v, 0)
	return h.N, h.Type == chunk.Uint && h.N <= largest
}

package format

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// otlpField is a field of an OTLP message: its name in JSON and its number in protobuf.
type otlpField struct {
	name   string
	number protowire.Number
}

// The fields of the messages from LogsData down to AnyValue, as opentelemetry/proto has them.
var (
	otlpResourceLogs = otlpField{"resourceLogs", 1}

	otlpResource  = otlpField{"resource", 1}
	otlpScopeLogs = otlpField{"scopeLogs", 2}
	otlpSchemaURL = otlpField{"schemaUrl", 3} // of resource logs and of scope logs

	otlpResourceAttributes = otlpField{"attributes", 1}
	otlpResourceDropped    = otlpField{"droppedAttributesCount", 2}

	otlpScope      = otlpField{"scope", 1}
	otlpLogRecords = otlpField{"logRecords", 2}

	otlpScopeName       = otlpField{"name", 1}
	otlpScopeVersion    = otlpField{"version", 2}
	otlpScopeAttributes = otlpField{"attributes", 3}
	otlpScopeDropped    = otlpField{"droppedAttributesCount", 4}

	otlpTime           = otlpField{"timeUnixNano", 1}
	otlpSeverityNumber = otlpField{"severityNumber", 2}
	otlpSeverityText   = otlpField{"severityText", 3}
	otlpBody           = otlpField{"body", 5}
	otlpAttributes     = otlpField{"attributes", 6}
	otlpDropped        = otlpField{"droppedAttributesCount", 7}
	otlpFlags          = otlpField{"flags", 8}
	otlpTraceID        = otlpField{"traceId", 9}
	otlpSpanID         = otlpField{"spanId", 10}
	otlpObservedTime   = otlpField{"observedTimeUnixNano", 11}
	otlpEventName      = otlpField{"eventName", 12}

	otlpString = otlpField{"stringValue", 1}
	otlpBool   = otlpField{"boolValue", 2}
	otlpInt    = otlpField{"intValue", 3}
	otlpDouble = otlpField{"doubleValue", 4}
	otlpArray  = otlpField{"arrayValue", 5}
	otlpKVList = otlpField{"kvlistValue", 6}
	otlpBytes  = otlpField{"bytesValue", 7}

	otlpValues = otlpField{"values", 1} // of an array and of a list of pairs
	otlpKey    = otlpField{"key", 1}
	otlpValue  = otlpField{"value", 2}
)

// otlpWire writes the fields of OTLP messages in one of the two encodings. What was written
// for some fields may be kept and put behind what was written for others: the bytes of a
// message are those of its fields in a row.
type otlpWire interface {
	// begin and end stand around the whole.
	begin(dst []byte) []byte
	end(dst []byte) []byte
	// open begins a message in a field. Its fields follow, and then close, which is told
	// where they began.
	open(dst []byte, f otlpField) []byte
	close(dst []byte, at int) []byte
	// openList begins a repeated field, whose messages begin with openItem.
	openList(dst []byte, f otlpField) []byte
	openItem(dst []byte, f otlpField) []byte
	closeList(dst []byte) []byte
	// text writes what is UTF-8, and U+FFFD for each byte that is not.
	text(dst []byte, f otlpField, s []byte) []byte
	bytes(dst []byte, f otlpField, b []byte) []byte
	id(dst []byte, f otlpField, id []byte) []byte
	boolean(dst []byte, f otlpField, v bool) []byte
	integer(dst []byte, f otlpField, v int64) []byte
	double(dst []byte, f otlpField, v float64) []byte
	time(dst []byte, f otlpField, nanoseconds uint64) []byte
	count(dst []byte, f otlpField, n uint32) []byte
	flags(dst []byte, f otlpField, n uint32) []byte
}

// otlpProto is protobuf.
type otlpProto struct{}

func (otlpProto) begin(dst []byte) []byte                   { return dst }
func (otlpProto) end(dst []byte) []byte                     { return dst }
func (otlpProto) openList(dst []byte, _ otlpField) []byte   { return dst }
func (otlpProto) closeList(dst []byte) []byte               { return dst }
func (p otlpProto) openItem(dst []byte, f otlpField) []byte { return p.open(dst, f) }

// open leaves one byte for the length, which is enough for most values.
func (otlpProto) open(dst []byte, f otlpField) []byte {
	return append(protowire.AppendTag(dst, f.number, protowire.BytesType), 0)
}

func (otlpProto) close(dst []byte, at int) []byte {
	n := uint64(len(dst) - at)
	if more := protowire.SizeVarint(n) - 1; more > 0 {
		dst = slices.Grow(dst, more)[:len(dst)+more]
		copy(dst[at+more:], dst[at:])
	}
	binary.PutUvarint(dst[at-1:], n)
	return dst
}

func (otlpProto) text(dst []byte, f otlpField, s []byte) []byte {
	return appendCounted(protowire.AppendTag(dst, f.number, protowire.BytesType), s, func(dst []byte, n int) []byte {
		return protowire.AppendVarint(dst, uint64(n))
	})
}

func (otlpProto) bytes(dst []byte, f otlpField, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, f.number, protowire.BytesType), b)
}

func (p otlpProto) id(dst []byte, f otlpField, id []byte) []byte { return p.bytes(dst, f, id) }

func (p otlpProto) boolean(dst []byte, f otlpField, v bool) []byte {
	return p.varint(dst, f, protowire.EncodeBool(v))
}

func (p otlpProto) integer(dst []byte, f otlpField, v int64) []byte {
	return p.varint(dst, f, uint64(v))
}

func (otlpProto) double(dst []byte, f otlpField, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type), math.Float64bits(v))
}

func (otlpProto) time(dst []byte, f otlpField, nanoseconds uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type), nanoseconds)
}

func (p otlpProto) count(dst []byte, f otlpField, n uint32) []byte {
	return p.varint(dst, f, uint64(n))
}

func (otlpProto) flags(dst []byte, f otlpField, n uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(dst, f.number, protowire.Fixed32Type), n)
}

func (otlpProto) varint(dst []byte, f otlpField, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType), v)
}

// otlpJSON is the JSON of protobuf with the rules of OTLP: ids in hex, enumerations as numbers.
// Each value is followed by a comma, which the end of what it stands in takes away again.
type otlpJSON struct {
	style *textStyle
}

func (otlpJSON) begin(dst []byte) []byte { return append(dst, '{') }

func (otlpJSON) end(dst []byte) []byte { return append(trimComma(dst), '}') }

func trimComma(dst []byte) []byte {
	if n := len(dst) - 1; dst[n] == ',' {
		return dst[:n]
	}
	return dst
}

// name appends the name of a field. Names need no escaping.
func (otlpJSON) name(dst []byte, f otlpField) []byte {
	return append(append(append(dst, '"'), f.name...), `":`...)
}

func (j otlpJSON) open(dst []byte, f otlpField) []byte { return append(j.name(dst, f), '{') }

func (otlpJSON) openItem(dst []byte, _ otlpField) []byte { return append(dst, '{') }

func (otlpJSON) close(dst []byte, _ int) []byte { return append(trimComma(dst), "},"...) }

func (j otlpJSON) openList(dst []byte, f otlpField) []byte { return append(j.name(dst, f), '[') }

func (otlpJSON) closeList(dst []byte) []byte { return append(trimComma(dst), "],"...) }

func (j otlpJSON) text(dst []byte, f otlpField, s []byte) []byte {
	return append(appendText(j.name(dst, f), s[:cap(s)], 0, len(s), j.style), ',') // what follows may be read
}

func (j otlpJSON) bytes(dst []byte, f otlpField, b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(j.name(dst, f), '"'), b), `",`...)
}

func (j otlpJSON) id(dst []byte, f otlpField, id []byte) []byte {
	return append(hex.AppendEncode(append(j.name(dst, f), '"'), id), `",`...)
}

func (j otlpJSON) boolean(dst []byte, f otlpField, v bool) []byte {
	return append(strconv.AppendBool(j.name(dst, f), v), ',')
}

func (j otlpJSON) integer(dst []byte, f otlpField, v int64) []byte {
	return append(strconv.AppendInt(append(j.name(dst, f), '"'), v, 10), `",`...)
}

func (j otlpJSON) double(dst []byte, f otlpField, v float64) []byte {
	return append(appendOTLPFloat(j.name(dst, f), v), ',')
}

// appendOTLPFloat writes what JSON has no number for as the texts that protobuf has for it.
func appendOTLPFloat(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	return appendFloat(dst, v)
}

func (j otlpJSON) time(dst []byte, f otlpField, nanoseconds uint64) []byte {
	return append(strconv.AppendUint(append(j.name(dst, f), '"'), nanoseconds, 10), `",`...)
}

func (j otlpJSON) count(dst []byte, f otlpField, n uint32) []byte {
	return append(strconv.AppendUint(j.name(dst, f), uint64(n), 10), ',')
}

func (j otlpJSON) flags(dst []byte, f otlpField, n uint32) []byte { return j.count(dst, f, n) }

package format

import (
	"encoding/base64"
	"math"
	"strconv"

	"out_kafka_reconnect/plugin/chunk"
)

// appendScalar appends a value that is neither a text nor an array or map. The head is
// known to be valid, and pos is the position behind it; the result is the position
// behind the payload.
func appendScalar(dst, b []byte, pos int, h chunk.Head) ([]byte, int) {
	switch h.Type {
	case chunk.Uint:
		return strconv.AppendUint(dst, h.N, 10), pos
	case chunk.Int:
		return strconv.AppendInt(dst, h.Int(), 10), pos
	case chunk.Float:
		return appendFloat(dst, h.Float()), pos
	case chunk.Bool:
		if h.N != 0 {
			return append(dst, "true"...), pos
		}
		return append(dst, "false"...), pos
	case chunk.Ext:
		end := pos + int(h.N)
		return appendExt(dst, h.ExtType, b[pos:end]), end
	default:
		return append(dst, "null"...), pos
	}
}

// appendFloat appends the shortest text that reads back as the same float64. It has
// the shape that C gives with %.16g in Fluent Bit: a whole number that fits 64 bits in
// full with ".0", otherwise an exponent for what is below 1e-4 or from 1e16 on. Where 16
// digits lose a bit, ours has 17. A float32 is written as the float64 it equals, so
// that a reader gets the same number, not as the shortest float32.
func appendFloat(dst []byte, f float64) []byte {
	if f >= -(1<<63) && f < 1<<63 {
		if i := int64(f); float64(i) == f {
			if i == 0 && math.Signbit(f) {
				return append(dst, "-0.0"...)
			}
			return append(strconv.AppendInt(dst, i, 10), ".0"...)
		}
	}
	abs := math.Abs(f)
	switch {
	case abs >= 1e-4 && abs < 1e16:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	case abs <= math.MaxFloat64:
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return append(dst, "null"...) // JSON has neither NaN nor infinity.
}

// appendExt appends an event time as text and any other ext as an object. Fluent Bit
// writes a string with \x escapes, which no JSON reader accepts.
func appendExt(dst []byte, typ int8, payload []byte) []byte {
	if typ == 0 && len(payload) == 8 {
		sec, nsec := chunk.EventTime(payload)
		dst = append(dst, '"')
		dst = appendDate(dst, sec)
		dst = appendDigits(dst, uint32(nsec), 9)
		return append(dst, `Z"`...)
	}
	dst = append(dst, `{"type":`...)
	dst = strconv.AppendInt(dst, int64(typ), 10)
	dst = append(dst, `,"data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, payload)
	return append(dst, `"}`...)
}

// Package chunktest builds chunks for tests: the counterpart of the reader in package
// chunk. Each function appends one msgpack value, or the head of one, to a slice. It
// writes what it is told, valid or not, so that broken chunks can be made as well.
package chunktest

import (
	"encoding/binary"
	"math"
)

var be = binary.BigEndian

// Nil appends nil.
func Nil(b []byte) []byte { return append(b, 0xc0) }

// Bool appends true or false.
func Bool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

// Uint appends an unsigned integer in its shortest form.
func Uint(b []byte, v uint64) []byte {
	switch {
	case v < 0x80:
		return append(b, byte(v))
	case v <= math.MaxUint8:
		return append(b, 0xcc, byte(v))
	case v <= math.MaxUint16:
		return be.AppendUint16(append(b, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		return be.AppendUint32(append(b, 0xce), uint32(v))
	}
	return be.AppendUint64(append(b, 0xcf), v)
}

// Int appends a signed integer; one that is not negative becomes a [Uint].
func Int(b []byte, v int64) []byte {
	switch {
	case v >= 0:
		return Uint(b, uint64(v))
	case v >= -32:
		return append(b, byte(v))
	case v >= math.MinInt8:
		return append(b, 0xd0, byte(v))
	case v >= math.MinInt16:
		return be.AppendUint16(append(b, 0xd1), uint16(v))
	case v >= math.MinInt32:
		return be.AppendUint32(append(b, 0xd2), uint32(v))
	}
	return be.AppendUint64(append(b, 0xd3), uint64(v))
}

// Float64 appends a double.
func Float64(b []byte, v float64) []byte {
	return be.AppendUint64(append(b, 0xcb), math.Float64bits(v))
}

// Float32 appends a single.
func Float32(b []byte, v float32) []byte {
	return be.AppendUint32(append(b, 0xca), math.Float32bits(v))
}

// Str appends a text, which need not be valid UTF-8.
func Str(b []byte, s string) []byte {
	if len(s) < 32 {
		b = append(b, 0xa0|byte(len(s)))
	} else {
		b = head(b, 0xd9, len(s))
	}
	return append(b, s...)
}

// Bin appends a binary value.
func Bin(b []byte, s string) []byte { return append(head(b, 0xc4, len(s)), s...) }

// Ext appends an ext of the given type, never in a fixed-length form.
func Ext(b []byte, typ int8, payload string) []byte {
	return append(append(head(b, 0xc7, len(payload)), byte(typ)), payload...)
}

// Array appends the head of an array of n elements.
func Array(b []byte, n int) []byte {
	if n < 16 {
		return append(b, 0x90|byte(n))
	}
	return head(b, 0xdb, n)
}

// Map appends the head of a map of n pairs.
func Map(b []byte, n int) []byte {
	if n < 16 {
		return append(b, 0x80|byte(n))
	}
	return head(b, 0xdd, n)
}

// head appends a length in the shortest of the forms that begin at first: one, two or
// four bytes wide. Arrays and maps have no form of one byte, so their callers pass
// the byte before their first and lengths go to the second form at once.
func head(b []byte, first byte, n int) []byte {
	switch {
	case n <= math.MaxUint8 && first != 0xdb && first != 0xdd:
		return append(b, first, byte(n))
	case n <= math.MaxUint16:
		return be.AppendUint16(append(b, first+1), uint16(n))
	}
	return be.AppendUint32(append(b, first+2), uint32(n))
}

// Time appends Fluent Bit's event time, an ext of type 0.
func Time(b []byte, sec, nsec uint32) []byte {
	return be.AppendUint32(be.AppendUint32(append(b, 0xd7, 0x00), sec), nsec)
}

// Head appends what stands before the body of a record in the present layout: the
// time and empty metadata. The body, one map, must follow.
func Head(b []byte, sec, nsec uint32) []byte {
	return Map(Time(append(b, 0x92, 0x92), sec, nsec), 0)
}

package chunk

import (
	"encoding/binary"
	"math"
)

// Type says what kind of msgpack value a [Head] announces. The width of the
// encoding is not kept: it carries no meaning in a record.
type Type uint8

// The types of values.
const (
	// Invalid announces that no value can be read; [HeadError] says why.
	Invalid Type = iota
	Nil
	Bool
	// Uint is any integer that is not negative, also one in a signed encoding.
	Uint
	// Int is a negative integer.
	Int
	// Float is a float64, or a float32 widened to one.
	Float
	Str
	Bin
	Array
	Map
	Ext
)

// Head is the first part of a msgpack value: everything but the payload of a text,
// a bin or an ext, and the elements of an array or a map.
type Head struct {
	// N depends on Type. Bool: 0 or 1. Uint: the number. Int: the number in two's
	// complement. Float: the bits of the float64. Str, Bin, Ext: the length of the
	// payload, which is certain to lie within the bytes. Array: the number of
	// elements. Map: the number of pairs. The bytes are certain to be no fewer than
	// the elements announced, so N is safe to size things by.
	N uint64
	// Type is the kind of the value.
	Type Type
	// ExtType is the application's number of an Ext and zero otherwise.
	ExtType int8
}

// Float returns the number of a Float head.
func (h Head) Float() float64 { return math.Float64frombits(h.N) }

// Int returns the number of an Int head.
func (h Head) Int() int64 { return int64(h.N) }

// ReadHead reads the head of the value at b[pos:] and returns it with the position
// behind it, where the payload or the first element begins. Its Type is Invalid if
// there is no value; the position then means nothing. There is no error result, so
// that a head fits in registers: reading heads is what the formats spend their time
// on.
func ReadHead(b []byte, pos int) (Head, int) {
	if uint(pos) >= uint(len(b)) {
		return Head{}, pos
	}
	c := b[pos]
	pos++
	switch {
	case c < 0x80:
		return Head{Type: Uint, N: uint64(c)}, pos
	case c < 0x90:
		return sized(Map, uint64(c&0x0f), b, pos)
	case c < 0xa0:
		return sized(Array, uint64(c&0x0f), b, pos)
	case c < 0xc0:
		return sized(Str, uint64(c&0x1f), b, pos)
	case c >= 0xe0:
		return Head{Type: Int, N: uint64(int64(int8(c)))}, pos
	}
	return readLong(c, b, pos)
}

// readLong reads the heads whose first byte says nothing but the encoding, 0xc0 to
// 0xdf.
func readLong(c byte, b []byte, pos int) (Head, int) {
	width := int(widths[c-0xc0])
	if len(b)-pos < width {
		return Head{}, pos
	}
	n := bigEndian(b[pos : pos+width])
	pos += width
	switch c {
	case 0xc0:
		return Head{Type: Nil}, pos
	case 0xc2, 0xc3:
		return Head{Type: Bool, N: uint64(c & 1)}, pos
	case 0xc4, 0xc5, 0xc6:
		return sized(Bin, n, b, pos)
	case 0xc7, 0xc8, 0xc9:
		return sizedExt(n, b, pos)
	case 0xca:
		return Head{Type: Float, N: math.Float64bits(float64(math.Float32frombits(uint32(n))))}, pos
	case 0xcb:
		return Head{Type: Float, N: n}, pos
	case 0xcc, 0xcd, 0xce, 0xcf:
		return Head{Type: Uint, N: n}, pos
	case 0xd0, 0xd1, 0xd2, 0xd3:
		shift := 64 - 8*width
		v := int64(n<<shift) >> shift
		if v >= 0 {
			return Head{Type: Uint, N: uint64(v)}, pos
		}
		return Head{Type: Int, N: uint64(v)}, pos
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return sizedExt(1<<(c-0xd4), b, pos)
	case 0xd9, 0xda, 0xdb:
		return sized(Str, n, b, pos)
	case 0xdc, 0xdd:
		return sized(Array, n, b, pos)
	case 0xde, 0xdf:
		return sized(Map, n, b, pos)
	}
	return Head{}, pos
}

// widths holds, for the first bytes 0xc0 to 0xdf, how many bytes of number or length
// follow at once.
var widths = [32]uint8{
	0, 0, 0, 0, // nil, reserved, false, true
	1, 2, 4, // bin
	1, 2, 4, // ext; its type follows the length
	4, 8, // float
	1, 2, 4, 8, // unsigned
	1, 2, 4, 8, // signed
	0, 0, 0, 0, 0, // fixext
	1, 2, 4, // str
	2, 4, // array
	2, 4, // map
}

func bigEndian(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// sized returns a head that announces n bytes, elements or pairs, or an invalid one
// if the bytes from pos on cannot hold as many. An element takes one byte at least.
func sized(t Type, n uint64, b []byte, pos int) (Head, int) {
	least := n
	if t == Map {
		least *= 2
	}
	if least > uint64(len(b)-pos) {
		return Head{}, pos
	}
	return Head{Type: t, N: n}, pos
}

// sizedExt is sized for an ext, whose type byte stands between length and payload.
func sizedExt(n uint64, b []byte, pos int) (Head, int) {
	if n+1 > uint64(len(b)-pos) {
		return Head{}, pos
	}
	return Head{Type: Ext, N: n, ExtType: int8(b[pos])}, pos + 1
}

// HeadError says why [ReadHead] found no value at b[pos:].
func HeadError(b []byte, pos int) error {
	if pos >= 0 && pos < len(b) && b[pos] == 0xc1 {
		return ErrReserved
	}
	return ErrTruncated
}

package format

import (
	"encoding/binary"
	"math"
	"math/bits"

	"out_kafka_reconnect/plugin/chunk"
)

// MsgPackConfig is what a [MsgPack] writes besides the record itself.
type MsgPackConfig struct {
	// TimestampKey is where the time of the record goes, in front of the record's own
	// entries and whether or not they have the key too. Empty: the time is not written.
	TimestampKey    string
	TimestampFormat TimestampFormat
	// TagKey and MetadataKey are where the tag and the metadata of the record go, behind the
	// time and in the same way. Empty: they are not written.
	TagKey, MetadataKey string
}

// MsgPack writes records as MessagePack maps: what Fluent Bit holds, with the time in front
// and every head in its shortest form. Most heads have it already, so the record is copied
// in long runs.
type MsgPack struct {
	// The packed keys of the fields of ours; nil: the field is not written.
	timeKey, tagKey, metadataKey []byte

	format TimestampFormat
	date   dateText
	tag    []byte        // of the chunk, packed
	head   [maxHead]byte // scratch
}

// maxHead is the length of the longest head that is written: one of an ext.
const maxHead = 9

// NewMsgPack returns an encoder.
func NewMsgPack(c MsgPackConfig) *MsgPack {
	m := &MsgPack{
		timeKey: packedKey(c.TimestampKey), tagKey: packedKey(c.TagKey), metadataKey: packedKey(c.MetadataKey),
		format: c.TimestampFormat,
	}
	m.SetTag("")
	return m
}

// packedKey returns the packed form of a key, or nil for none.
func packedKey(key string) []byte {
	if key == "" {
		return nil
	}
	return appendPackedText(nil, key)
}

func appendPackedText(dst []byte, text string) []byte {
	return append(appendHead(dst, chunk.Head{Type: chunk.Str, N: uint64(len(text))}), text...)
}

// SetTag is called before the records of a chunk.
func (m *MsgPack) SetTag(tag string) {
	if m.tagKey != nil {
		m.tag = appendPackedText(m.tag[:0], tag)
	}
}

// AppendValue appends the record as one map. A record that came from a [chunk.Walker] does
// not fail.
func (m *MsgPack) AppendValue(dst []byte, e *chunk.Entry) ([]byte, error) {
	b := e.Body
	pairs, pos, err := readBody(b)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	if dst, err = m.appendOwn(dst, pairs, e); err == nil {
		dst, pos, err = m.appendValues(dst, b, pos, 2*pairs)
	}
	if err == nil && pos != len(b) {
		err = errTrailing
	}
	if err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// appendOwn appends the head of the map of a record that has so many pairs, and the fields of
// ours. Empty metadata is none.
func (m *MsgPack) appendOwn(dst []byte, pairs uint64, e *chunk.Entry) ([]byte, error) {
	metadata, _ := chunk.ReadHead(e.Metadata, 0)
	hasMetadata := m.metadataKey != nil && metadata.N > 0
	for _, written := range [...]bool{m.timeKey != nil, m.tagKey != nil, hasMetadata} {
		if written {
			pairs++
		}
	}
	dst = appendHead(dst, chunk.Head{Type: chunk.Map, N: pairs})
	if m.timeKey != nil {
		dst = m.appendTime(append(dst, m.timeKey...), e.Sec, e.Nsec)
	}
	if m.tagKey != nil {
		dst = append(append(dst, m.tagKey...), m.tag...)
	}
	if !hasMetadata {
		return dst, nil
	}
	dst, _, err := m.appendValues(append(dst, m.metadataKey...), e.Metadata, 0, 1)
	return dst, err
}

func (m *MsgPack) appendTime(dst []byte, sec int64, nsec int32) []byte {
	digits := 9
	fraction := uint32(nsec)
	switch m.format {
	case TimestampISO8601:
		digits, fraction = 6, fraction/1000
	case TimestampISO8601NS:
	default:
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(float64(sec)+float64(nsec)/1e9))
	}
	date := m.date.of(sec)
	dst = appendHead(dst, chunk.Head{Type: chunk.Str, N: uint64(len(date) + digits + 1)})
	return append(appendDigits(append(dst, date...), fraction, digits), 'Z')
}

// appendValues appends the due values at b[pos:], elements included, and returns the
// position behind them. It counts instead of descending, as [chunk.Skip] does.
func (m *MsgPack) appendValues(dst, b []byte, pos int, due uint64) ([]byte, int, error) {
	run := pos // what lies between here and pos is copied as it is
	for ; due > 0; due-- {
		if pos >= len(b) {
			return dst, pos, chunk.ErrTruncated
		}
		switch c := b[pos]; {
		case c >= 0xa0 && c < 0xc0: // a short text; the end is checked by the next turn
			pos += 1 + int(c&0x1f)
			continue
		case c < 0x80 || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
			pos++
			continue
		case c == 0xca: // floats keep their width, which a Head does not tell
			pos += 5
			continue
		case c == 0xcb:
			pos += 9
			continue
		}
		h, next := chunk.ReadHead(b, pos)
		switch h.Type {
		case chunk.Invalid:
			return dst, pos, chunk.HeadError(b, pos)
		case chunk.Array:
			due += h.N
		case chunk.Map:
			due += 2 * h.N
		default:
		}
		// What is due takes a byte for each value: a hostile count ends here.
		if due-1 > uint64(len(b)-next) {
			return dst, pos, chunk.ErrTruncated
		}
		if head := appendHead(m.head[:0], h); string(head) != string(b[pos:next]) {
			dst = append(append(dst, b[run:pos]...), head...)
			run = next
		}
		pos = next
		if h.Type == chunk.Str || h.Type == chunk.Bin || h.Type == chunk.Ext {
			pos += int(h.N)
		}
	}
	if pos > len(b) {
		return dst, pos, chunk.ErrTruncated
	}
	return append(dst, b[run:pos]...), pos, nil
}

// appendHead appends a head in its shortest form. Nil, booleans and floats have one form
// only and never come here.
func appendHead(dst []byte, h chunk.Head) []byte {
	n := h.N
	switch h.Type {
	case chunk.Uint:
		if n < 0x80 {
			return append(dst, byte(n))
		}
		return appendSized(dst, 0xcc, n)
	case chunk.Int:
		return appendNegative(dst, h.Int())
	case chunk.Str:
		if n < 32 {
			return append(dst, 0xa0|byte(n))
		}
		return appendSized(dst, 0xd9, n)
	case chunk.Bin:
		return appendSized(dst, 0xc4, n)
	case chunk.Array:
		if n < 16 {
			return append(dst, 0x90|byte(n))
		}
		return appendWide(dst, 0xdc, n)
	case chunk.Map:
		if n < 16 {
			return append(dst, 0x80|byte(n))
		}
		return appendWide(dst, 0xde, n)
	default:
		return appendExtHead(dst, h)
	}
}

func appendNegative(dst []byte, v int64) []byte {
	switch {
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, 0xd0, byte(v))
	case v >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(v))
}

func appendExtHead(dst []byte, h chunk.Head) []byte {
	switch h.N {
	case 1, 2, 4, 8, 16:
		dst = append(dst, 0xd4+byte(bits.TrailingZeros64(h.N)))
	default:
		dst = appendSized(dst, 0xc7, h.N)
	}
	return append(dst, byte(h.ExtType))
}

// appendSized appends n in the narrowest of the forms that begin at first: one, two, four
// or eight bytes wide.
func appendSized(dst []byte, first byte, n uint64) []byte {
	if n <= math.MaxUint8 {
		return append(dst, first, byte(n))
	}
	return appendWide(dst, first+1, n)
}

// appendWide is appendSized for kinds without a form of one byte.
func appendWide(dst []byte, first byte, n uint64) []byte {
	switch {
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, first), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, first+1), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, first+2), n)
}

package parity

import (
	"math"
	"unicode/utf8"

	"out_kafka_reconnect/plugin/chunk"
)

// traits is what is odd about a record. A reason counts only for records that are odd in its way.
type traits struct {
	badText     bool // bytes that are not UTF-8 in a text or a bin
	control     bool // a control character
	ext         bool
	oddKey      bool // a key that is no text
	oddFloat    bool // NaN or infinite
	single      bool // a float of 32 bits
	float       bool
	floats      []float64 // of 32 bits too
	singles     []float64
	huge        bool // an integer above 2^63
	textInList  bool
	mapInList   bool
	plainTime   bool // a time that is an integer
	gelfTrouble bool // a float with more digits than the built-in output's GELF has room for, or a level that it does not take
	depth       int
}

// levelKey is the key of GELF's level.
var levelKey = str("level")

// traitsOf looks at all entries of a chunk.
func traitsOf(data []byte) traits {
	var t traits
	var e chunk.Entry
	for w := chunk.NewWalker(data); w.Next(&e); {
		if e.Kind == chunk.Undecodable {
			continue
		}
		t.value(e.Body, 0, 0, false)
		if e.Metadata != nil {
			t.value(e.Metadata, 0, 0, false)
		}
		h, pos := chunk.ReadHead(data, e.Offset)
		if h.Type == chunk.Array {
			if h, next := chunk.ReadHead(data, pos); h.Type == chunk.Array {
				pos = next
			}
			h, _ = chunk.ReadHead(data, pos)
			t.plainTime = t.plainTime || h.Type == chunk.Uint
		}
	}
	return t
}

// value looks at the value at b[pos:] and returns where it ends.
func (t *traits) value(b []byte, pos, depth int, inList bool) int {
	start := pos
	h, pos := chunk.ReadHead(b, start)
	t.depth = max(t.depth, depth)
	switch h.Type {
	case chunk.Str, chunk.Bin:
		text := b[pos : pos+int(h.N)]
		t.badText = t.badText || !utf8.Valid(text)
		for _, c := range text {
			t.control = t.control || c < ' ' || c == 0x7f
		}
		t.textInList = t.textInList || inList
		return pos + len(text)
	case chunk.Ext:
		t.ext = true
		return pos + int(h.N)
	case chunk.Uint:
		t.huge = t.huge || h.N >= 1<<63
	case chunk.Float:
		f := h.Float()
		t.float = true
		t.oddFloat = t.oddFloat || f-f != 0
		if b[start] == 0xca {
			t.single, t.singles = true, append(t.singles, f)
		}
		t.floats = append(t.floats, f)
		t.gelfTrouble = t.gelfTrouble || math.Abs(f) > 1e250
	case chunk.Array:
		for range h.N {
			pos = t.value(b, pos, depth+1, true)
		}
	case chunk.Map:
		t.mapInList = t.mapInList || inList
		pos = t.pairs(b, pos, h.N, depth, inList)
	default:
	}
	return pos
}

func (t *traits) pairs(b []byte, pos int, n uint64, depth int, inList bool) int {
	for range n {
		key, _ := chunk.ReadHead(b, pos)
		if key.Type != chunk.Str {
			t.oddKey = true
		}
		next := t.value(b, pos, depth+1, inList)
		if value, _ := chunk.ReadHead(b, next); string(b[pos:next]) == levelKey && (value.Type == chunk.Nil || value.Type == chunk.Map) {
			t.gelfTrouble = true
		}
		pos = t.value(b, next, depth+1, inList)
	}
	return pos
}

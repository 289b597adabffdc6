package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"out_kafka_reconnect/plugin/accessor"
	"out_kafka_reconnect/plugin/chunk"
)

// maxAvroDepth is the number of types inside each other; a schema that stands inside itself
// sets no bound of its own. It also bounds the work, as each level reads over all below it.
const maxAvroDepth = 128

// ErrSchema says that a record does not have the shape of the Avro schema. The text before
// it names the field.
var ErrSchema = errors.New("the record does not fit the Avro schema")

// Avro writes records in Avro's binary form, framed as schema registries want it: a zero,
// the number of the schema in four bytes, and the record without any time added. Of a record that
// is written, only fields are left out for which the schema has no name: [Avro.Left] tells of them.
type Avro struct {
	schema *AvroSchema
	// whole makes an error of such a field.
	whole bool
	left  LeftOut
	// at holds, for each field of the records that are open, where its value begins in the
	// body; zero is nowhere, as the body begins with its head.
	at []int
}

// LeftOut is the fields that were left out of records.
type LeftOut struct {
	// Fields counts them.
	Fields int
	// Name is that of the first one, or the beginning of it; empty if its key is no text.
	Name string
}

// note counts a field.
func (l *LeftOut) note(name []byte) {
	if l.Fields == 0 {
		l.Name = string(shown(name))
	}
	l.Fields++
}

// AvroConfig configures an Avro encoder.
type AvroConfig struct {
	Schema *AvroSchema
	// RefuseUnknown makes an error of a record with a field that the schema has no name for.
	RefuseUnknown bool
}

// NewAvro returns an encoder of records of a schema.
func NewAvro(c AvroConfig) *Avro { return &Avro{schema: c.Schema, whole: c.RefuseUnknown} }

// Left returns what was left out of the records that were written since the last call.
func (a *Avro) Left() LeftOut {
	left := a.left
	a.left = LeftOut{}
	return left
}

// AppendValue appends the framed record. It fails with [ErrSchema] or [ErrTooDeep].
func (a *Avro) AppendValue(dst []byte, e *chunk.Entry) ([]byte, error) {
	start, left := len(dst), a.left
	a.at = a.at[:0]
	dst = binary.BigEndian.AppendUint32(append(dst, 0), a.schema.id)
	dst, pos, err := a.appendTyped(dst, e.Body, 0, a.schema.root, 0)
	if err == nil && pos != len(e.Body) {
		err = errTrailing
	}
	if err != nil {
		a.left = left
		return dst[:start], err
	}
	return dst, nil
}

// leave leaves a field out, if that is allowed. The key is nil if it is no text.
func (a *Avro) leave(key []byte) error {
	switch {
	case !a.whole:
		a.left.note(key)
		return nil
	case key == nil:
		return errNameless
	}
	return fmt.Errorf("%w: it has no field %q", ErrSchema, shown(key))
}

// shown is what is told of a key.
func shown(key []byte) []byte { return key[:min(len(key), maxShownName)] }

// mismatch is the error of a value that the type has no place for.
func mismatch(h chunk.Head, t *avroType) error {
	return fmt.Errorf("%w: %s is not for %s", ErrSchema, describe(h), t.kind)
}

// describe names a value in an error; texts are left to the dead letter.
func describe(h chunk.Head) string {
	switch h.Type {
	case chunk.Nil:
		return "null"
	case chunk.Bool:
		return "a boolean"
	case chunk.Uint:
		return fmt.Sprintf("the number %d", h.N)
	case chunk.Int:
		return fmt.Sprintf("the number %d", h.Int())
	case chunk.Float:
		return fmt.Sprintf("the number %v", h.Float())
	case chunk.Str:
		return "a text"
	case chunk.Bin:
		return "a binary value"
	case chunk.Array:
		return "an array"
	case chunk.Map:
		return "a map"
	default:
		return "an ext"
	}
}

// appendTyped appends the value at b[pos:] as the type wants it and returns the position
// behind it.
func (a *Avro) appendTyped(dst, b []byte, pos int, t *avroType, depth int) ([]byte, int, error) {
	h, at := chunk.ReadHead(b, pos)
	if h.Type == chunk.Invalid {
		return dst, pos, chunk.HeadError(b, pos)
	}
	if depth > maxAvroDepth {
		return dst, pos, ErrTooDeep
	}
	switch t.kind {
	case avroUnion:
		i, err := a.branch(b, at, h, t)
		if err != nil {
			return dst, pos, err
		}
		return a.appendTyped(appendLong(dst, int64(i)), b, pos, t.branches[i], depth+1)
	case avroArray:
		if h.Type == chunk.Array {
			return a.appendBlocks(dst, b, at, h.N, t, depth)
		}
	case avroMap:
		if h.Type == chunk.Map {
			return a.appendBlocks(dst, b, at, h.N, t, depth)
		}
	case avroRecord:
		if h.Type == chunk.Map {
			return a.appendRecord(dst, b, at, h.N, t, depth)
		}
	default:
		if fits(b, at, h, t) {
			dst, pos = appendPrimitive(dst, b, at, h, t)
			return dst, pos, nil
		}
	}
	return dst, pos, mismatch(h, t)
}

// fits tells whether a value can be written as a type that has no inside.
func fits(b []byte, pos int, h chunk.Head, t *avroType) bool {
	switch t.kind {
	case avroNull:
		return h.Type == chunk.Nil
	case avroBoolean:
		return h.Type == chunk.Bool
	case avroInt:
		return h.Type == chunk.Uint && h.N <= math.MaxInt32 || h.Type == chunk.Int && h.Int() >= math.MinInt32
	case avroLong:
		return h.Type == chunk.Uint && h.N <= math.MaxInt64 || h.Type == chunk.Int
	case avroFloat:
		f, ok := asFloat(h)
		if h.Type == chunk.Float { // rounded as the schema has it, but a number stays one
			return math.IsInf(f, 0) || !math.IsInf(float64(float32(f)), 0)
		}
		return ok && float64(float32(f)) == f
	case avroDouble:
		_, ok := asFloat(h)
		return ok
	case avroBytes:
		return h.Type == chunk.Bin || h.Type == chunk.Str || h.Type == chunk.Ext
	case avroString:
		return h.Type == chunk.Str || h.Type == chunk.Bin
	case avroFixed:
		return (h.Type == chunk.Bin || h.Type == chunk.Str || h.Type == chunk.Ext) && h.N == uint64(t.size)
	case avroEnum:
		if h.Type != chunk.Str {
			return false
		}
		_, ok := t.symbols[string(b[pos:pos+int(h.N)])]
		return ok
	default:
		return false
	}
}

// asFloat returns a number as a float64, if it is one exactly.
func asFloat(h chunk.Head) (float64, bool) {
	switch h.Type {
	case chunk.Float:
		return h.Float(), true
	case chunk.Uint:
		f := float64(h.N)
		return f, f < 1<<64 && uint64(f) == h.N
	case chunk.Int:
		f := float64(h.Int())
		return f, int64(f) == h.Int()
	default:
		return 0, false
	}
}

// appendPrimitive appends a value that fits.
func appendPrimitive(dst, b []byte, pos int, h chunk.Head, t *avroType) ([]byte, int) {
	switch t.kind {
	case avroBoolean:
		return append(dst, byte(h.N)), pos
	case avroInt, avroLong:
		return appendLong(dst, h.Int()), pos
	case avroFloat:
		f, _ := asFloat(h)
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), pos
	case avroDouble:
		f, _ := asFloat(h)
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), pos
	case avroBytes:
		end := pos + int(h.N)
		return append(appendLong(dst, int64(h.N)), b[pos:end]...), end
	case avroString:
		end := pos + int(h.N)
		return appendAvroString(dst, b[pos:end]), end
	case avroFixed:
		end := pos + int(h.N)
		return append(dst, b[pos:end]...), end
	case avroEnum:
		end := pos + int(h.N)
		return appendLong(dst, int64(t.symbols[string(b[pos:end])])), end
	default: // null takes no bytes
		return dst, pos
	}
}

// appendLong appends a number as Avro does: zigzag, seven bits a byte.
func appendLong(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// appendAvroString appends a text. Avro's is UTF-8, so each byte that is not part of such a
// text becomes U+FFFD, as in JSON.
func appendAvroString(dst, text []byte) []byte {
	return appendCounted(dst, text, func(dst []byte, n int) []byte { return appendLong(dst, int64(n)) })
}

// appendBlocks appends an array or map of n elements at b[pos:] as one block and the empty
// one that ends it.
func (a *Avro) appendBlocks(dst, b []byte, pos int, n uint64, t *avroType, depth int) ([]byte, int, error) {
	start := len(dst)
	dst = appendCount(dst, n)
	inside, all, written := len(dst), n, n
	for ; n > 0; n-- {
		var err error
		if t.kind == avroMap {
			name, next, err := accessor.ReadKey(b, pos)
			if err != nil {
				return dst, pos, err
			}
			if name == nil {
				if err := a.leave(nil); err != nil {
					return dst, pos, err
				}
				if pos, err = chunk.Skip(b, next); err != nil {
					return dst, pos, err
				}
				written--
				continue
			}
			dst, pos = appendAvroString(dst, name), next
		}
		if dst, pos, err = a.appendTyped(dst, b, pos, t.item, depth+1); err != nil {
			return dst, pos, err
		}
	}
	if written != all {
		dst = slices.Replace(dst, start, inside, appendCount(nil, written)...)
	}
	return append(dst, 0), pos, nil
}

// appendCount appends the head of a block of n elements; there is none without an element.
func appendCount(dst []byte, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return appendLong(dst, int64(n))
}

var errNameless = fmt.Errorf("%w: a key is no text", ErrSchema)

// appendRecord appends the map of n pairs at b[pos:] in the order of the fields of the
// schema. If a name stands there twice, the last one counts, as in JSON.
func (a *Avro) appendRecord(dst, b []byte, pos int, n uint64, t *avroType, depth int) ([]byte, int, error) {
	base := len(a.at)
	for range t.fields {
		a.at = append(a.at, 0)
	}
	for ; n > 0; n-- {
		name, value, err := accessor.ReadKey(b, pos)
		if err != nil {
			return dst, pos, err
		}
		if i, ok := t.field(name); ok {
			a.at[base+i] = value
		} else if err := a.leave(name); err != nil {
			return dst, pos, err
		}
		if pos, err = chunk.Skip(b, value); err != nil {
			return dst, pos, err
		}
	}
	for i := range t.fields {
		f := &t.fields[i]
		value := a.at[base+i]
		switch {
		case value != 0:
			var err error
			if dst, _, err = a.appendTyped(dst, b, value, f.typ, depth+1); err != nil {
				return dst, pos, fmt.Errorf("field %q: %w", f.name, err)
			}
		case f.missing != nil:
			dst = append(dst, f.missing...)
		default:
			return dst, pos, fmt.Errorf("%w: the field %q is missing", ErrSchema, f.name)
		}
	}
	a.at = a.at[:base]
	return dst, pos, nil
}

// maxShownName is how much of a record's key an error quotes.
const maxShownName = 80

// branchOrder holds, for each type of value, the kinds of branches that may hold it, the
// best first. Of a kind with several branches the first that fits is taken.
var branchOrder = map[chunk.Type][]avroKind{
	chunk.Nil:   {avroNull},
	chunk.Bool:  {avroBoolean},
	chunk.Uint:  {avroInt, avroLong, avroDouble, avroFloat},
	chunk.Int:   {avroInt, avroLong, avroDouble, avroFloat},
	chunk.Float: {avroDouble, avroFloat},
	chunk.Str:   {avroEnum, avroString, avroBytes, avroFixed},
	chunk.Bin:   {avroBytes, avroFixed, avroString},
	chunk.Ext:   {avroBytes, avroFixed},
	chunk.Array: {avroArray},
	chunk.Map:   {avroRecord, avroMap},
}

// branch picks the branch of a union by the value, whose inside begins at pos.
func (a *Avro) branch(b []byte, pos int, h chunk.Head, t *avroType) (int, error) {
	if h.Type == chunk.Map && t.mapBranches == 1 {
		return t.mapBranch, nil // an error of the record says more than one of the union
	}
	// partial is the record that has no name for the fewest of the keys.
	partial, fewest := -1, 0
	for _, kind := range branchOrder[h.Type] {
		for i, option := range t.branches {
			if option.kind != kind {
				continue
			}
			switch kind {
			case avroArray, avroMap:
				return i, nil // a union has one of these at most
			case avroRecord:
				unknown, ok, err := option.covers(b, pos, h.N)
				switch {
				case err != nil:
					return 0, err
				case ok && unknown == 0:
					return i, nil
				case ok && !a.whole && (partial < 0 || unknown < fewest):
					partial, fewest = i, unknown
				}
			default:
				if fits(b, pos, h, option) {
					return i, nil
				}
			}
		}
	}
	if partial >= 0 {
		return partial, nil
	}
	return 0, mismatch(h, t)
}

// field returns which field has the name, which is nil if a key is no text.
func (t *avroType) field(name []byte) (int, bool) {
	if name == nil {
		return 0, false
	}
	i, ok := t.index[string(name)]
	return i, ok
}

// covers tells how many keys of the map of n pairs at b[pos:] a record has no field for, and
// whether the map has every field that must be there. The values are not looked at, so that a
// choice costs no more than reading the keys.
func (t *avroType) covers(b []byte, pos int, n uint64) (unknown int, ok bool, err error) {
	needed := 0
	for i := range t.fields {
		if t.fields[i].missing == nil {
			needed++
		}
	}
	for ; n > 0; n-- {
		name, value, err := accessor.ReadKey(b, pos)
		if err != nil {
			return 0, false, err
		}
		if i, known := t.field(name); !known {
			unknown++
		} else if t.fields[i].missing == nil {
			needed--
		}
		if pos, err = chunk.Skip(b, value); err != nil {
			return 0, false, err
		}
	}
	return unknown, needed <= 0, nil
}

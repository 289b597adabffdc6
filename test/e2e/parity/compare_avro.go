package parity

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/twmb/avro"

	"out_kafka_reconnect/plugin/chunk"
)

// avroHead is how many bytes stand before the record: a zero and the number of the schema.
const avroHead = 5

// readAvro reads a value as a consumer does that has the schema.
func (c *comparison) readAvro(value []byte) (record any, err error) {
	schema, err := avro.Parse(c.section.key("schema_str"))
	if err != nil {
		return nil, err
	}
	if len(value) < avroHead {
		return nil, errors.New("no room for the number of the schema")
	}
	rest, err := schema.Decode(value[avroHead:], &record)
	if err == nil && len(rest) > 0 {
		err = errors.New("something follows")
	}
	return record, err
}

// avro compares two values in Avro.
func (c *comparison) avro(b, o []byte) bool {
	to, err := c.readAvro(o)
	if err != nil || len(b) < avroHead || !bytes.Equal(b[:avroHead], o[:avroHead]) {
		return false
	}
	tb, err := c.readAvro(b)
	if err == nil && reflect.DeepEqual(tb, to) {
		return c.because(spelling, true)
	}
	if err == nil && c.because(unknown, c.fieldsLost(tb, to)) {
		return true
	}
	return c.because(exts, c.traits.ext) || c.because(badText, c.traits.badText)
}

// madeUp tells whether a value says something that the record does not: it can't be read, or it has a field that is not in the
// record.
func (c *comparison) madeUp(value []byte) bool {
	read, err := c.readAvro(value)
	if err != nil {
		return true
	}
	fields, recorded := read.(map[string]any), c.recorded()
	for name := range fields {
		if _, ok := recorded[name]; !ok {
			return true
		}
	}
	return false
}

// fieldsLost tells whether the built-in output's value lacks fields behind one that the schema has no name for, and ours has
// each as it is in the record.
func (c *comparison) fieldsLost(builtin, ours any) bool {
	theirs, written, recorded := builtin.(map[string]any), ours.(map[string]any), c.recorded()
	strange := false
	for name := range recorded {
		_, ok := written[name]
		strange = strange || !ok
	}
	for name, value := range written {
		if was, ok := recorded[name]; !ok || fmt.Sprint(value) != fmt.Sprint(was) {
			return false
		}
		if lost := theirs[name]; fmt.Sprint(lost) != fmt.Sprint(value) && !empty(lost) {
			return false
		}
	}
	return strange
}

// empty tells of what the built-in output writes for a field that it has no value for.
func empty(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Map:
		for _, inner := range v.Seq2() {
			if !empty(inner.Interface()) {
				return false
			}
		}
		return true
	default:
		return v.IsZero()
	}
}

// recorded are the fields of the record whose keys are texts.
func (c *comparison) recorded() map[string]any {
	var e chunk.Entry
	if w := chunk.NewWalker(c.given.Chunk); !w.Next(&e) || e.Kind != chunk.Record {
		return nil
	}
	fields, _ := plain(e.Body, 0)
	return fields.(map[string]any)
}

// plain is the value at b[pos:], and where it ends. It knows the types that a schema of the corpus has.
func plain(b []byte, pos int) (any, int) {
	h, at := chunk.ReadHead(b, pos)
	switch h.Type {
	case chunk.Bool:
		return h.N == 1, at
	case chunk.Uint, chunk.Int:
		return h.Int(), at
	case chunk.Float:
		return h.Float(), at
	case chunk.Str:
		end := at + int(h.N)
		return string(b[at:end]), end
	case chunk.Bin:
		end := at + int(h.N)
		return b[at:end], end
	case chunk.Array:
		all := make([]any, h.N)
		for i := range all {
			all[i], at = plain(b, at)
		}
		return all, at
	case chunk.Map:
		all := map[string]any{}
		for range h.N {
			var key, value any
			key, at = plain(b, at)
			value, at = plain(b, at)
			if name, ok := key.(string); ok {
				all[name] = value
			}
		}
		return all, at
	default:
		end, _ := chunk.Skip(b, pos) // the record is whole
		return nil, end
	}
}

package parity

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/twmb/avro"
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
	return c.because(exts, c.traits.ext) || c.because(badText, c.traits.badText)
}

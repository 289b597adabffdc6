package parity

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// readLogs reads a value as a receiver of OpenTelemetry does. Trace and span ids are left as the JSON reader of protobuf
// takes them: both outputs write them alike.
func readLogs(format string, value []byte) (*logs.LogsData, error) {
	data := &logs.LogsData{}
	if format == "otlp_proto" {
		return data, proto.Unmarshal(value, data)
	}
	return data, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(value, data)
}

// otlp compares two values of OTLP.
func (c *comparison) otlp(format string, b, o []byte) bool {
	do, err := readLogs(format, o)
	if err != nil {
		return false
	}
	db, err := readLogs(format, b)
	if err != nil {
		// No reader takes what the built-in output wrote. There must be something in the record that can be the cause.
		found := c.because(badText, c.traits.badText)
		found = c.because(oddFloats, c.traits.oddFloat && format == "otlp_json") || found
		return c.because(integers, c.traits.huge && format == "otlp_json") || found
	}
	if proto.Equal(db, do) {
		return c.because(spelling, true)
	}
	return c.records(recordsOf(db), recordsOf(do))
}

// recordsOf are all records of a message, whose resources and scopes are compared elsewhere.
func recordsOf(data *logs.LogsData) (all []*logs.LogRecord) {
	for _, r := range data.ResourceLogs {
		for _, s := range r.ScopeLogs {
			all = append(all, s.LogRecords...)
		}
	}
	return all
}

// records compares the records of a message, whose envelopes must be equal.
func (c *comparison) records(b, o []*logs.LogRecord) bool {
	if len(b) != len(o) {
		return false
	}
	for i := range b {
		if !c.record(b[i], o[i]) {
			return false
		}
	}
	return true
}

// record looks at each field that may differ, and then at the rest.
func (c *comparison) record(b, o *logs.LogRecord) bool {
	if len(o.Attributes) > len(b.Attributes) && len(b.Attributes) == 0 || o.Flags != b.Flags && b.Flags == 0 ||
		o.EventName != b.EventName && b.EventName == "" || o.DroppedAttributesCount != b.DroppedAttributesCount && b.DroppedAttributesCount == 0 {
		c.because(fields, true)
		o.Attributes, o.Flags, o.EventName, o.DroppedAttributesCount = b.Attributes, b.Flags, b.EventName, b.DroppedAttributesCount
	}
	if b.TimeUnixNano != o.TimeUnixNano {
		if !c.because(times, c.traits.plainTime && b.TimeUnixNano*1e9 == o.TimeUnixNano) {
			return false
		}
		o.TimeUnixNano = b.TimeUnixNano
	}
	if b.Body == nil && o.Body != nil {
		found := c.because(exts, c.traits.ext)
		if !c.because(oddNames, c.traits.oddKey) && !found {
			return false
		}
		o.Body = nil
	}
	if !c.values(b.Body, o.Body) {
		return false
	}
	o.Body = b.Body
	return proto.Equal(b, o)
}

// values compares two values.
func (c *comparison) values(b, o *common.AnyValue) bool {
	if proto.Equal(b, o) {
		return true
	}
	if lb, lo := b.GetArrayValue(), o.GetArrayValue(); lb != nil && lo != nil && len(lb.Values) == len(lo.Values) {
		for i := range lb.Values {
			if !c.values(lb.Values[i], lo.Values[i]) {
				return false
			}
		}
		return true
	}
	if mb, mo := b.GetKvlistValue(), o.GetKvlistValue(); mb != nil && mo != nil && len(mb.Values) == len(mo.Values) {
		for i := range mb.Values {
			if !c.cut(mb.Values[i].Key, mo.Values[i].Key) || !c.values(mb.Values[i].Value, mo.Values[i].Value) {
				return false
			}
		}
		return true
	}
	if text, ok := o.GetValue().(*common.AnyValue_StringValue); ok && (b.GetKvlistValue() != nil || b.GetArrayValue() != nil) {
		return c.because(depths, c.traits.depth > readersDepth && json.Valid([]byte(text.StringValue)))
	}
	if bytes, ok := o.GetValue().(*common.AnyValue_BytesValue); ok {
		return c.because(badText, c.traits.badText && !utf8.Valid(bytes.BytesValue))
	}
	return c.cut(b.GetStringValue(), o.GetStringValue())
}

// readersDepth is how deep maps may be so that readers of protobuf take them.
const readersDepth = 31

// cut compares texts, of which the built-in output's may end early.
func (c *comparison) cut(b, o string) bool {
	if b == o {
		return true
	}
	rest, begins := strings.CutPrefix(o, b)
	return c.because(controls, begins && strings.HasPrefix(rest, "\x00")) || c.because(badText, c.traits.badText && keepsGood(b, o))
}

package parity

import (
	"encoding/json"
	"regexp"
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
	return data, protojson.Unmarshal(value, data)
}

// otlp compares two values of OTLP.
func (c *comparison) otlp(format string, b, o []byte) bool {
	do, err := readLogs(format, o)
	if err != nil {
		return false
	}
	db, err := readLogs(format, b)
	if err != nil && format == "otlp_proto" {
		// No reader takes what the built-in output wrote. The same record is compared in JSON.
		return c.because(badText, c.traits.badText)
	}
	if err != nil {
		if db, err = readLogs(format, c.repaired(b)); err != nil {
			return false
		}
	}
	if proto.Equal(db, do) {
		return len(c.reasons) > 0 || c.because(spelling, true)
	}
	rb, ro := recordsOf(db), recordsOf(do)
	if len(rb) != len(ro) {
		return false
	}
	for i := range rb {
		if !c.record(rb[i], ro[i]) {
			return false
		}
	}
	return proto.Equal(db, do) // resources, scopes and what else there is
}

var (
	bareDouble = regexp.MustCompile(`"doubleValue":(nan|inf|-inf)`)
	largeInt   = regexp.MustCompile(`"intValue":"(9[3-9]\d{17}|92[3-9]\d{16}|9223372036854775808|\d{20})"`)
	words      = strings.NewReplacer(`-inf`, `"-Infinity"`, `inf`, `"Infinity"`, `nan`, `"NaN"`)
)

// repaired makes JSON of what the built-in output wrote, and notes what had to be mended.
func (c *comparison) repaired(b []byte) []byte {
	text := perByte(string(b))
	c.because(badText, text != string(b) && c.traits.badText)
	if mended := bareDouble.ReplaceAllStringFunc(text, words.Replace); mended != text {
		c.because(oddFloats, c.traits.oddFloat)
		text = mended
	}
	if mended := largeInt.ReplaceAllString(text, `"stringValue":"$1"`); mended != text {
		c.because(integers, c.traits.huge)
		text = mended
	}
	return []byte(text)
}

// recordsOf are all records of a message.
func recordsOf(data *logs.LogsData) (all []*logs.LogRecord) {
	for _, r := range data.ResourceLogs {
		for _, s := range r.ScopeLogs {
			all = append(all, s.LogRecords...)
		}
	}
	return all
}

// record makes ours equal in each field that differs for a reason.
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
	return true
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
		return c.because(badText, c.traits.badText && !utf8.Valid(bytes.BytesValue) && perByte(string(bytes.BytesValue)) == b.GetStringValue() ||
			c.cut(b.GetStringValue(), perByte(string(bytes.BytesValue))))
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

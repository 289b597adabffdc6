package format

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
)

// bundled is a message that a chunk became.
type bundled struct {
	value []byte
	key   string // "-" is none
}

// bundle runs a chunk through an encoder. The errors are those of Add, by the number of the entry.
func bundle(o *OTLP, in []byte) (messages []bundled, failed map[int]error) {
	failed = map[int]error{}
	o.Begin()
	var e chunk.Entry
	w := chunk.NewWalker(in)
	for i := 0; w.Next(&e); i++ {
		if e.Kind == chunk.Undecodable {
			continue
		}
		if err := o.Add(&e); err != nil {
			failed[i] = err
		}
	}
	for {
		got, key, ok := o.AppendMessage([]byte("before"))
		if !ok {
			return messages, failed
		}
		m := bundled{got[len("before"):], "-"}
		if key != nil {
			m.key = string(key)
		}
		messages = append(messages, m)
	}
}

// readProto decodes a message.
func readProto(t *testing.T, value []byte) *logs.LogsData {
	t.Helper()
	m := &logs.LogsData{}
	if err := proto.Unmarshal(value, m); err != nil {
		t.Fatalf("%v: %x", err, value)
	}
	return m
}

// otlpIDs are the ids in a message, which are in hex in OTLP and in base64 in the JSON of protobuf.
var otlpIDs = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]*)"`)

// readProtoJSON decodes a message in JSON. A field that OTLP does not have is an error.
func readProtoJSON(t *testing.T, value []byte) *logs.LogsData {
	t.Helper()
	m := &logs.LogsData{}
	readOTLPJSON(t, value, m)
	return m
}

// readOTLPJSON decodes a message of any signal in JSON.
func readOTLPJSON(t *testing.T, value []byte, m proto.Message) {
	t.Helper()
	text := otlpIDs.ReplaceAllFunc(value, func(field []byte) []byte {
		parts := otlpIDs.FindSubmatch(field)
		id, _ := hex.DecodeString(string(parts[2]))
		return fmt.Appendf(nil, `"%s":"%s"`, parts[1], base64.StdEncoding.EncodeToString(id))
	})
	if err := protojson.Unmarshal(text, m); err != nil {
		t.Fatalf("%v: %s", err, value)
	}
}

// bundleBoth encodes a chunk both ways and checks that the two say the same.
func bundleBoth(t *testing.T, c OTLPConfig, in []byte) (asJSON []bundled, failed map[int]error) {
	t.Helper()
	asProto, failed := bundle(NewOTLP(c), in)
	c.JSON = true
	asJSON, failedToo := bundle(NewOTLP(c), in)
	if len(asProto) != len(asJSON) || len(failed) != len(failedToo) {
		t.Fatalf("%d messages and %d errors in protobuf, %d and %d in JSON", len(asProto), len(failed), len(asJSON), len(failedToo))
	}
	for i, m := range asJSON {
		fromJSON, fromProto := readProtoJSON(t, m.value), readProto(t, asProto[i].value)
		if !proto.Equal(fromJSON, fromProto) || m.key != asProto[i].key {
			t.Fatalf("message %d differs:\n%s, key %s\n%v, key %s", i, m.value, m.key, fromProto, asProto[i].key)
		}
	}
	return asJSON, failed
}

// whole has room for every message.
var whole = OTLPConfig{MaxBytes: math.MaxInt}

// entry is an entry of a chunk at 1700000000.123456789.
func entry(metadata, body []byte) string {
	head := chunktest.Time([]byte{0x92, 0x92}, 1700000000, 123456789)
	return string(append(append(head, metadata...), body...))
}

// plain is a record without metadata.
func plain(body ...string) string { return entry([]byte{0x80}, fields(body...)) }

// groupStart opens a group as the OpenTelemetry input does.
func groupStart(resourceID, scopeID int, body ...string) string {
	metadata := fields(str("schema"), str("otlp"), str("resource_id"), num(int64(resourceID)), str("scope_id"), num(int64(scopeID)))
	return string(append(append(chunktest.Time([]byte{0x92, 0x92}, math.MaxUint32, 0), metadata...), fields(body...)...))
}

// groupEnd closes one.
var groupEnd = string(chunktest.Time([]byte{0x92, 0x92}, math.MaxUint32-1, 0)) + "\x80\x80"

// service is a resource of one attribute.
func service(name string) string {
	return string(fields(str("attributes"), string(fields(str("service.name"), str(name)))))
}

// otlpLogs is a message of one resource and scope.
func otlpLogs(resource, scope, records string) string {
	return fmt.Sprintf(`{"resourceLogs":[{"resource":{%s},"scopeLogs":[{"scope":{%s},"logRecords":[%s]}]}]}`, resource, scope, records)
}

const otlpAt = `{"timeUnixNano":"1700000000123456789",`

// A row for each kind of value, as the body of a record.
func TestOTLP_Values(t *testing.T) {
	tests := []struct{ in, want string }{
		{"\xc0", ``},
		{"\xc3", `"boolValue":true`},
		{"\xc2", `"boolValue":false`},
		{num(0), `"intValue":"0"`},
		{num(math.MinInt64), `"intValue":"-9223372036854775808"`},
		{num(math.MaxInt64), `"intValue":"9223372036854775807"`},
		{"\xcf\x80\x00\x00\x00\x00\x00\x00\x00", `"stringValue":"9223372036854775808"`},
		{f64(0.5), `"doubleValue":0.5`},
		{f64(2), `"doubleValue":2.0`},
		{f32(1.5), `"doubleValue":1.5`},
		{f64(1e300), `"doubleValue":1e+300`},
		{f64(math.NaN()), `"doubleValue":"NaN"`},
		{f64(math.Inf(1)), `"doubleValue":"Infinity"`},
		{f64(math.Inf(-1)), `"doubleValue":"-Infinity"`},
		{str(""), `"stringValue":""`},
		{str("é\"\\\n日"), `"stringValue":"é\"\\\n日"`},
		{str("a\xff"), `"bytesValue":"Yf8="`},
		{bin("\x00\xff"), `"bytesValue":"AP8="`},
		{bin(""), `"bytesValue":""`},
		{arr(num(1), "\xc0", arr()), `"arrayValue":{"values":[{"intValue":"1"},{},{"arrayValue":{"values":[]}}]}`},
		{
			string(fields(str("k"), num(1), str("n"), "\xc0", str("m"), "\x80")),
			`"kvlistValue":{"values":[{"key":"k","value":{"intValue":"1"}},{"key":"n","value":{}},` +
				`{"key":"m","value":{"kvlistValue":{"values":[]}}}]}`,
		},
		{
			string(fields(num(1), num(2), "\xc3", num(3), "\xc0", num(4), bin("b"), num(5), str("\xff"), num(6), ext(0, "\x65\x53\xf1\x00\x00\x00\x00\x01"), num(7))),
			`"kvlistValue":{"values":[{"key":"1","value":{"intValue":"2"}},{"key":"true","value":{"intValue":"3"}},` +
				`{"key":"null","value":{"intValue":"4"}},{"key":"b","value":{"intValue":"5"}},{"key":"` + "\uFFFD" + `","value":{"intValue":"6"}},` +
				`{"key":"2023-11-14T22:13:20.000000001Z","value":{"intValue":"7"}}]}`,
		},
		{ext(0, "\x65\x53\xf1\x00\x00\x00\x00\x01"), `"stringValue":"2023-11-14T22:13:20.000000001Z"`},
		{
			ext(-5, "\x01\xff"),
			`"kvlistValue":{"values":[{"key":"type","value":{"intValue":"-5"}},{"key":"data","value":{"bytesValue":"Af8="}}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%x", tt.in), func(t *testing.T) {
			got, failed := bundleBoth(t, whole, []byte(plain(str("log"), tt.in)))
			want := otlpLogs("", "", otlpAt+`"body":{`+tt.want+`}}`)
			if len(got) != 1 || len(failed) != 0 || string(got[0].value) != want {
				t.Errorf("got  %s, %v\nwant %s", got, failed, want)
			}
		})
	}
}

func TestOTLP_Records(t *testing.T) {
	trace, span := "0123456789abcdef", "01234567"
	otlp := func(kv ...string) []byte { return fields(str("otlp"), string(fields(kv...))) }
	attribute := func(key, value string) string { return `{"key":"` + key + `","value":{"stringValue":"` + value + `"}}` }
	hi := func(metadata []byte) string { return entry(metadata, fields(str("log"), str("hi"))) }
	tests := []struct {
		name, in, want string // want is the record
	}{
		{
			"body and other fields", plain(str("level"), str("info"), str("log"), str("hi"), str("pod"), str("p")),
			otlpAt + `"attributes":[` + attribute("level", "info") + `,` + attribute("pod", "p") + `],"body":{"stringValue":"hi"}}`,
		},
		{
			"log before message, in any case", plain(str("message"), str("m"), str("LOG"), str("hi")),
			otlpAt + `"attributes":[` + attribute("message", "m") + `],"body":{"stringValue":"hi"}}`,
		},
		{"message", plain(str("Message"), str("hi")), otlpAt + `"body":{"stringValue":"hi"}}`},
		{
			"neither", plain(str("a"), str("b")),
			otlpAt + `"body":{"kvlistValue":{"values":[` + attribute("a", "b") + `]}}}`,
		},
		{"empty", plain(), otlpAt + `"body":{"kvlistValue":{"values":[]}}}`},
		{
			"all that is known", hi(otlp(
				str("timestamp"), num(5), str("observed_timestamp"), num(1700000000000000001), str("severity_number"), num(9),
				str("severity_text"), str("INFO"), str("attributes"), string(fields(str("a"), str("b"))), str("dropped_attributes_count"), num(3),
				str("trace_id"), bin(trace), str("span_id"), bin(span), str("trace_flags"), num(1), str("event_name"), str("e"),
			)),
			`{"timeUnixNano":"5","observedTimeUnixNano":"1700000000000000001","severityNumber":9,"severityText":"INFO",` +
				`"attributes":[` + attribute("a", "b") + `],"traceId":"` + hex.EncodeToString([]byte(trace)) +
				`","spanId":"` + hex.EncodeToString([]byte(span)) + `","body":{"stringValue":"hi"},"droppedAttributesCount":3,"flags":1,"eventName":"e"}`,
		},
		{
			"attributes before fields", entry(otlp(str("attributes"), string(fields(str("a"), str("b")))), fields(str("c"), str("d"), str("log"), str("hi"))),
			otlpAt + `"attributes":[` + attribute("a", "b") + `,` + attribute("c", "d") + `],"body":{"stringValue":"hi"}}`,
		},
		{
			"ids in hex", hi(otlp(str("trace_id"), str("0123456789ABCDEF0123456789abcdef"), str("span_id"), str("00112233445566ff"))),
			otlpAt + `"traceId":"0123456789abcdef0123456789abcdef","spanId":"00112233445566ff","body":{"stringValue":"hi"}}`,
		},
		{
			"what has no meaning", hi(otlp(
				str("timestamp"), str("soon"), str("severity_number"), num(-1), str("severity_text"), num(1), str("attributes"), arr(num(1)),
				str("trace_id"), bin("short"), str("span_id"), str("not hexadecimal!"), str("trace_flags"), num(1<<40),
			)),
			otlpAt + `"body":{"stringValue":"hi"}}`,
		},
		{"no flags", hi(otlp(str("trace_flags"), num(0))), otlpAt + `"body":{"stringValue":"hi"}}`},
		{"no time", hi(otlp(str("timestamp"), num(0))), `{"body":{"stringValue":"hi"}}`},
		{"other metadata", hi(fields(str("x"), num(1))), otlpAt + `"body":{"stringValue":"hi"}}`},
		{"no metadata", "\x92\xce\x65\x53\xf1\x00\x81" + str("log") + str("hi"), `{"timeUnixNano":"1700000000000000000","body":{"stringValue":"hi"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, failed := bundleBoth(t, whole, []byte(tt.in))
			if want := otlpLogs("", "", tt.want); len(got) != 1 || len(failed) != 0 || string(got[0].value) != want {
				t.Errorf("got  %s, %v\nwant %s", got, failed, want)
			}
		})
	}
}

// Groups of the same resource and scope are put together, in the order in which they begin; what
// is outside of groups has an empty resource and scope.
func TestOTLP_Groups(t *testing.T) {
	hi := func(text string) string { return plain(str("log"), str(text)) }
	rec := func(text string) string { return otlpAt + `"body":{"stringValue":"` + text + `"}}` }
	attributes := func(name string) string {
		return `"attributes":[{"key":"service.name","value":{"stringValue":"` + name + `"}}]`
	}
	lib := string(fields(str("name"), str("lib"), str("version"), str("1"), str("attributes"), "\x80", str("dropped_attributes_count"), num(2),
		str("schema_url"), str("s")))
	in := hi("a") +
		groupStart(0, 0, str("resource"), service("one"), str("scope"), lib, str("schema_url"), str("r")) + hi("b") + hi("c") + groupEnd +
		groupStart(1, 0, str("resource"), string(fields(str("dropped_attributes_count"), num(7), str("schema_url"), str("u")))) + hi("d") + groupEnd +
		hi("e") +
		groupStart(0, 1, str("resource"), service("one"), str("schema_url"), str("r")) + hi("f") + // not closed
		groupStart(0, 0, str("resource"), service("one"), str("scope"), lib, str("schema_url"), str("r")) + hi("g") + groupEnd +
		groupStart(9, 9, str("resource"), service("empty")) + groupEnd +
		string(chunktest.Time([]byte{0x92, 0x92}, math.MaxUint32, 0)) + "\x80\x81" + str("resource") + service("not OTLP") + hi("h")
	plainLogs := `{"resource":{},"scopeLogs":[{"scope":{},"logRecords":[` + rec("a") + `,` + rec("e") + `,` + rec("h") + `]}]}`
	one := `{"resource":{` + attributes("one") + `},"scopeLogs":[` +
		`{"scope":{"name":"lib","version":"1","attributes":[],"droppedAttributesCount":2},"logRecords":[` + rec("b") + `,` + rec("c") + `,` + rec("g") + `],"schemaUrl":"s"},` +
		`{"scope":{},"logRecords":[` + rec("f") + `]}],"schemaUrl":"r"}`
	two := `{"resource":{"droppedAttributesCount":7},"scopeLogs":[{"scope":{},"logRecords":[` + rec("d") + `]}],"schemaUrl":"u"}`

	got, failed := bundleBoth(t, whole, []byte(in))
	want := `{"resourceLogs":[` + plainLogs + `,` + one + `,` + two + `]}`
	if len(got) != 1 || len(failed) != 0 || string(got[0].value) != want || got[0].key != "-" {
		t.Errorf("got  %s, %v\nwant %s", got, failed, want)
	}

	byResource := whole
	byResource.ByResource = true
	got, _ = bundleBoth(t, byResource, []byte(in))
	// The keys are those that Fluent Bit 5.1.1 gives the same attributes.
	wantAll := []bundled{{[]byte(plainLogs), "-"}, {[]byte(one), keyOne}, {[]byte(two), keyNone}}
	if len(got) != len(wantAll) {
		t.Fatalf("%d messages: %s", len(got), got)
	}
	for i, m := range got {
		if want := `{"resourceLogs":[` + string(wantAll[i].value) + `]}`; string(m.value) != want || m.key != wantAll[i].key {
			t.Errorf("message %d is %s, key %s\nwant %s, key %s", i, m.value, m.key, want, wantAll[i].key)
		}
	}
}

// The keys of a resource whose attributes are service.name one, and of one without attributes.
const (
	keyOne  = "61ab650f8602fe95"
	keyNone = "b785b6ec423c44e1"
)

// The packing of the attributes does not matter for the key, nor what else the resource has.
func TestOTLP_KeyOfResource(t *testing.T) {
	byResource := whole
	byResource.ByResource = true
	long := "\x81\xd9\x0cservice.name\xda\x00\x03one"
	in := groupStart(4, 5, str("resource"), string(fields(str("attributes"), long, str("dropped_attributes_count"), num(1)))) + plain(str("log"), str("x"))
	if got, _ := bundleBoth(t, byResource, []byte(in)); len(got) != 1 || got[0].key != keyOne {
		t.Errorf("%s; want the key %s", got, keyOne)
	}
}

// An entry that can't be written leaves no trace among its neighbours, and a group that can't be
// is none.
func TestOTLP_Errors(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat("\x81"+str("k"), levels) + num(1)
	}
	good := plain(str("log"), str("good"))
	late := string(append(append([]byte{0x92, 0x92, 0xcf}, binary.BigEndian.AppendUint64(nil, maxOTLPSec+1)...), "\x80\x80"...))
	tests := []struct {
		name, in string
		want     error
	}{
		{"deep maps", plain(str("log"), nested(maxDepth+40)), ErrTooDeep},
		{"deep arrays", plain(str("log"), strings.Repeat("\x91", maxDepth+60)+num(1)), ErrTooDeep},
		{"deep key", plain(strings.Repeat("\x91", maxDepth+1)+num(1), num(1)), ErrTooDeep},
		{"time", late, ErrOTLPTime},
		{"resource", groupStart(0, 0, str("resource"), string(fields(str("attributes"), nested(maxDepth+40)))), ErrTooDeep},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, failed := bundleBoth(t, whole, []byte(good+tt.in+good))
			rec := otlpAt + `"body":{"stringValue":"good"}}`
			if want := otlpLogs("", "", rec+","+rec); len(got) != 1 || string(got[0].value) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if len(failed) != 1 || !errors.Is(failed[1], tt.want) {
				t.Errorf("errors %v; want %v", failed, tt.want)
			}
		})
	}
	inTime := strings.Replace(late, string(binary.BigEndian.AppendUint64(nil, maxOTLPSec+1)), string(binary.BigEndian.AppendUint64(nil, maxOTLPSec)), 1)
	if got, failed := bundleBoth(t, whole, []byte(inTime)); len(got) != 1 || len(failed) != 0 {
		t.Errorf("the last second: %d messages, %v", len(got), failed)
	}
}

// What has no place in OTLP is there as JSON: arrays and maps as keys, and those that are nested
// deeper than readers of protobuf go, from where that begins. A record is never lost for them:
// the built-in output writes one with such a thing beside its log as well.
func TestOTLP_AsText(t *testing.T) {
	maps := func(n int) string { return strings.Repeat("\x81"+str("k"), n) }
	arrays := func(n int) string { return strings.Repeat("\x91", n) }
	attribute := func(v string) string { return plain(str("log"), str("hi"), str("a"), v) }
	tests := []struct {
		name, in string
		want     []string // texts that stand in the message
	}{
		{"keys", attribute(string(fields(arr(num(1), str("\"")), num(2), "\x80", num(3)))), []string{
			`{"key":"[1,\"\\\"\"]","value":{"intValue":"2"}}`, `{"key":"{}","value":{"intValue":"3"}}`, `"stringValue":"hi"`,
		}},
		{"top-level key", plain(str("log"), str("hi"), arr(), num(1)), []string{`"attributes":[{"key":"[]","value":{"intValue":"1"}}]`}},
		{"key in a resource", groupStart(0, 0, str("resource"), string(fields(str("attributes"), string(fields("\x90", num(1)))))) + plain(str("log"), str("hi")), []string{
			`{"resource":{"attributes":[{"key":"[]","value":{"intValue":"1"}}]}`,
		}},
		{"maps that fit", plain(str("log"), maps(32)+num(1)), []string{`{"key":"k","value":{"intValue":"1"}}`}},
		{"maps", plain(str("log"), maps(33)+num(1)), []string{`{"key":"k","value":{"stringValue":"{\"k\":1}"}}`}},
		{"many maps", plain(str("log"), maps(35)+num(1)), []string{`"stringValue":"{\"k\":{\"k\":{\"k\":1}}}"`}},
		{"arrays that fit", plain(str("log"), arrays(48)+num(1)), []string{`{"values":[{"intValue":"1"}]}`}},
		{"arrays", plain(str("log"), arrays(49)+num(1)), []string{`{"values":[{"stringValue":"[1]"}]}`}},
		{"attribute that fits", attribute(maps(31) + num(1)), []string{`{"key":"k","value":{"intValue":"1"}}`, `"stringValue":"hi"`}},
		{"attribute", attribute(maps(32) + num(1)), []string{`{"key":"k","value":{"stringValue":"{\"k\":1}"}}`, `"stringValue":"hi"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, failed := bundleBoth(t, whole, []byte(tt.in))
			if len(got) != 1 || len(failed) != 0 {
				t.Fatalf("%d messages, %v", len(got), failed)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(got[0].value), want) {
					t.Errorf("%s\nwant %s", got[0].value, want)
				}
			}
		})
	}
}

// countRecords counts the records of a message.
func countRecords(m *logs.LogsData) (n int) {
	for _, r := range m.ResourceLogs {
		for _, s := range r.ScopeLogs {
			n += len(s.LogRecords)
		}
	}
	return n
}

// A message is no larger than allowed, unless one record is; each begins with its resource and
// scope, and the records stay in order.
func TestOTLP_Splits(t *testing.T) {
	const limit = 2000
	var in string
	for i := range 4 {
		in += groupStart(i%2, 0, str("resource"), service(fmt.Sprint("s", i%2)), str("scope"), string(fields(str("name"), str("lib"))))
		for j := range 40 {
			size := 10 * j
			if i == 2 && j == 20 {
				size = 2 * limit
			}
			in += plain(str("log"), str(fmt.Sprintf("%d %d %s", i, j, strings.Repeat("x", size))))
		}
		in += groupEnd
	}
	for _, json := range []bool{false, true} {
		for _, byResource := range []bool{false, true} {
			o := NewOTLP(OTLPConfig{JSON: json, ByResource: byResource, MaxBytes: limit})
			messages, failed := bundle(o, []byte(in))
			again, _ := bundle(o, []byte(in))
			if len(failed) != 0 || !slices.EqualFunc(messages, again, func(a, b bundled) bool { return string(a.value) == string(b.value) && a.key == b.key }) {
				t.Fatalf("errors %v, or other messages the second time", failed)
			}
			var bodies, keys []string
			large, small := 0, 0
			for _, m := range messages {
				read := readProto
				if json {
					read = readProtoJSON
				}
				data := read(t, m.value)
				if len(m.value) > limit {
					large++
					if n := countRecords(data); n != 1 {
						t.Errorf("a message of %d bytes has %d records", len(m.value), n)
					}
				}
				if len(m.value) < limit/2 {
					small++
				}
				keys = append(keys, m.key)
				for _, r := range data.ResourceLogs {
					name := r.Resource.Attributes[0].Value.GetStringValue()
					for _, s := range r.ScopeLogs {
						if s.Scope.Name != "lib" {
							t.Errorf("scope %v", s.Scope)
						}
						for _, rec := range s.LogRecords {
							words := strings.Fields(rec.Body.GetStringValue())
							if i := words[0]; (i == "0" || i == "2") != (name == "s0") {
								t.Errorf("record of group %s has the resource %s", i, name)
							}
							bodies = append(bodies, words[0]+" "+words[1])
						}
					}
				}
			}
			var want []string
			for _, i := range []int{0, 2, 1, 3} { // those of a resource come together
				for j := range 40 {
					want = append(want, fmt.Sprint(i, " ", j))
				}
			}
			if !slices.Equal(bodies, want) {
				t.Errorf("records %v", bodies)
			}
			if large != 1 || small > 4 {
				t.Errorf("%d of %d messages are too large, %d far from full", large, len(messages), small)
			}
			if n := len(slices.Compact(keys)); byResource != (n == 2) {
				t.Errorf("keys %v", keys)
			}
		}
	}
}

// A group that leaves too little room in a message is none, at each of its markers.
func TestOTLP_LargeGroup(t *testing.T) {
	limited := OTLPConfig{MaxBytes: 2000}
	small := groupStart(0, 0, str("resource"), service(strings.Repeat("s", 500)))
	large := groupStart(0, 0, str("resource"), service(strings.Repeat("l", 1000)))
	rec := plain(str("log"), str("x"))
	got, failed := bundleBoth(t, limited, []byte(small+rec+large+rec+groupEnd+large+rec))
	if len(got) != 1 || len(failed) != 2 || !errors.Is(failed[2], ErrOTLPGroup) || !errors.Is(failed[5], ErrOTLPGroup) {
		t.Fatalf("%d messages, %v", len(got), failed)
	}
	var counts []int
	for _, r := range readProtoJSON(t, got[0].value).ResourceLogs {
		counts = append(counts, len(r.ScopeLogs[0].LogRecords))
	}
	if !slices.Equal(counts, []int{1, 2}) {
		t.Errorf("records by resource %v", counts)
	}
}

func TestOTLP_NoRecords(t *testing.T) {
	if got, failed := bundle(NewOTLP(whole), []byte(groupStart(0, 0, str("resource"), service("s"))+groupEnd)); len(got) != 0 || len(failed) != 0 {
		t.Errorf("%x, %v", got, failed)
	}
}

// FuzzOTLP feeds any bytes as a chunk. Both encodings say the same, every record is in a message
// or failed, and no message of several records is larger than allowed.
func FuzzOTLP(f *testing.F) {
	f.Add([]byte(groupStart(0, 0, str("resource"), service("s"), str("scope"), service("t"))+plain(str("log"), str("a\xff"), num(1), f64(math.NaN()))+groupEnd+plain()), 300)
	f.Add([]byte(plain(str("log"), ext(-1, "x"), "\xc0", ext(0, "12345678"))), 0)
	f.Add([]byte(entry(fields(str("otlp"), string(fields(str("trace_id"), str(strings.Repeat("0a", 16)), str("severity_text"), str("\xff")))), fields(str("message"), arr("\x80")))), 80)
	f.Add(oddChunk()[:300], 1000)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		for _, byResource := range []bool{false, true} {
			want, failed := bundleBoth(t, OTLPConfig{ByResource: byResource, MaxBytes: math.MaxInt}, in)
			records := 0
			for _, m := range want {
				records += countRecords(readProtoJSON(t, m.value))
			}
			var e chunk.Entry
			w := chunk.NewWalker(in)
			entries := 0
			for i := 0; w.Next(&e); i++ {
				if e.Kind == chunk.Record && failed[i] == nil {
					entries++
				}
			}
			if records != entries {
				t.Fatalf("%d records in the messages; want %d", records, entries)
			}
			for _, json := range []bool{false, true} {
				messages, _ := bundle(NewOTLP(OTLPConfig{JSON: json, ByResource: byResource, MaxBytes: limit}), in)
				read := readProto
				if json {
					read = readProtoJSON
				}
				records := 0
				for _, m := range messages {
					n := countRecords(read(t, m.value))
					if n == 0 || n > 1 && len(m.value) > limit {
						t.Fatalf("%d records in %d bytes, limit %d", n, len(m.value), limit)
					}
					records += n
				}
				if records != entries {
					t.Fatalf("%d records in the messages of %d bytes; want %d", records, limit, entries)
				}
			}
		}
	})
}

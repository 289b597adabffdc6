package plugin

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/plugin/deadletter"
)

// seqSchema is the schema of records.
const seqSchema = `{"type":"record","name":"r","fields":[{"name":"seq","type":"string"}]}`

// mixed is a chunk of three records: the middle one has a number where a text belongs.
func mixed() []byte {
	b := chunktest.Str(chunktest.Map(append(record("a"), header(1700000000)...), 1), "seq")
	return append(chunktest.Int(b, 1), record("é\xff")...)
}

// Each format, and each of its options, in the bytes of the messages. A record that the
// format can't express is set apart, and its neighbours are written.
func TestEncoder_Formats(t *testing.T) {
	const hour = "\xcb\x41\xd9\x54\xfc\x40\x00\x00\x00" // the time of the records
	tests := []struct {
		name  string
		s     settings
		want  []string
		unfit []int // offsets in the chunk
	}{
		{"json", nil, []string{
			`{"@timestamp":1700000000.0,"seq":"a"}`, `{"@timestamp":1700000000.0,"seq":1}`, `{"@timestamp":1700000000.0,"seq":"é` + "\uFFFD" + `"}`,
		}, nil},
		{"json, no time, ASCII, without bad bytes", settings{"add_timestamp": "off", "json_escape_unicode": "on", "json_invalid_utf8": "Remove"}, []string{
			`{"seq":"a"}`, `{"seq":1}`, `{"seq":"\u00e9"}`,
		}, nil},
		{"json, bad bytes refused", settings{"timestamp_key": "t", "json_invalid_utf8": "refuse"}, []string{
			`{"t":1700000000.0,"seq":"a"}`, `{"t":1700000000.0,"seq":1}`,
		}, []int{39}},
		{"msgpack", settings{"format": "msgpack", "timestamp_key": "t"}, []string{
			"\x82\xa1t" + hour + "\xa3seq\xa1a", "\x82\xa1t" + hour + "\xa3seq\x01", "\x82\xa1t" + hour + "\xa3seq\xa3é\xff",
		}, nil},
		{"msgpack, no time", settings{"format": "msgpack", "add_timestamp": "no"}, []string{
			"\x81\xa3seq\xa1a", "\x81\xa3seq\x01", "\x81\xa3seq\xa3é\xff",
		}, nil},
		{"gelf", settings{"format": "GELF", "gelf_short_message_key": "seq"}, []string{
			`{"version":"1.1", "short_message":"a", "timestamp":1700000000.000}`, `{"version":"1.1", "short_message":1, "timestamp":1700000000.000}`,
			`{"version":"1.1", "short_message":"\u00e9\ufffd", "timestamp":1700000000.000}`,
		}, nil},
		{"gelf, no time", settings{"format": "gelf", "gelf_short_message_key": "seq", "add_timestamp": "off"}, []string{
			`{"version":"1.1", "short_message":"a"}`, `{"version":"1.1", "short_message":1}`, `{"version":"1.1", "short_message":"\u00e9\ufffd"}`,
		}, nil},
		{"gelf without message", settings{"format": "gelf"}, nil, []int{0, 20, 39}},
		{"raw", settings{"format": "raw", "raw_log_key": "seq"}, []string{"a", "é\xff"}, []int{20}},
		{"otlp_json", settings{"format": "otlp_json"}, []string{
			`{"resourceLogs":[{"resource":{},"scopeLogs":[{"scope":{},"logRecords":[` +
				`{"timeUnixNano":"1700000000000000000","body":{"kvlistValue":{"values":[{"key":"seq","value":{"stringValue":"a"}}]}}},` +
				`{"timeUnixNano":"1700000000000000000","body":{"kvlistValue":{"values":[{"key":"seq","value":{"intValue":"1"}}]}}},` +
				`{"timeUnixNano":"1700000000000000000","body":{"kvlistValue":{"values":[{"key":"seq","value":{"bytesValue":"w6n/"}}]}}}]}]}]}`,
		}, nil},
		{"avro", settings{"format": "avro", "schema_str": seqSchema, "schema_id": "258"}, []string{
			"\x00\x00\x00\x01\x02\x02a", "\x00\x00\x00\x01\x02\x0aé\uFFFD",
		}, []int{20}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := decode(t, tt.s)
			schemas, err := newSchemas(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, err := newEncoder(c, schemas)
			if err != nil || !e.ready() {
				t.Fatal(err)
			}
			b := e.encode(mixed(), "tag", time.Now())
			var got []string
			for _, m := range b.Messages {
				got = append(got, string(b.Data[m.ValOff:m.ValOff+m.ValLen]))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			var unfit []int
			for _, u := range e.faults.unusable {
				if u.kind != deadletter.Unencodable || u.reason == nil {
					t.Errorf("%+v", u)
				}
				unfit = append(unfit, u.offset)
			}
			if !slices.Equal(unfit, tt.unfit) {
				t.Errorf("set apart: %v; want %v", unfit, tt.unfit)
			}
		})
	}
}

// group opens a group of the OpenTelemetry input whose resource has one attribute.
func group(value string) []byte {
	b := chunktest.Time(chunktest.Array(chunktest.Array(nil, 2), 2), 0xffffffff, 0)
	b = chunktest.Str(chunktest.Str(chunktest.Map(b, 3), "schema"), "otlp")
	b = chunktest.Int(chunktest.Str(chunktest.Int(chunktest.Str(b, "resource_id"), 0), "scope_id"), 0)
	b = chunktest.Map(chunktest.Str(chunktest.Map(chunktest.Str(chunktest.Map(b, 1), "resource"), 1), "attributes"), 1)
	return chunktest.Str(chunktest.Str(b, "service.name"), value)
}

// unwritable is a record that OTLP has no form for: its time is in the year 2603.
func unwritable() []byte {
	b := chunktest.Uint(chunktest.Array(chunktest.Array(nil, 2), 2), 20_000_000_000)
	return chunktest.Map(chunktest.Map(b, 0), 0)
}

// Messages of many records: which records are in which one, where they go, under which key.
func TestEncoder_Bundles(t *testing.T) {
	in := slices.Concat(record("a"), unwritable(), group("one"), record("b"), []byte("\xc1"))
	tests := []struct {
		name string
		s    settings
		want []string // the key and the records in each message
	}{
		{"all in one", settings{}, []string{"-: a b"}},
		{"message_key", settings{"message_key": "k", "message_key_field": "seq", "topic_key": "seq", "dynamic_topic": "on"}, []string{"k: a b"}},
		{"by resource", settings{"message_key": "k", "otlp_logs_partition_by_resource": "on"}, []string{"-: a", "61ab650f8602fe95: b"}},
	}
	for _, form := range []string{"otlp_json", "otlp_proto"} {
		for _, tt := range tests {
			t.Run(form+", "+tt.name, func(t *testing.T) {
				tt.s["format"] = form
				e, err := newEncoder(decode(t, tt.s), nil)
				if err != nil || !e.ready() {
					t.Fatal(err)
				}
				for range 2 { // the same at each attempt
					b := e.encode(in, "tag", time.Now())
					var got []string
					for _, m := range b.Messages {
						key := "-"
						if m.KeyLen >= 0 {
							key = string(b.Data[m.KeyOff : m.KeyOff+m.KeyLen])
						}
						got = append(got, key+": "+strings.Join(seqs(t, form, b.Data[m.ValOff:m.ValOff+m.ValLen]), " "))
						if b.Topics[m.Topic] != "fluent-bit" {
							t.Errorf("topic %s", b.Topics[m.Topic])
						}
					}
					if !slices.Equal(got, tt.want) {
						t.Errorf("got %q; want %q", got, tt.want)
					}
					u := e.faults.unusable
					if len(u) != 2 || u[0].kind != deadletter.Unencodable || u[0].offset != len(record("a")) || u[1].kind != deadletter.Undecodable {
						t.Errorf("set apart: %+v", u)
					}
				}
			})
		}
	}
}

// seqs reads the records of a message.
func seqs(t *testing.T, form string, value []byte) (out []string) {
	t.Helper()
	data := &logs.LogsData{}
	unmarshal := proto.Unmarshal
	if form == "otlp_json" {
		unmarshal = protojson.Unmarshal
	}
	if err := unmarshal(value, data); err != nil {
		t.Fatal(err)
	}
	for _, r := range data.ResourceLogs {
		for _, s := range r.ScopeLogs {
			for _, l := range s.LogRecords {
				out = append(out, l.Body.GetKvlistValue().Values[0].Value.GetStringValue())
			}
		}
	}
	return out
}

// A message is none that the client would refuse, if its records allow.
func TestEncoder_BundlesFit(t *testing.T) {
	for _, form := range []string{"otlp_json", "otlp_proto"} {
		e, err := newEncoder(decode(t, settings{"format": form, "rdkafka.message.max.bytes": "5000", "message_key": strings.Repeat("k", 1000)}), nil)
		if err != nil {
			t.Fatal(err)
		}
		var in []byte
		for i := range 100 {
			in = append(in, record(fmt.Sprint(i, strings.Repeat("x", 100)))...)
		}
		in = append(in, record(strings.Repeat("y", 6000))...)
		b := e.encode(in, "tag", time.Now())
		records := 0
		for i, m := range b.Messages {
			size := int(m.ValLen + m.KeyLen)
			records += len(seqs(t, form, b.Data[m.ValOff:m.ValOff+m.ValLen]))
			if last := i == len(b.Messages)-1; last != (size > 5000-100) || !last && i < len(b.Messages)-2 && size < 4500 {
				t.Errorf("%s: message %d has %d bytes", form, i, size)
			}
		}
		if records != 101 {
			t.Errorf("%s: %d records", form, records)
		}
	}
}

// A chunk is delivered when its one message is.
func TestInstance_Bundles(t *testing.T) {
	inBubble(t, settings{"format": "otlp_proto"}, func(b *bench) {
		b.flush(slices.Concat(records(1, 3), unwritable(), records(4, 2)), true, OK)
		b.wantStored(1)
		if got := seqs(t, "otlp_proto", []byte(b.net.Messages()[0].Value)); strings.Join(got, " ") != "1 2 3 4 5" {
			t.Errorf("records %q", got)
		}
		if b.host.count("records can't be written in this format") != 1 {
			t.Errorf("log %q", b.host.lines)
		}
	})
}

// The examples of docs/formats.md are what the formats write.
func TestEncoder_Document(t *testing.T) {
	text, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	b := chunktest.Map(chunktest.Time(chunktest.Array(chunktest.Array(nil, 2), 2), 1700000000, 123456789), 0)
	b = chunktest.Str(chunktest.Str(chunktest.Map(b, 4), "log"), "café ready")
	b = chunktest.Str(chunktest.Str(b, "level"), "info")
	b = chunktest.Float64(chunktest.Str(b, "took"), 0.5)
	b = chunktest.Str(chunktest.Str(chunktest.Map(chunktest.Str(b, "k8s"), 1), "pod"), "web-1")
	for _, s := range []settings{
		{"format": "json"}, {"format": "gelf", "gelf_short_message_key": "log"}, {"format": "raw", "raw_log_key": "log"}, {"format": "otlp_json"},
	} {
		e, err := newEncoder(decode(t, s), nil)
		if err != nil {
			t.Fatal(err)
		}
		batch := e.encode(b, "tag", time.Now())
		if len(batch.Messages) != 1 {
			t.Fatalf("%v: %d messages", s, len(batch.Messages))
		}
		m := batch.Messages[0]
		if want := "\n    " + string(batch.Data[m.ValOff:m.ValOff+m.ValLen]) + "\n"; !strings.Contains(string(text), want) {
			t.Errorf("%v: the document lacks%s", s, want)
		}
	}
}

// An empty text is an empty message, which is not null.
func TestEncoder_RawEmpty(t *testing.T) {
	e, err := newEncoder(decode(t, settings{"format": "raw", "raw_log_key": "seq"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b := e.encode(record(""), "tag", time.Now()); len(b.Messages) != 1 || b.Messages[0].ValLen != 0 {
		t.Errorf("%+v", b.Messages)
	}
}

func TestNew_BrokenSchema(t *testing.T) {
	c := decode(t, settings{"format": "avro", "schema_str": "{", "schema_id": "1"})
	if _, err := New(Options{Config: c}); err == nil {
		t.Error("a broken schema is taken")
	}
}

// registry answers with seqSchema as often as asked, once it is up.
func registry(t *testing.T) (url string, up *atomic.Bool, asked *atomic.Int64) {
	up, asked = &atomic.Bool{}, &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		asked.Add(1)
		fmt.Fprintf(w, `{"id":%d,"schema":%q}`, asked.Load(), seqSchema)
	}))
	t.Cleanup(s.Close)
	return s.URL, up, asked
}

// Until the schema is known every flush is a retry, at once; then the chunks are delivered,
// in order if that is wanted.
func TestInstance_WaitsForTheSchema(t *testing.T) {
	url, up, asked := registry(t)
	s := settings{"format": "avro", "schema_registry_url": url, "schema_registry_subject": "s", "ordered": "true"}
	inBubble(t, s, func(b *bench) {
		start := time.Now()
		b.flush(records(1, 1), true, Retry)
		b.flush(records(2, 1), true, Retry)
		if took := time.Since(start); took != 0 {
			t.Errorf("the flushes took %v", took)
		}
		if b.host.count("the schema could not be fetched") != 1 {
			t.Errorf("log %q", b.host.lines)
		}
		up.Store(true)
		time.Sleep(6 * time.Second)
		b.flush(records(2, 1), true, Retry) // not before the first
		b.flush(records(1, 1), true, OK)
		b.flush(records(2, 1), true, OK)
		b.wantStored(2)
		for i, want := range []string{"00000000010231", "00000000010232"} {
			if got := hex.EncodeToString([]byte(b.net.Messages()[i].Value)); got != want {
				t.Errorf("message %d is %s; want %s", i, got, want)
			}
		}
		if asked.Load() != 1 || b.host.count("the schema is known") != 1 {
			t.Errorf("asked %d times; log %q", asked.Load(), b.host.lines)
		}
	})
}

// A registry's answer may repeat the request, and the log must not.
func TestInstance_HidesTheRegistryLogin(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message":"%s is %s:%s %s"}`, r.Header.Get("Authorization"), user, password, strings.Repeat("x", 10000))
	}))
	defer s.Close()
	login := settings{"format": "avro", "schema_registry_url": s.URL, "schema_id": "3", "schema_registry_http_user": "me", "schema_registry_http_passwd": "geheimnis"}
	inBubble(t, login, func(b *bench) {
		b.Close()
		if b.host.count(" answers 401: Basic *** is me:*** xxx") == 0 || b.host.count("geheim") > 0 || b.host.count("bWU6Z2Vo") > 0 || b.host.count(strings.Repeat("x", 1000)) > 0 {
			t.Errorf("%q", b.host.lines)
		}
	})
}

// An instance that goes on for another one keeps its schema, whatever the registry has by
// now: what was not delivered must not become other messages.
func TestReload_KeepsTheSchema(t *testing.T) {
	url, up, asked := registry(t)
	up.Store(true)
	inProcess(t, func(p *process) {
		s := settings{"format": "avro", "schema_registry_url": url, "schema_registry_subject": "s", "schema_registry_bearer_token": "old"}
		a := p.start(s)
		a.want(OK, records(1, 1))
		a.endByReload()
		s["schema_registry_bearer_token"] = "new"
		b := p.start(s)
		if b.Instance == a.Instance {
			t.Error("the token was not taken over")
		}
		b.want(OK, records(2, 1))
		p.wantStored(2)
		if v := p.net.Messages()[1].Value; v != "\x00\x00\x00\x00\x01\x022" || asked.Load() != 1 {
			t.Errorf("message %x, asked %d times", v, asked.Load())
		}
	})
}

// A field that the schema has no name for costs the record nothing but the field, which is counted and told of once a minute.
// With reject the record is set apart.
func TestInstance_AvroUnknownFields(t *testing.T) {
	chunk := record("a")
	for range 3 {
		b := chunktest.Str(chunktest.Map(header(1700000000), 2), "extra")
		b = chunktest.Str(chunktest.Int(b, 1), "seq")
		chunk = append(chunk, chunktest.Str(b, "b")...)
	}
	const line = `the schema has no name for fields of records, which were written without them tag=tag field=extra count=`
	s := settings{"format": "avro", "schema_str": seqSchema, "schema_id": "3"}
	inBubble(t, s, func(b *bench) {
		b.flush(chunk, true, OK)
		if got := b.net.Messages(); len(got) != 4 || got[3].Value != "\x00\x00\x00\x00\x03\x02b" {
			t.Errorf("%+v", got)
		}
		b.flush(chunk, true, OK)
		if b.host.count(line+"3") != 1 || b.host.count("field=extra") != 1 {
			t.Errorf("%q", b.host.lines)
		}
		time.Sleep(2 * time.Minute)
		if m := b.Metrics(); m.FieldsLeftOut != 6 || m.Rejected["unencodable"] != 0 || b.host.sum(line) != 6 || b.host.count(line) != 2 {
			t.Errorf("%+v, %q", m, b.host.lines)
		}
	})
	s["avro_unknown_fields"] = "reject"
	inBubble(t, s, func(b *bench) {
		b.flush(chunk, true, OK)
		if m := b.Metrics(); m.FieldsLeftOut != 0 || m.Rejected["unencodable"] != 3 || m.Acknowledged != 1 || b.host.count(`it has no field \"extra\"`) != 1 {
			t.Errorf("%+v, %q", m, b.host.lines)
		}
	})
}

// A stop does not wait for the registry.
func TestInstance_ClosesWhileFetching(t *testing.T) {
	url, _, _ := registry(t)
	inBubble(t, settings{"format": "avro", "schema_registry_url": url, "schema_id": "3"}, func(b *bench) {
		start := time.Now()
		b.Close()
		if took := time.Since(start); took > time.Second {
			t.Errorf("the stop took %v", took)
		}
		if b.schemas.Schema() != nil {
			t.Error("there is a schema")
		}
	})
}

// A message of many records goes where none of their fields has a say; what comes from the
// section, the tag and the time of the first record counts.
func TestEncode_BundlesAreAddressed(t *testing.T) {
	e, err := newEncoder(decode(t, settings{
		"format": "otlp_json", "topic_template": "logs-$TAG-%Y", "headers": "env=prod", "message_timestamp": "event",
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := e.encode(records(1, 3), "app", time.Now())
	if len(b.Messages) != 1 || b.Topics[0] != "logs-app-2023" || b.Messages[0].Timestamp != 1_700_000_000_000 {
		t.Fatalf("topics %q, messages %+v", b.Topics, b.Messages)
	}
	for name, value := range b.Headers(0) {
		if name != "env" || string(value) != "prod" {
			t.Errorf("header %s=%s", name, value)
		}
	}
	if b.Messages[0].HdrLen == 0 {
		t.Error("no header")
	}
}

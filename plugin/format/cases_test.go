package format

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"out_kafka_reconnect/plugin/chunk"
)

// testCase is one case of testdata/records.json: a chunk and the messages that come of
// it. The text at the head of that file says what each expectation means.
type testCase struct {
	Name     string
	Why      string
	Config   map[string]string
	ChunkHex string `json:"chunk_hex"`
	Expect   []map[string]json.RawMessage
}

// message is what Kafka would get.
type message struct {
	value  []byte
	topic  string
	key    []byte
	hasKey bool
}

// flushTime stands in for the clock: the time of a record that has none.
const flushTime = 1800000000

func TestCases(t *testing.T) {
	// The zone of the process must play no part in any of them.
	local := time.Local
	defer func() { time.Local = local }()
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("Asia/Shanghai", 8*3600)} {
		time.Local = zone
		t.Run(zone.String(), func(t *testing.T) {
			for _, c := range readCases(t) {
				t.Run(c.Name, func(t *testing.T) { runCase(t, c) })
			}
		})
	}
}

func readCases(t *testing.T) []testCase {
	t.Helper()
	text, err := os.ReadFile("../testdata/records.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		About string
		Cases []testCase
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	return file.Cases
}

func runCase(t *testing.T, c testCase) {
	in, err := hex.DecodeString(c.ChunkHex)
	if err != nil {
		t.Fatal(err)
	}
	timeKey, j, r := configure(t, c.Config)
	messages, bad := encode(t, in, j, r)
	if strings.HasPrefix(c.Name, "broken-") {
		checkBroken(t, in, bad)
	} else if len(bad) != 0 {
		t.Errorf("undecodable: %+v", bad)
	}
	if len(messages) != len(c.Expect) {
		t.Fatalf("%d messages; want %d", len(messages), len(c.Expect))
	}
	for i, m := range messages {
		if !json.Valid(m.value) || !utf8.Valid(m.value) {
			t.Errorf("message %d is not valid JSON in UTF-8: %s", i, m.value)
			continue
		}
		for name, want := range c.Expect[i] {
			check(t, m, timeKey, name, want)
		}
	}
}

// configure builds encoder and router from the options of a case, on top of the base
// configuration.
func configure(t *testing.T, options map[string]string) (timeKey string, j *JSON, r *Router) {
	t.Helper()
	timeKey = "@timestamp"
	format := TimestampDouble
	config := RouterConfig{Topics: []string{"alpha"}, MaxDynamicTopics: 10}
	for option, value := range options {
		var err error
		switch option {
		case "timestamp_key":
			timeKey = value
		case "timestamp_format":
			format, err = ParseTimestampFormat(value)
		case "topics":
			config.Topics = strings.Split(value, ",")
		case "topic_key":
			config.TopicKey = value
		case "dynamic_topic":
			config.DynamicTopic = value == "On"
		case "message_key":
			config.MessageKey = value
		case "message_key_field":
			config.MessageKeyField = value
		default:
			t.Fatalf("unknown option %q", option)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := NewRouter(config)
	if err != nil {
		t.Fatal(err)
	}
	return timeKey, NewJSON(JSONConfig{TimestampKey: timeKey, TimestampFormat: format}), r
}

// encode does with a chunk what a flush does.
func encode(t *testing.T, in []byte, j *JSON, r *Router) (messages []message, bad []chunk.Entry) {
	t.Helper()
	var e chunk.Entry
	for w := chunk.NewWalker(in); w.Next(&e); {
		switch e.Kind {
		case chunk.Undecodable:
			bad = append(bad, e)
			continue
		case chunk.GroupStart, chunk.GroupEnd:
			continue
		case chunk.Record:
		}
		if !e.TimeOK {
			e.Sec = flushTime
		}
		value, err := j.AppendValue(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		var route Route
		if err := r.Route(e.Body, &route); err != nil {
			t.Fatal(err)
		}
		if route.Refusal != NotRefused {
			t.Errorf("topic %q refused", route.Refused)
		}
		messages = append(messages, message{value, route.Topic, route.Key, route.HasKey})
	}
	return messages, bad
}

// checkBroken checks that the caller can say what is wrong and at which byte.
func checkBroken(t *testing.T, in []byte, bad []chunk.Entry) {
	t.Helper()
	if len(in) == 0 {
		if len(bad) != 0 {
			t.Errorf("an empty chunk has %d undecodable entries; want none", len(bad))
		}
		return
	}
	if len(bad) == 0 {
		t.Error("nothing undecodable; want at least one entry")
	}
	sum := 0
	for _, e := range bad {
		if e.Reason == nil || e.Offset != sum {
			t.Errorf("offset %d, reason %v; want offset %d and a reason", e.Offset, e.Reason, sum)
		}
		sum += e.Len
	}
}

// check checks one expectation of one message.
func check(t *testing.T, m message, timeKey, name string, want json.RawMessage) {
	t.Helper()
	switch name {
	case "json":
		if got, want := parse[any](t, m.value), parse[any](t, want); !reflect.DeepEqual(got, want) {
			t.Errorf("value %s; want %v", m.value, want)
		}
	case "json_fields":
		got := parse[map[string]any](t, m.value)
		for field, want := range parse[map[string]any](t, want) {
			if v, ok := got[field]; !ok || !reflect.DeepEqual(v, want) {
				t.Errorf("field %q is %#v; want %#v", field, v, want)
			}
		}
	case "time_seconds":
		text := string(parse[map[string]json.RawMessage](t, m.value)[timeKey])
		got, want := parse[float64](t, []byte(text)), parse[float64](t, want)
		if math.Abs(got-want) > 1e-6 || strings.ContainsAny(text, "eE") {
			t.Errorf("time field is %s; want %v within a microsecond", text, want)
		}
	case "contains":
		for _, part := range parse[[]string](t, want) {
			if !strings.Contains(string(m.value), part) {
				t.Errorf("value %s; want it to contain %s", m.value, part)
			}
		}
	case "not_suffix":
		if suffix := parse[string](t, want); strings.HasSuffix(string(m.value), suffix) {
			t.Errorf("value %q; want it not to end in %q", m.value, suffix)
		}
	case "count_of_key":
		for key, want := range parse[map[string]int](t, want) {
			text, _ := json.Marshal(key)
			if got := strings.Count(string(m.value), string(text)+":"); got != want {
				t.Errorf("value %s has the key %q %d times; want %d", m.value, key, got, want)
			}
		}
	case "key":
		want := parse[*string](t, want)
		if m.hasKey != (want != nil) || m.hasKey && (string(m.key) != *want || m.key == nil) || !m.hasKey && m.key != nil {
			t.Errorf("key %q, has key: %v; want %v", m.key, m.hasKey, want)
		}
	case "topic":
		if want := parse[string](t, want); m.topic != want {
			t.Errorf("topic %q; want %q", m.topic, want)
		}
	default:
		t.Errorf("unknown expectation %q", name)
	}
}

func parse[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

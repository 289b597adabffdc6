package format

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
)

// maxOracleBytes keeps the fuzzer from spending its time in the slow comparison.
const maxOracleBytes = 1 << 14

// FuzzJSON feeds any bytes as a chunk. Every record of it must give valid JSON in valid
// UTF-8, equal to what the oracle gives, and reading it must not change the route.
func FuzzJSON(f *testing.F) {
	for _, c := range []string{"", "\x01", "\x92\x01\x80", string(oddChunk()[:300]), string(chunk300(2)), string(chunk2K(1))} {
		f.Add([]byte(c))
	}
	head := string(chunktest.Head(nil, 1700000000, 123456789))
	f.Add([]byte(head + string(fields(str("a"), arr(f64(0.1), f32(0.1), str("\xff\u65e5"), bin("\x00")), num(-1), ext(3, "xy")))))
	f.Add([]byte(head + string(fields(string(fields(arr(num(1)), "\x80")), "\xc0", str("t"), num(1), "\xc3", num(2), str("true"), num(3)))))
	f.Add([]byte(head + string(fields(arr(str("\xff\u65e5")), num(1)))))
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:len(in):len(in)]
		j := NewJSON(JSONConfig{TimestampKey: "t", TimestampFormat: TimestampISO8601NS})
		escaping := NewJSON(JSONConfig{TimestampKey: "t", TimestampFormat: TimestampISO8601NS, EscapeUnicode: true})
		router := newRouter(t, RouterConfig{
			Topics: []string{"alpha"}, TopicKey: "a", DynamicTopic: true, MaxDynamicTopics: 2, MessageKeyField: "t",
		})
		var e chunk.Entry
		var route Route
		for w := chunk.NewWalker(in); w.Next(&e); {
			if e.Body == nil {
				continue
			}
			got, err := j.AppendValue([]byte("before"), &e)
			if errors.Is(err, ErrTooDeep) {
				continue
			}
			if err != nil || !bytes.HasPrefix(got, []byte("before{")) {
				t.Fatalf("body %x: %s, %v", e.Body, got, err)
			}
			got = got[len("before"):]
			if !json.Valid(got) || !utf8.Valid(got) {
				t.Fatalf("body %x: not JSON in UTF-8: %s", e.Body, got)
			}
			if len(e.Body) < maxOracleBytes {
				checkEscaped(t, escaping, &e, got)
				timeText := string(append(appendDigits(appendDate([]byte{'"'}, e.Sec), uint32(e.Nsec), 9), `Z"`...))
				if want := oracleJSON(e.Body, "t", timeText); string(got) != want {
					t.Fatalf("body %x:\n got %s\nwant %s", e.Body, got, want)
				}
			}
			if err := router.Route(e.Body, &route); err != nil || route.Topic == "" {
				t.Fatalf("body %x: route %+v, %v", e.Body, route, err)
			}
		}
	})
}

// checkEscaped checks that the same record in ASCII is the same to a reader.
func checkEscaped(t *testing.T, j *JSON, e *chunk.Entry, plain []byte) {
	t.Helper()
	got, err := j.AppendValue(nil, e)
	if err != nil || bytes.ContainsFunc(got, func(r rune) bool { return r >= utf8.RuneSelf }) {
		t.Fatalf("body %x: %s, %v; want ASCII", e.Body, got, err)
	}
	if !reflect.DeepEqual(readJSON(t, got), readJSON(t, plain)) {
		t.Fatalf("body %x: %s differs from %s", e.Body, got, plain)
	}
}

// readJSON reads JSON with its numbers as they stand.
func readJSON(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// FuzzEnvelope takes any records through templates of any text: no panic, every topic is one
// that Kafka takes, and the headers are a list that can be read.
func FuzzEnvelope(f *testing.F) {
	head := string(chunktest.Head(nil, 1700000000, 5))
	f.Add("$TAG[1].$kubernetes['labels'].%Y", "$kubernetes['labels']", "kube.x", []byte(head+string(podRecord)))
	f.Add("$list[2][0]", "$METADATA", "", []byte("\x92\x92\x01\x81\xa1a\x91\xc0\x80"))
	f.Add("x$n%s", "kubernetes", "a.b", chunk2K(1))
	f.Fuzz(func(t *testing.T, text, field, tag string, in []byte) {
		in = in[:len(in):len(in)]
		r := newRouter(t, RouterConfig{Topics: []string{"alpha"}, DynamicTopic: true, MaxDynamicTopics: 2})
		v, err := NewEnvelope(EnvelopeConfig{
			TopicTemplate: text, KeyTemplate: text, PartitionField: field, HeadersField: field, Headers: []HeaderConfig{{"h", text}, {"s", ""}},
		}, r)
		if err != nil {
			return
		}
		timed := NewJSON(JSONConfig{TimestampKey: "t", TagKey: "tag", MetadataKey: "meta"})
		untimed := NewJSON(JSONConfig{TagKey: "tag", MetadataKey: "meta"})
		packed := NewMsgPack(MsgPackConfig{TagKey: "tag", MetadataKey: "meta"})
		v.Begin(tag, time.Unix(0, 0))
		timed.SetTag(tag)
		untimed.SetTag(tag)
		packed.SetTag(tag)
		var e chunk.Entry
		for w := chunk.NewWalker(in); w.Next(&e); {
			if e.Body == nil {
				continue
			}
			for _, j := range []*JSON{timed, untimed} {
				value, err := j.AppendValue(nil, &e)
				if err == nil && !json.Valid(value) {
					t.Fatalf("not JSON: %s", value)
				}
			}
			value, err := packed.AppendValue(nil, &e)
			if end, skipErr := chunk.Skip(value, 0); err != nil || skipErr != nil || end != len(value) {
				t.Fatalf("not MessagePack: %x, %v", value, err)
			}
			s := seal(t, r, v, &e)
			if !legalTopic([]byte(s.Topic)) || s.partition < -1 {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// FuzzJSON_Malformed feeds any bytes as a body, whole or not: no panic, and an error
// for all that is not one whole map.
func FuzzJSON_Malformed(f *testing.F) {
	for _, s := range []string{"", "\x80", "\x81\xa1a", "\xdf\xff\xff\xff\xff", "\x82\xa1a\x01\xc1", "\x81\x81\x81\x01\x01\x01\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:len(in):len(in)]
		end, skipErr := chunk.Skip(in, 0)
		h, _ := chunk.ReadHead(in, 0)
		whole := skipErr == nil && end == len(in) && h.Type == chunk.Map
		got, err := NewJSON(JSONConfig{TimestampKey: "t", TimestampFormat: TimestampDouble}).AppendValue(nil, record(in))
		if !whole && err == nil || whole && err != nil && !errors.Is(err, ErrTooDeep) {
			t.Errorf("body %x, whole: %v: %s, %v", in, whole, got, err)
		}
		err = newRouter(t, RouterConfig{Topics: []string{"a"}, TopicKey: "b"}).Route(in, new(Route))
		if whole && err != nil {
			t.Errorf("body %x: %v", in, err)
		}
	})
}

// FuzzJSON_RoundTrip makes a record of data that JSON can hold and reads it back.
func FuzzJSON_RoundTrip(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07some text for the leaves of the tree"))
	f.Add([]byte(strings.Repeat("\x07\x06\x05", 30)))
	f.Fuzz(func(t *testing.T, seed []byte) {
		g := generator{seed: seed}
		want, packed := g.object(0)
		e := chunk.Entry{Body: packed}
		got, err := NewJSON(JSONConfig{TimestampKey: "time", TimestampFormat: TimestampDouble}).AppendValue(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(got))
		d.UseNumber()
		var back map[string]any
		if err := d.Decode(&back); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		want["time"] = json.Number("0.0")
		if !reflect.DeepEqual(back, want) {
			t.Errorf("\n got %#v\nwant %#v\nJSON %s", back, want, got)
		}
	})
}

// generator turns bytes into a tree and its msgpack form at the same time.
type generator struct{ seed []byte }

func (g *generator) next() byte {
	if len(g.seed) == 0 {
		return 0
	}
	c := g.seed[0]
	g.seed = g.seed[1:]
	return c
}

func (g *generator) text() string {
	n := min(int(g.next())%40, len(g.seed))
	s := strings.ToValidUTF8(string(g.seed[:n]), "日")
	g.seed = g.seed[n:]
	return s
}

func (g *generator) object(depth int) (map[string]any, []byte) {
	var packed []byte
	m := map[string]any{}
	for range g.next() % 20 {
		key := g.text()
		if _, ok := m[key]; ok || depth == 0 && key == "time" {
			continue
		}
		value, p := g.value(depth + 1)
		m[key] = value
		packed = append(chunktest.Str(packed, key), p...)
	}
	return m, append(chunktest.Map(nil, len(m)), packed...)
}

func (g *generator) value(depth int) (any, []byte) {
	kind := g.next() % 8
	if depth > 6 {
		kind %= 6
	}
	switch kind {
	case 1:
		return true, chunktest.Bool(nil, true)
	case 2:
		s := g.text()
		return s, chunktest.Str(nil, s)
	case 3:
		s := g.text()
		return s, chunktest.Bin(nil, s)
	case 4, 5:
		var b [8]byte
		copy(b[:], g.seed)
		g.seed = g.seed[min(8, len(g.seed)):]
		v := int64(binary.BigEndian.Uint64(b[:])) >> (g.next() % 64)
		if kind == 4 {
			return json.Number(oracleValue(v)), chunktest.Int(nil, v)
		}
		return json.Number(oracleFloat(float64(v) / 1024)), chunktest.Float64(nil, float64(v)/1024)
	case 6:
		return g.object(depth)
	case 7:
		list, packed := []any{}, []byte(nil)
		for range g.next() % 20 {
			value, p := g.value(depth + 1)
			list = append(list, value)
			packed = append(packed, p...)
		}
		return list, append(chunktest.Array(nil, len(list)), packed...)
	}
	return nil, chunktest.Nil(nil)
}

package format

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/reconnect"
)

// sealed is what an envelope makes of one record.
type sealed struct {
	Route
	partition   int32
	partitionOK bool
	headers     string // name=value in a row; null is <null>
}

// seal takes one record through a router and an envelope.
func seal(t *testing.T, r *Router, v *Envelope, e *chunk.Entry) sealed {
	t.Helper()
	var s sealed
	if err := r.Route(e.Body, &s.Route); err != nil {
		t.Fatal(err)
	}
	if err := v.Read(e); err != nil {
		t.Fatal(err)
	}
	v.Address(&s.Route)
	s.partition, s.partitionOK = v.Partition()
	b := reconnect.Batch{Data: v.AppendHeaders(nil)}
	b.Messages = []reconnect.Message{{HdrLen: int32(len(b.Data))}}
	var headers []string
	for name, value := range b.Headers(0) {
		if value == nil {
			headers = append(headers, name+"=<null>")
		} else {
			headers = append(headers, name+"="+string(value))
		}
	}
	s.headers = strings.Join(headers, " ")
	return s
}

func newEnvelope(t *testing.T, c EnvelopeConfig, r *Router) *Envelope {
	t.Helper()
	v, err := NewEnvelope(c, r)
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		t.Fatalf("no envelope of %+v", c)
	}
	return v
}

// A record as a Kubernetes node sends it.
var podRecord = fields(
	str("log"), str("line"), str("n"), num(7), str("ok"), "\xc3", str("f"), f64(1.5), str("nan"), f64(math.NaN()),
	str("null"), "\xc0", str("empty"), str(""), str("blank"), str("a b"),
	str("kubernetes"), string(fields(
		str("namespace_name"), str("shop"), str("labels"), string(fields(str("app.kubernetes.io/name"), str("orders"), str("x"), num(1))),
	)),
	str("list"), arr(str("first"), num(2), arr(str("inner"))), str("raw"), bin("\x00\xff"),
)

func podEntry() *chunk.Entry {
	return &chunk.Entry{
		Sec: 1700000000, Nsec: 5, TimeOK: true, Body: podRecord,
		Metadata: fields(str("otlp"), string(fields(str("severity_number"), num(9)))),
	}
}

func TestEnvelope_Templates(t *testing.T) {
	long := strings.Repeat("x", 240)
	for _, tt := range []struct {
		template, want string // as a topic
		key            string // as a key; "-" is none
		refusal        Refusal
	}{
		{"app-$kubernetes['namespace_name']", "app-shop", "app-shop", NotRefused},
		{"$TAG", "kube.var.log", "kube.var.log", NotRefused},
		{"logs.$TAG[1]_$n", "logs.var_7", "logs.var_7", NotRefused},
		{"logs-%Y.%m.%d", "logs-2023.11.14", "logs-2023.11.14", NotRefused},
		{"%Y-$list[0]-%H", "2023-first-22", "2023-first-22", NotRefused},
		{"$list[2][0]$list[1]$ok$f", "inner2true1.5", "inner2true1.5", NotRefused},
		{"$kubernetes['labels']['app.kubernetes.io/name']", "orders", "orders", NotRefused},
		{"s$METADATA['otlp']['severity_number']", "s9", "s9", NotRefused},
		{"listed", "listed", "listed", NotRefused},
		{"x$empty", "x", "x", NotRefused},
		{"$empty", "alpha", "", RefusedGap},
		{"$blank", "alpha", "a b", RefusedName},
		{"$raw", "alpha", "\x00\xff", RefusedName},
		{long + "$log$log$log", "alpha", long + "linelineline", RefusedName},
		{"x$absent", "alpha", "-", RefusedGap},
		{"$TAG[3]x", "alpha", "-", RefusedGap},
		{"$kubernetes", "alpha", "-", RefusedGap},
		{"$list", "alpha", "-", RefusedGap},
		{"$null", "alpha", "-", RefusedGap},
		{"$nan", "alpha", "-", RefusedGap},
		{"$log['x']", "alpha", "-", RefusedGap},
	} {
		r := newRouter(t, RouterConfig{Topics: []string{"alpha", "listed"}, DynamicTopic: true, MaxDynamicTopics: 9})
		v := newEnvelope(t, EnvelopeConfig{TopicTemplate: tt.template, KeyTemplate: tt.template}, r)
		v.Begin("other", time.Now())
		v.Begin("kube.var.log", time.Now())
		for range 2 {
			s := seal(t, r, v, podEntry())
			if s.Topic != tt.want || s.Refusal != tt.refusal {
				t.Errorf("%s: topic %q, refusal %d; want %q, %d", tt.template, s.Topic, s.Refusal, tt.want, tt.refusal)
			}
			if s.HasKey != (tt.key != "-") || s.HasKey && string(s.Key) != tt.key || !s.HasKey && s.Key != nil {
				t.Errorf("%s: key %q, has key: %v; want %q", tt.template, s.Key, s.HasKey, tt.key)
			}
			if s.partition != reconnect.PartitionAny || !s.partitionOK || s.headers != "" {
				t.Errorf("%s: partition %d, headers %s", tt.template, s.partition, s.headers)
			}
		}
	}
}

// An accessor in topic_key or message_key_field has the rules of these options: the topic
// must be listed, and what is missing is no fault.
func TestEnvelope_Fields(t *testing.T) {
	for _, tt := range []struct {
		field, topic, key string
		dynamic           bool
		refusal           Refusal
	}{
		{"$kubernetes['namespace_name']", "shop", "shop", false, NotRefused},
		{"$list[0]", "alpha", "first", false, NotRefused},
		{"$list[0]", "first", "first", true, NotRefused},
		{"$blank", "alpha", "a b", false, NotRefused},
		{"$blank", "alpha", "a b", true, RefusedName},
		{"$absent", "alpha", "literal", true, NotRefused},
		{"$kubernetes['labels']", "alpha", "literal", true, NotRefused},
		{"$empty", "alpha", "", true, NotRefused},
		{"$n", "7", "7", true, NotRefused},
	} {
		r := newRouter(t, RouterConfig{
			Topics: []string{"alpha", "shop"}, DynamicTopic: tt.dynamic, MaxDynamicTopics: 9, MessageKey: "literal",
		})
		v := newEnvelope(t, EnvelopeConfig{TopicField: tt.field, KeyField: tt.field}, r)
		v.Begin("tag", time.Now())
		s := seal(t, r, v, podEntry())
		if s.Topic != tt.topic || s.Refusal != tt.refusal || string(s.Key) != tt.key || !s.HasKey {
			t.Errorf("%s: topic %q, refusal %d, key %q; want %q, %d, %q", tt.field, s.Topic, s.Refusal, s.Key, tt.topic, tt.refusal, tt.key)
		}
	}
}

// A router that has a topic_key of its own leaves the key to the envelope, and the other way
// round.
func TestEnvelope_BesideTheRouter(t *testing.T) {
	r := newRouter(t, RouterConfig{Topics: []string{"alpha", "line"}, TopicKey: "log", MessageKey: "k"})
	v := newEnvelope(t, EnvelopeConfig{KeyField: "$n"}, r)
	v.Begin("tag", time.Now())
	if s := seal(t, r, v, podEntry()); s.Topic != "line" || string(s.Key) != "7" {
		t.Errorf("topic %q, key %q", s.Topic, s.Key)
	}
	r = newRouter(t, RouterConfig{Topics: []string{"alpha"}, DynamicTopic: true, MaxDynamicTopics: 1, MessageKeyField: "log"})
	v = newEnvelope(t, EnvelopeConfig{TopicTemplate: "t$n"}, r)
	v.Begin("tag", time.Now())
	if s := seal(t, r, v, podEntry()); s.Topic != "t7" || string(s.Key) != "line" {
		t.Errorf("topic %q, key %q", s.Topic, s.Key)
	}
}

func TestEnvelope_Limit(t *testing.T) {
	r := newRouter(t, RouterConfig{Topics: []string{"alpha"}, DynamicTopic: true, MaxDynamicTopics: 2})
	v := newEnvelope(t, EnvelopeConfig{TopicTemplate: "t$n"}, r)
	v.Begin("tag", time.Now())
	for range 2 {
		for i, want := range []string{"t0", "t1", "alpha", "alpha"} {
			s := seal(t, r, v, &chunk.Entry{Body: fields(str("n"), num(int64(i)))})
			if s.Topic != want || (s.Refusal == RefusedLimit) != (want == "alpha") {
				t.Errorf("record %d: topic %q, refusal %d; want %q", i, s.Topic, s.Refusal, want)
			}
		}
	}
}

// Topics with a date would use the room up in time. Those that are no longer met make room,
// those that are met stay, and without a date nothing is forgotten.
func TestEnvelope_ForgetsTopicsOfThePast(t *testing.T) {
	route := func(r *Router, v *Envelope, name string, now time.Time) string {
		v.Begin("tag", now)
		return seal(t, r, v, &chunk.Entry{Sec: now.Unix(), Body: fields(str("a"), str(name))}).Topic
	}
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const days = 40
	for _, tt := range []struct {
		template string
		dated    bool
	}{{"$a.%j", true}, {"$a$a", false}} {
		r := newRouter(t, RouterConfig{Topics: []string{"alpha", "listed"}, DynamicTopic: true, MaxDynamicTopics: 4})
		v := newEnvelope(t, EnvelopeConfig{TopicTemplate: tt.template}, r)
		refused := 0
		for day := range days {
			now := begin.Add(time.Duration(day) * 24 * time.Hour)
			if got := route(r, v, "x"+strconv.Itoa(day), now); got == "alpha" {
				refused++
			}
		}
		if want := days - 4; tt.dated && refused != 0 || !tt.dated && refused != want {
			t.Errorf("%s: %d names were refused in %d days", tt.template, refused, days)
		}
		if tt.dated && len(r.known)+len(r.old) > 4+2 {
			t.Errorf("%d and %d names are known; the limit is 4, and 2 are listed", len(r.known), len(r.old))
		}
	}
	// A name that is met every day is never refused, however full it is, and counts once.
	r := newRouter(t, RouterConfig{Topics: []string{"alpha"}, DynamicTopic: true, MaxDynamicTopics: 3})
	for range 5 {
		r.age()
		for _, name := range []string{"one", "two", "three"} {
			var out Route
			r.pickTopic([]byte(name), &out)
			if out.Topic != name {
				t.Fatalf("%s goes to %q", name, out.Topic)
			}
		}
		var out Route
		if r.pickTopic([]byte("four"), &out); out.Refusal != RefusedLimit {
			t.Fatalf("a fourth name: %+v", out)
		}
	}
}

func TestEnvelope_Partition(t *testing.T) {
	for _, tt := range []struct {
		value string // msgpack
		want  int32
		ok    bool
	}{
		{num(0), 0, true},
		{num(7), 7, true},
		{"\xd0\x05", 5, true},
		{num(math.MaxInt32), math.MaxInt32, true},
		{num(math.MaxInt32 + 1), -1, false},
		{"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", -1, false},
		{"\xff", -1, false},
		{f64(3), 3, true},
		{f32(3), 3, true},
		{f64(3.5), -1, false},
		{f64(-1), -1, false},
		{f64(1e10), -1, false},
		{f64(math.NaN()), -1, false},
		{f64(math.Inf(1)), -1, false},
		{str("12"), 12, true},
		{str("012"), 12, true},
		{str("9999999999"), -1, false},
		{str("99999999999999999999"), -1, false},
		{str(""), -1, false},
		{str("-1"), -1, false},
		{str("+1"), -1, false},
		{str("0x1"), -1, false},
		{str("1_0"), -1, false},
		{str("1 "), -1, false},
		{"\xc0", -1, true},
		{"\xc3", -1, false},
		{arr(num(1)), -1, false},
	} {
		for _, field := range []string{"p", "$p", "$in['p']"} {
			r := newRouter(t, RouterConfig{Topics: []string{"alpha"}})
			v := newEnvelope(t, EnvelopeConfig{PartitionField: field}, r)
			v.Begin("tag", time.Now())
			s := seal(t, r, v, &chunk.Entry{Body: fields(str("p"), tt.value, str("in"), string(fields(str("p"), tt.value)))})
			if s.partition != tt.want || s.partitionOK != tt.ok {
				t.Errorf("%s of %x: %d, %v; want %d, %v", field, tt.value, s.partition, s.partitionOK, tt.want, tt.ok)
			}
			if s := seal(t, r, v, &chunk.Entry{Body: fields()}); s.partition != -1 || !s.partitionOK {
				t.Errorf("%s without the field: %d, %v", field, s.partition, s.partitionOK)
			}
		}
	}
}

func TestEnvelope_Headers(t *testing.T) {
	body := fields(
		str("h"), string(fields(
			str("s"), str("text \"q\""), str("b"), bin("\x00\xff"), str("i"), num(3), str("t"), "\xc3", str("z"), "\xc0", str("f"), f64(2),
			str("nan"), f64(math.NaN()), str("m"), string(fields(str("k"), arr(num(1), str("x")))), str("e"), str(""), num(1), str("no name"),
			str("s"), str("again"), str("time"), "\xd7\x00\x65\x53\xf1\x00\x00\x00\x00\x01", bin("bn"), arr(),
		)),
		str("a"), str("v"), str("null"), "\xc0", str("m"), string(fields(str("x"), num(1), str("x"), num(2))), str("n"), num(1),
	)
	metadata := fields(str("trace"), str("t1"), str("otlp"), string(fields(str("severity"), num(9))))
	for _, tt := range []struct {
		name   string
		config EnvelopeConfig
		want   string
	}{
		{
			"static",
			EnvelopeConfig{Headers: []HeaderConfig{{"source", "fluent-bit"}, {"empty", ""}, {"pct", "1%%"}, {"source", "twice"}}},
			"source=fluent-bit empty= pct=1% source=twice",
		},
		{
			"tag and date",
			EnvelopeConfig{Headers: []HeaderConfig{{"tag", "$TAG"}, {"app", "$TAG[1]!"}, {"day", "%F"}, {"no", "$TAG[9]"}}},
			"tag=kube.app app=app! day=2023-11-14",
		},
		{"fields", EnvelopeConfig{Headers: []HeaderConfig{
			{"a", "$a"},
			{"n", "n=$n"},
			{"map", "$m"},
			{"null", "$null"},
			{"gone", "$gone"},
			{"part", "x$gone"},
			{"sev", "$METADATA['otlp']['severity']"},
			{"mapped", "x$m"},
		}}, `a=v n=n=1 map={"x":2} sev=9`},
		{
			"map",
			EnvelopeConfig{HeadersField: "h"},
			"s=text \"q\" b=\x00\xff i=3 t=true z=<null> f=2.0 nan=null m={\"k\":[1,\"x\"]} e= s=again time=2023-11-14T22:13:20.000000001Z bn=[]",
		},
		{"nested map behind static", EnvelopeConfig{HeadersField: "$METADATA['otlp']", Headers: []HeaderConfig{{"a", "b"}}}, "a=b severity=9"},
		{"metadata", EnvelopeConfig{HeadersField: "$METADATA"}, `trace=t1 otlp={"severity":9}`},
		{"no map", EnvelopeConfig{HeadersField: "a"}, ""},
		{"no field", EnvelopeConfig{HeadersField: "$gone['x']"}, ""},
	} {
		r := newRouter(t, RouterConfig{Topics: []string{"alpha"}})
		v := newEnvelope(t, tt.config, r)
		v.Begin("kube.app", time.Now())
		for range 2 {
			if s := seal(t, r, v, &chunk.Entry{Sec: 1700000000, Body: body, Metadata: metadata}); s.headers != tt.want {
				t.Errorf("%s:\ngot  %s\nwant %s", tt.name, s.headers, tt.want)
			}
		}
	}
	// Without metadata there are no headers of it.
	r := newRouter(t, RouterConfig{Topics: []string{"alpha"}})
	v := newEnvelope(t, EnvelopeConfig{HeadersField: "$METADATA"}, r)
	if s := seal(t, r, v, &chunk.Entry{Body: body}); s.headers != "" {
		t.Errorf("headers of no metadata: %s", s.headers)
	}
}

// The date of a template is kept for a second; it must not be kept for longer.
func TestEnvelope_DateChangesWithTheRecord(t *testing.T) {
	r := newRouter(t, RouterConfig{Topics: []string{"alpha"}})
	v := newEnvelope(t, EnvelopeConfig{KeyTemplate: "%S", Headers: []HeaderConfig{{"s", "%s"}}}, r)
	v.Begin("tag", time.Now())
	for _, sec := range []int64{0, 0, 1, 59, 60, 1, 1700000000, 253402300799} {
		s := seal(t, r, v, &chunk.Entry{Sec: sec, Body: fields()})
		if want := fmt.Sprintf("%02d", sec%60); string(s.Key) != want || s.headers != fmt.Sprint("s=", sec) {
			t.Errorf("second %d: key %s, headers %s", sec, s.Key, s.headers)
		}
	}
}

func TestNewEnvelope_Errors(t *testing.T) {
	r := newRouter(t, RouterConfig{Topics: []string{"alpha"}})
	if v, err := NewEnvelope(EnvelopeConfig{}, r); v != nil || err != nil {
		t.Errorf("nothing asked for: %v, %v", v, err)
	}
	for _, c := range []EnvelopeConfig{
		{TopicField: "$"},
		{TopicTemplate: "$"},
		{KeyField: "$a."},
		{KeyTemplate: "%"},
		{PartitionField: "$1"},
		{HeadersField: "$TAG"},
		{Headers: []HeaderConfig{{"ok", "x"}, {"bad", "50%"}}},
	} {
		if v, err := NewEnvelope(c, r); v != nil || err == nil || !strings.HasPrefix(err.Error(), "format: ") {
			t.Errorf("%+v: %v, %v; want an error", c, v, err)
		}
	}
	v := newEnvelope(t, EnvelopeConfig{KeyField: "$a"}, r)
	if err := v.Read(&chunk.Entry{Body: []byte("\x81\xa1a")}); !errors.Is(err, chunk.ErrTruncated) {
		t.Errorf("a body that is cut off: %v", err)
	}
}

// full is an envelope that uses everything.
var full = EnvelopeConfig{
	TopicTemplate: "app.$kubernetes['namespace_name'].%Y", KeyTemplate: "$kubernetes['labels']['app.kubernetes.io/name']:$n",
	PartitionField: "$n", Headers: []HeaderConfig{{"source", "fluent-bit"}, {"tag", "$TAG[0]"}, {"sev", "$METADATA['otlp']"}},
	HeadersField: "$kubernetes['labels']",
}

func TestEnvelope_Allocations(t *testing.T) {
	r := newRouter(t, RouterConfig{Topics: []string{"alpha"}, DynamicTopic: true, MaxDynamicTopics: 9})
	v := newEnvelope(t, full, r)
	e := podEntry()
	var out Route
	var buf []byte
	now := time.Now()
	n := testing.AllocsPerRun(10, func() {
		v.Begin("kube.var", now)
		if err := v.Read(e); err != nil {
			t.Fatal(err)
		}
		out = Route{}
		v.Address(&out)
		if p, ok := v.Partition(); p != 7 || !ok || out.Topic != "app.shop.2023" || string(out.Key) != "orders:7" {
			t.Fatalf("%d, %v, %s, %s", p, ok, out.Topic, out.Key)
		}
		buf = v.AppendHeaders(buf[:0])
	})
	if n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}

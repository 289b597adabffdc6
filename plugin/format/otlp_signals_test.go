package format

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"out_kafka_reconnect/plugin/chunk"
)

// written is what Fluent Bit has written of the contexts of a chunk in testdata.
func written(t *testing.T, signal chunk.Signal) (messages [][]byte) {
	t.Helper()
	for i := range 2 {
		b, err := os.ReadFile(filepath.Join("..", "testdata", "telemetry", fmt.Sprintf("%s.%d.otlp", signal, i)))
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, b)
	}
	return messages
}

// newData is an empty message of a signal.
func newData(signal chunk.Signal) proto.Message {
	if signal == chunk.Metrics {
		return &metrics.MetricsData{}
	}
	return &trace.TracesData{}
}

// putTogether runs messages through an encoder.
func putTogether(t *testing.T, s *OTLPSignals, signal chunk.Signal, messages ...[]byte) (out [][]byte) {
	t.Helper()
	s.Begin(signal)
	for _, m := range messages {
		if err := s.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	for {
		m, key, ok := s.AppendMessage([]byte("before"))
		if !ok {
			return out
		}
		if key != nil {
			t.Errorf("a key: %q", key)
		}
		out = append(out, m[len("before"):])
	}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOTLPSignals_SaysWhatFluentBitSays(t *testing.T) {
	for _, signal := range []chunk.Signal{chunk.Metrics, chunk.Traces} {
		messages := written(t, signal)
		want := newData(signal)
		for _, m := range messages {
			if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(m, want); err != nil {
				t.Fatal(err)
			}
		}
		asProto, asJSON := newData(signal), newData(signal)
		got := putTogether(t, NewOTLPSignals(OTLPConfig{MaxBytes: math.MaxInt}), signal, messages...)
		if len(got) != 1 || proto.Unmarshal(got[0], asProto) != nil || !proto.Equal(asProto, want) {
			t.Errorf("%v in protobuf: %d messages, %v, want\n%v", signal, len(got), asProto, want)
		}
		got = putTogether(t, NewOTLPSignals(OTLPConfig{MaxBytes: math.MaxInt, JSON: true}), signal, messages...)
		if len(got) != 1 {
			t.Fatalf("%v in JSON: %d messages", signal, len(got))
		}
		readOTLPJSON(t, got[0], asJSON)
		if !proto.Equal(asJSON, want) {
			t.Errorf("%v in JSON: %s, want\n%v", signal, got[0], want)
		}
	}
}

// What the recorded chunks lack.
func TestOTLPSignals_JSON(t *testing.T) {
	id, span := []byte("0123456789abcdef"), []byte("01234567")
	spans := &trace.ResourceSpans{ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{{
		TraceId: id, SpanId: span, ParentSpanId: span, Kind: trace.Span_SPAN_KIND_SERVER, Flags: 1 << 31,
		StartTimeUnixNano: math.MaxUint64,
		Attributes: []*common.KeyValue{
			{Key: "i", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: math.MinInt64}}},
			{Key: "b", Value: &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: span}}},
			{Key: "t", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{}}},
		},
		Links: []*trace.Span_Link{{TraceId: id, SpanId: span}},
	}}}}}
	nan := math.NaN()
	points := &metrics.ResourceMetrics{ScopeMetrics: []*metrics.ScopeMetrics{{Metrics: []*metrics.Metric{
		{Name: "e", Data: &metrics.Metric_ExponentialHistogram{ExponentialHistogram: &metrics.ExponentialHistogram{
			DataPoints: []*metrics.ExponentialHistogramDataPoint{{Scale: -3, Sum: &nan, Positive: &metrics.ExponentialHistogramDataPoint_Buckets{
				Offset: -1, BucketCounts: []uint64{0, math.MaxUint64},
			}}},
		}}},
		{Name: "g\n\x00", Data: &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: []*metrics.NumberDataPoint{
			{Value: &metrics.NumberDataPoint_AsDouble{}},
			{Value: &metrics.NumberDataPoint_AsDouble{AsDouble: math.Inf(-1)}},
			{Exemplars: []*metrics.Exemplar{{SpanId: span, Value: &metrics.Exemplar_AsInt{AsInt: -1}}}},
		}}}},
	}}}}
	for _, tt := range []struct {
		signal  chunk.Signal
		message proto.Message
		want    string
	}{
		{chunk.Traces, &trace.TracesData{ResourceSpans: []*trace.ResourceSpans{spans}}, `{"resourceSpans":[{"scopeSpans":[{"spans":[{` +
			`"traceId":"30313233343536373839616263646566","spanId":"3031323334353637","parentSpanId":"3031323334353637","flags":2147483648,` +
			`"kind":2,"startTimeUnixNano":"18446744073709551615","attributes":[{"key":"i","value":{"intValue":"-9223372036854775808"}},` +
			`{"key":"b","value":{"bytesValue":"MDEyMzQ1Njc="}},{"key":"t","value":{"boolValue":false}}],` +
			`"links":[{"traceId":"30313233343536373839616263646566","spanId":"3031323334353637"}]}]}]}]}`},
		{chunk.Metrics, &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{points}}, `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[` +
			`{"name":"e","exponentialHistogram":{"dataPoints":[{"sum":"NaN","scale":-3,"positive":{"offset":-1,"bucketCounts":["0","18446744073709551615"]}}]}},` +
			`{"name":"g\n\u0000","gauge":{"dataPoints":[{"asDouble":0.0},{"asDouble":"-Infinity"},{"exemplars":[{"asInt":"-1","spanId":"3031323334353637"}]}]}}]}]}]}`},
	} {
		got := putTogether(t, NewOTLPSignals(OTLPConfig{MaxBytes: math.MaxInt, JSON: true}), tt.signal, marshal(t, tt.message))
		if len(got) != 1 || string(got[0]) != tt.want {
			t.Errorf("%s, want\n%s", got, tt.want)
		}
		back := newData(tt.signal)
		readOTLPJSON(t, got[0], back)
		if a, b := fmt.Sprint(back), fmt.Sprint(tt.message); a != b { // NaN is not equal to itself
			t.Errorf("it reads as %s, want %s", a, b)
		}
	}
}

func TestOTLPSignals_EndsAMessageBetweenResources(t *testing.T) {
	data := &trace.TracesData{}
	for i := range 10 {
		data.ResourceSpans = append(data.ResourceSpans, &trace.ResourceSpans{SchemaUrl: strings.Repeat(fmt.Sprint(i), 100)})
	}
	data.ResourceSpans[4].SchemaUrl = strings.Repeat("4", 2000) // has a message for itself, which is too large
	for _, asJSON := range []bool{false, true} {
		s := NewOTLPSignals(OTLPConfig{MaxBytes: 400, JSON: asJSON})
		back := &trace.TracesData{}
		for n, m := range putTogether(t, s, chunk.Traces, marshal(t, data)) {
			part := &trace.TracesData{}
			if asJSON {
				readOTLPJSON(t, m, part)
			} else if err := proto.Unmarshal(m, part); err != nil {
				t.Fatal(err)
			}
			if alone := len(part.ResourceSpans) == 1 && len(part.ResourceSpans[0].SchemaUrl) == 2000; len(m) > 400 && !alone {
				t.Errorf("message %d has %d bytes", n, len(m))
			}
			back.ResourceSpans = append(back.ResourceSpans, part.ResourceSpans...)
		}
		if !proto.Equal(back, data) {
			t.Errorf("JSON %v: %v, want %v", asJSON, back, data)
		}
	}
}

func TestOTLPSignals_ABadMessageIsLeftOutAlone(t *testing.T) {
	good := written(t, chunk.Traces)[0]
	badText := []byte("\x0a\x03\x1a\x01\xff") // the schema_url of a resource, which is no UTF-8
	for _, tt := range []struct {
		name    string
		asJSON  bool
		message []byte
	}{
		{"cut off", false, good[:len(good)-1]},
		{"no tag", false, append(append([]byte{}, good...), 0xff)},
		{"text in JSON", true, append(append([]byte{}, good...), badText...)},
	} {
		s := NewOTLPSignals(OTLPConfig{MaxBytes: math.MaxInt, JSON: tt.asJSON})
		s.Begin(chunk.Traces)
		if err := errors.Join(s.Add(good), s.Add([]byte{0x10, 1}), s.Add(nil)); err != nil { // another field, and nothing
			t.Fatal(err)
		}
		want, _, _ := s.AppendMessage(nil)
		s.Begin(chunk.Traces)
		if err := errors.Join(s.Add(tt.message), s.Add(good)); !errors.Is(err, ErrOTLPMessage) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got, _, ok := s.AppendMessage(nil); !ok || string(got) != string(want) {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
		if _, _, ok := s.AppendMessage(nil); ok {
			t.Errorf("%s: a further message", tt.name)
		}
	}
}

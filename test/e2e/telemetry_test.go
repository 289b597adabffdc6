//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"

	"github.com/twmb/franz-go/pkg/kgo"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"out_kafka_reconnect/test/e2e/audit"
	"out_kafka_reconnect/test/e2e/rig"
)

// telemetry compares the metrics or traces in a topic with those that another output has written to the topic of that name
// in another Kafka.
func (s *scenario) telemetry(w *words) error {
	limit := w.duration(w.option("within", "10s"))
	name := w.option("of", mainKafka)
	topic := w.option("in", rig.Topic)
	signal, format := w.next("the signal"), w.next("the format")
	n := w.number(w.next("the smallest number of resources"))
	if w.wrong != nil {
		return w.wrong
	}
	ctx, cancel := s.within(limit)
	defer cancel()
	return until(ctx, func() error {
		want, err := resourcesIn(ctx, s.brokers[name], topic, signal, format)
		if err != nil {
			return fmt.Errorf("what is to be compared with: %w", err)
		}
		got, err := resourcesIn(ctx, s.brokers[mainKafka], topic, signal, format)
		if err != nil {
			return err
		}
		if len(want) < n {
			return fmt.Errorf("there are %d different resources in topic %s of %s, want %d", len(want), topic, name, n)
		}
		for text := range want {
			if got[text] != want[text] {
				return fmt.Errorf("topic %s: this resource is there %d times, want %d; there are %d different ones, want %d:\n%.2000s",
					topic, got[text], want[text], len(got), len(want), text)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("topic %s: %d different resources, want %d", topic, len(got), len(want))
		}
		return nil
	})
}

// otlpIDs are in hex in the JSON of OTLP, and in base64 in that of protobuf.
var otlpIDs = regexp.MustCompile(`"((?:trace|span|parentSpan)Id)": ?"([0-9a-f]*)"`)

// resourcesIn counts the resources in the messages of a topic, with what belongs to each, by their text.
func resourcesIn(ctx context.Context, b rig.Broker, topic, signal, format string) (map[string]int, error) {
	counts := map[string]int{}
	read := proto.Unmarshal
	if format == "json" {
		read = func(value []byte, m proto.Message) error {
			return protojson.Unmarshal(otlpIDs.ReplaceAllFunc(value, func(field []byte) []byte {
				parts := otlpIDs.FindSubmatch(field)
				id, _ := hex.DecodeString(string(parts[2])) // it has matched; an odd length shows as another id
				return fmt.Appendf(nil, `"%s":"%s"`, parts[1], base64.StdEncoding.EncodeToString(id))
			}), m)
		}
	}
	var unreadable error
	_, err := audit.Read(ctx, audit.Options{Brokers: b.AuditAddrs(), Topic: topic, Extract: func(r *kgo.Record) (int64, error) {
		var (
			points metrics.MetricsData
			spans  trace.TracesData
			into   proto.Message = &spans
		)
		if signal == "metrics" {
			into = &points
		}
		if err := read(r.Value, into); err != nil {
			unreadable = fmt.Errorf("topic %s: %w: %.300q", topic, err, r.Value)
		}
		for _, m := range points.ResourceMetrics {
			m.Resource = cmp.Or(m.Resource, &resource.Resource{}) // without one says the same
			for _, scope := range m.ScopeMetrics {
				scope.Scope = cmp.Or(scope.Scope, &common.InstrumentationScope{})
			}
			counts[prototext(m)]++
		}
		for _, m := range spans.ResourceSpans {
			for _, scope := range m.ScopeSpans {
				for _, span := range scope.Spans {
					span.Status = cmp.Or(span.Status, &trace.Status{})
				}
			}
			counts[prototext(m)]++
		}
		return r.Offset, nil
	}})
	if err == nil {
		err = unreadable
	}
	return counts, err
}

// prototext is a message in words, the same for equal messages of one process.
func prototext(m proto.Message) string {
	return protojson.MarshalOptions{UseEnumNumbers: true}.Format(m)
}

package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/test/e2e/audit"
)

// Records reads a topic to its end and writes each record as one text: partition, key ("-" is none), headers, whether its
// timestamp is the time in its value, and the value.
func Records(ctx context.Context, b Broker, topic string) ([]string, error) {
	var all []string
	_, err := audit.Read(ctx, audit.Options{
		Brokers: b.AuditAddrs(), Topic: topic,
		Extract: func(r *kgo.Record) (int64, error) {
			all = append(all, recordText(r))
			return int64(len(all)), nil
		},
	})
	return all, err
}

func recordText(r *kgo.Record) string {
	var text strings.Builder
	key := "-"
	if r.Key != nil {
		key = string(r.Key)
	}
	fmt.Fprintf(&text, "partition=%d key=%s ", r.Partition, key)
	for _, h := range r.Headers {
		fmt.Fprintf(&text, "%s=%s ", h.Key, h.Value)
	}
	if timeOf(r.Value).Equal(r.Timestamp) {
		text.WriteString("event-time ")
	}
	text.WriteString(": ")
	text.Write(r.Value)
	return text.String()
}

// timeOf is the time that a value in JSON tells, to the millisecond.
func timeOf(value []byte) time.Time {
	var fields struct {
		Time json.Number `json:"@timestamp"`
	}
	if json.Unmarshal(value, &fields) != nil {
		return time.Time{}
	}
	seconds, fraction, _ := strings.Cut(fields.Time.String(), ".")
	d, err := time.ParseDuration(seconds + "s" + (fraction + "000")[:3] + "ms")
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, int64(d))
}

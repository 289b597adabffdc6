package deadletter

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	event = time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC)
)

func headersOf(b *reconnect.Batch, message int) map[string]string {
	got := map[string]string{}
	for name, value := range b.Headers(message) {
		got[name] = string(value)
	}
	return got
}

func part(b *reconnect.Batch, off, n int32) string {
	if n < 0 {
		return "null"
	}
	return string(b.Data[off : off+n])
}

func TestTopic_KeepsTheRecordAndTellsWhatHappened(t *testing.T) {
	letters := []Letter{
		{
			Kind: TooLarge, Code: 10, Reason: "Broker: Message size too large", Topic: "app", Tag: "kube.pod",
			Time: noon, EventTime: event, Key: []byte{}, Value: []byte("{}"), Headers: []Header{{"trace", []byte("7")}, {"none", nil}},
		},
		{Kind: Undecodable, Reason: "no record", Tag: "t", Time: noon, Value: []byte{0x93, 0xc1}},
	}
	b := Topic{Name: "dead", MaxBytes: 1000000}.Batch(letters)
	if len(b.Messages) != 2 || b.Topics[b.Messages[1].Topic] != "dead" || b.Messages[0].Partition != reconnect.PartitionAny {
		t.Fatalf("%+v", b)
	}
	m := b.Messages[0]
	if part(b, m.KeyOff, m.KeyLen) != "" || part(b, m.ValOff, m.ValLen) != "{}" {
		t.Errorf("key %s, value %s", part(b, m.KeyOff, m.KeyLen), part(b, m.ValOff, m.ValLen))
	}
	want := map[string]string{
		"trace": "7", "none": "",
		HeaderKind: "too_large", HeaderCode: "10", HeaderReason: "Broker: Message size too large", HeaderTopic: "app",
		HeaderTag: "kube.pod", HeaderTime: "2026-03-01T12:00:00.0000005Z", HeaderEventTime: "2026-03-01T11:59:00Z",
	}
	if got := headersOf(b, 0); !maps.Equal(got, want) {
		t.Errorf("headers %q", got)
	}
	m = b.Messages[1]
	if part(b, m.KeyOff, m.KeyLen) != "null" || part(b, m.ValOff, m.ValLen) != "\x93\xc1" {
		t.Errorf("key %s, value %q", part(b, m.KeyOff, m.KeyLen), part(b, m.ValOff, m.ValLen))
	}
	if got := headersOf(b, 1); got[HeaderCode] != "0" || got[HeaderTopic] != "" || got[HeaderTruncated] != "" || len(got) != 6 {
		t.Errorf("headers %q", got)
	}
}

func TestTopic_CutsWhatFitsIntoNoTopic(t *testing.T) {
	long := []byte(strings.Repeat("ä", 5000))
	for _, test := range []struct {
		name    string
		letter  Letter
		key     int // at least
		value   int
		headers bool
	}{
		{"value", Letter{Value: long, Key: []byte("key"), Headers: []Header{{"h", []byte("v")}}}, 3, 1000, true},
		{"key", Letter{Value: []byte("value"), Key: long}, 1000, 0, true},
		{"headers", Letter{Value: []byte("value"), Key: []byte("key"), Headers: []Header{{"h", long}}}, 3, 5, false},
		{"all", Letter{Value: long, Key: long, Headers: []Header{{"h", long}}}, 1000, 0, false},
		{"reason", Letter{Value: long, Reason: string(long), Topic: string(long), Tag: string(long)}, 0, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			const limit = 4000
			b := Topic{Name: "dead", MaxBytes: limit}.Batch([]Letter{test.letter})
			m := b.Messages[0]
			key, value := part(b, m.KeyOff, m.KeyLen), part(b, m.ValOff, m.ValLen)
			if len(key) < test.key || len(value) < test.value || !utf8.ValidString(key) || !utf8.ValidString(value) {
				t.Errorf("%d bytes of the key, %d of the value", len(key), len(value))
			}
			got := headersOf(b, 0)
			if got[HeaderTruncated] != "true" || got[HeaderSize] != fmt.Sprint(len(test.letter.Value)) {
				t.Errorf("headers %q", got)
			}
			if _, ok := got["h"]; ok && !test.headers {
				t.Error("the header is there")
			}
			if size := len(key) + len(value) + int(m.HdrLen) + messageOverhead; size > limit {
				t.Errorf("%d bytes, the limit is %d", size, limit)
			}
		})
	}
	exact := Letter{Value: bytes.Repeat([]byte{0xff}, 10000)}
	b := Topic{Name: "dead", MaxBytes: 4000}.Batch([]Letter{exact})
	if n := b.Messages[0].ValLen; n < 3000 {
		t.Errorf("%d bytes of a value that is no text", n)
	}
}

func TestFromBatch(t *testing.T) {
	b := &reconnect.Batch{Topics: []string{"x", "app"}, Data: []byte("kv")}
	b.Messages = []reconnect.Message{
		{Topic: 1, KeyLen: 1, ValOff: 1, ValLen: 1, Timestamp: event.UnixMilli(), HdrOff: 2},
		{Topic: 1, KeyLen: reconnect.NoKey, ValLen: 0},
	}
	b.Data = reconnect.AppendHeader(b.Data, "h", nil)
	b.Messages[0].HdrLen = int32(len(b.Data)) - 2
	f := reconnect.Failure{Code: 44, Class: fsm.ClassRecord, Text: "Broker: Policy violation"}
	l := FromBatch(b, 0, f)
	if l.Kind != RejectedByBroker || l.Code != 44 || l.Reason != f.Text || l.Topic != "app" || string(l.Key) != "k" ||
		string(l.Value) != "v" || !l.EventTime.Equal(event) || len(l.Headers) != 1 || l.Headers[0].Value != nil {
		t.Errorf("%+v", l)
	}
	if l := FromBatch(b, 1, f); l.Key != nil || l.Value == nil || len(l.Value) != 0 || !l.EventTime.IsZero() || l.Headers != nil {
		t.Errorf("%+v", l)
	}
}

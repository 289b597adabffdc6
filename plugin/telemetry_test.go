package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// recordedTelemetry knows the chunks in testdata, which have two contexts of the same length. The one in whose
// place broken stands can't be written.
type recordedTelemetry struct{ t *testing.T }

var (
	errRead  = errors.New("can't be read")
	errWrite = errors.New("can't be written")
)

const broken = "broken"

func (r recordedTelemetry) AppendOTLP(dst []byte, s chunk.Signal, data []byte, at int) ([]byte, int, error) {
	whole := recordedChunk(r.t, s)
	half := len(whole) / 2
	if len(data)-at < half {
		return dst, at, errRead
	}
	if strings.HasPrefix(string(data[at+20:]), broken) {
		return dst, at + half, errWrite
	}
	which := 0
	if string(data[at:at+half]) == string(whole[half:]) {
		which = 1
	}
	return append(dst, testdata(r.t, fmt.Sprintf("%s.%d.otlp", s, which))...), at + half, nil
}

func testdata(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "telemetry", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func recordedChunk(t *testing.T, s chunk.Signal) []byte { return testdata(t, s.String()+".chunk") }

// withTelemetry is inBubble in a host that sends metrics and traces.
func withTelemetry(t *testing.T, s settings, f func(*bench)) {
	t.Helper()
	inBubble(t, s, func(b *bench) {
		b.telemetry = recordedTelemetry{t}
		f(b)
	})
}

func TestTelemetry_OneMessageOfAChunk(t *testing.T) {
	for _, signal := range []chunk.Signal{chunk.Metrics, chunk.Traces} {
		withTelemetry(t, settings{"format": "otlp_proto", "topics": "otel", "message_key": "k"}, func(b *bench) {
			b.flush(recordedChunk(t, signal), true, OK)
			got := b.net.Messages()
			want := string(testdata(t, signal.String()+".0.otlp")) + string(testdata(t, signal.String()+".1.otlp"))
			if len(got) != 1 || got[0].Value != want || got[0].Topic != "otel" || got[0].Key != "k" {
				t.Errorf("%+v", got)
			}
		})
		withTelemetry(t, settings{"format": "otlp_json"}, func(b *bench) {
			b.flush(recordedChunk(t, signal), true, OK)
			got := b.net.Messages()
			if len(got) != 1 || !got[0].NullKey || !strings.HasPrefix(got[0].Value, `{"resource`) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Receipts are as for logs: what was on its way in the outage is not sent again.
func TestTelemetry_OutageLosesAndDoublesNothing(t *testing.T) {
	withTelemetry(t, settings{"format": "otlp_proto"}, func(b *bench) {
		b.net.AckDelay = 100 * time.Millisecond
		b.flush(recordedChunk(t, chunk.Metrics), false, Retry)
		b.net.Set(reconnecttest.Down)
		time.Sleep(time.Second)
		b.flush(recordedChunk(t, chunk.Metrics), false, Retry)
		b.flush(recordedChunk(t, chunk.Traces), false, Retry)
		time.Sleep(time.Minute)
		b.net.Set(reconnecttest.Serving)
		time.Sleep(7 * time.Second)
		b.flush(recordedChunk(t, chunk.Metrics), false, OK)
		b.flush(recordedChunk(t, chunk.Traces), false, OK)
		b.wantStored(2)
	})
}

func TestTelemetry_SplitsByResource(t *testing.T) {
	withTelemetry(t, settings{"format": "otlp_proto", "rdkafka.message.max.bytes": "1500"}, func(b *bench) {
		b.flush(recordedChunk(t, chunk.Metrics), true, OK)
		got := b.net.Messages()
		if len(got) != 2 {
			t.Fatalf("%d messages", len(got))
		}
		for i, m := range got {
			var data metrics.MetricsData
			if err := proto.Unmarshal([]byte(m.Value), &data); err != nil || len(data.ResourceMetrics) != 1 {
				t.Errorf("message %d: %v %v", i, &data, err)
			}
		}
	})
}

func TestTelemetry_BadContextsAreLeftOutAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	withTelemetry(t, settings{"format": "otlp_proto", "dead_letter_file": path}, func(b *bench) {
		unwritable := recordedChunk(t, chunk.Traces)
		copy(unwritable[20:], broken)
		b.flush(unwritable, true, OK)
		cut := recordedChunk(t, chunk.Traces)
		b.flush(cut[:len(cut)-1], true, OK)
		want := map[string]int{string(testdata(t, "traces.1.otlp")): 1, string(testdata(t, "traces.0.otlp")): 1}
		got := b.stored()
		for value, n := range want {
			if got[value] != n {
				t.Errorf("stored %v", got)
			}
		}
		kinds := b.counts.rejectedByKind()
		if kinds["unencodable"] != 1 || kinds["undecodable"] != 1 || b.counts.rejectedInAll() != 2 {
			t.Errorf("rejected %v", kinds)
		}
	})
	letters, err := os.ReadFile(path)
	if err != nil || strings.Count(string(letters), "\n") != 2 || !strings.Contains(string(letters), errRead.Error()) || !strings.Contains(string(letters), errWrite.Error()) {
		t.Errorf("letters %s, %v", letters, err)
	}
}

// Without a host that reads them, such chunks come from an earlier process only.
func TestTelemetry_AHostThatCanNotReadThem(t *testing.T) {
	inBubble(t, settings{"format": "otlp_json"}, func(b *bench) {
		b.flush(recordedChunk(t, chunk.Metrics), true, Error)
		if b.host.count("has no functions that read metrics and traces") != 1 {
			t.Errorf("log %q", b.host.lines)
		}
	})
}

func TestTelemetry_FormatsForLogsLeaveItOut(t *testing.T) {
	for _, form := range []string{"json", "msgpack", "gelf"} {
		withTelemetry(t, settings{"format": form}, func(b *bench) {
			b.flush(recordedChunk(t, chunk.Metrics), true, OK)
			b.net.Set(reconnecttest.Down)
			time.Sleep(time.Second)
			b.flush(recordedChunk(t, chunk.Traces), true, OK) // waits for nobody
			if n := b.Metrics().LeftOut; n != 2 || b.host.count("are not written") != 1 || b.counts.rejectedInAll() != 0 {
				t.Errorf("%s: %d left out, log %q", form, n, b.host.lines)
			}
			b.wantStored(0)
		})
	}
}

package chunk

import (
	"os"
	"path/filepath"
	"testing"

	"out_kafka_reconnect/plugin/chunk/chunktest"
)

func TestSignalOf(t *testing.T) {
	recorded := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("..", "testdata", "telemetry", name+".chunk"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	metrics, traces := recorded("metrics"), recorded("traces")
	for _, tt := range []struct {
		name  string
		chunk []byte
		want  Signal
	}{
		{"metrics", metrics, Metrics},
		{"traces", traces, Traces},
		{"nothing", nil, Logs},
		{"a record", chunktest.Map(chunktest.Head(nil, 1700000000, 0), 0), Logs},
		{"metrics cut off before they can be told", metrics[:10], Logs},
		{"traces cut off before they can be told", traces[:10], Logs},
		{"a map that is no record", chunktest.Str(chunktest.Str(chunktest.Map(nil, 1), "meta"), "cmetrics"), Logs},
		{"a map of a map", chunktest.Map(chunktest.Str(chunktest.Map(nil, 1), "meta"), 0), Logs},
		{"spans that are no list", chunktest.Uint(chunktest.Str(chunktest.Map(nil, 1), "resourceSpans"), 1), Logs},
		{"a map with other keys", chunktest.Uint(chunktest.Uint(chunktest.Map(nil, 1), 1), 1), Logs},
		{"an empty map", chunktest.Map(nil, 0), Logs},
	} {
		if got := SignalOf(tt.chunk); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestSignal_String(t *testing.T) {
	for s, want := range map[Signal]string{Logs: "logs", Metrics: "metrics", Traces: "traces", 99: "unknown"} {
		if got := s.String(); got != want {
			t.Errorf("Signal(%d) = %q; want %q", s, got, want)
		}
	}
}

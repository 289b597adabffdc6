package plugin

import (
	"testing"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// BenchmarkFlush_Refused is a flush while all brokers are down: it must cost the host
// next to nothing, because every waiting chunk is tried again and again.
func BenchmarkFlush_Refused(b *testing.B) {
	relay := flblog.NewRelay(&host{}, "bench")
	net := reconnecttest.NewNetwork("a:1")
	net.Set(reconnecttest.Down)
	in, err := New(Options{Config: decode(b, nil), Open: net.Open, Relay: relay})
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	for in.sup.Admit() {
		time.Sleep(time.Millisecond)
	}
	chunk := records(1, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if in.Flush(chunk, "tag", true) != Retry {
			b.Fatal("not refused")
		}
	}
}

// BenchmarkEncode is a chunk of 1000 small records on its way to a batch.
func BenchmarkEncode(b *testing.B) {
	e, err := newEncoder(decode(b, nil))
	if err != nil {
		b.Fatal(err)
	}
	chunk := records(1, 1000)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	now := time.Now()
	for b.Loop() {
		if len(e.encode(chunk, "tag", now).Messages) != 1000 {
			b.Fatal("records are missing")
		}
	}
}

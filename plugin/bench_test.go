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

// BenchmarkFlush_Acknowledged is a flush whose chunk is acknowledged at once, without and
// with state_path, which must not cost it anything.
func BenchmarkFlush_Acknowledged(b *testing.B) {
	for name, path := range map[string]string{"memory": "", "state_path": b.TempDir()} {
		b.Run(name, func(b *testing.B) {
			net := reconnecttest.NewNetwork("a:1")
			net.AckDelay = 0
			in, err := New(Options{Config: decode(b, settings{"state_path": path}), Open: net.Open, Relay: flblog.NewRelay(&host{}, "bench")})
			if err != nil {
				b.Fatal(err)
			}
			defer in.Close()
			chunk := records(1, 10)
			b.ReportAllocs()
			for b.Loop() {
				if in.Flush(chunk, "tag", true) != OK {
					b.Fatal("not acknowledged")
				}
			}
		})
	}
}

// BenchmarkEncode is a chunk of 1000 small records on its way to a batch.
func BenchmarkEncode(b *testing.B) {
	e, err := newEncoder(decode(b, nil), nil)
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

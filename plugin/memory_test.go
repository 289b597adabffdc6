package plugin

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// Memory is given back when a backlog is over: not while it waits, and not without one.
func TestInstance_GivesMemoryBackWhenABacklogIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trims atomic.Int32
		net := reconnecttest.NewNetwork("a:1")
		in, err := New(Options{
			Config: decode(t, settings{"queue_limit": "1MiB"}), Open: net.Open, Relay: flblog.NewRelay(&host{}, "test"),
			Trim: func() { trims.Add(1) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(time.Minute) // for the timers of the supervisor's lines
		defer in.Close()
		b := &bench{Instance: in, t: t, net: net}
		want := func(when string, n int32) {
			t.Helper()
			if got := trims.Load(); got != n {
				t.Errorf("%s: given back %d times, want %d", when, got, n)
			}
		}
		time.Sleep(time.Second)
		b.flush(records(1, 1000), true, OK)
		time.Sleep(time.Minute)
		want("without a backlog", 0)
		net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		b.flush(records(1, 1000), true, Retry)
		time.Sleep(time.Minute)
		want("while it waits", 0)
		net.Set(reconnecttest.Serving)
		time.Sleep(30 * time.Second)
		want("after its delivery", 1)
		time.Sleep(time.Hour)
		want("an hour later", 1)
	})
}

// A goroutine without work drops its buffers, and the next chunk gives what it would have given.
func TestEncoder_ShedsItsBuffers(t *testing.T) {
	for _, format := range []string{"json", "otlp_json"} {
		cfg := decode(t, settings{"format": format})
		e, err := newEncoder(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		chunk, now := records(1, 50_000), time.Unix(1, 0)
		want := slices.Clone(e.encode(chunk, "tag", now).Data)
		if !e.shed(cfg) || cap(e.batch.Data)+cap(e.batch.Messages) > 0 {
			t.Errorf("%s: %d bytes and %d messages are kept", format, cap(e.batch.Data), cap(e.batch.Messages))
		}
		if e.shed(cfg) {
			t.Errorf("%s: there was something to drop twice", format)
		}
		if got := e.encode(chunk, "tag", now).Data; !slices.Equal(got, want) {
			t.Errorf("%s: other messages after that", format)
		}
	}
}

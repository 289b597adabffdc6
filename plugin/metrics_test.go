package plugin

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

func TestInstance_Metrics(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.net.AckDelay = 300 * time.Millisecond
		b.flush(records(1, 5), false, Retry)
		if m := b.Metrics(); m.State != fsm.Up || m.ConnectSuccesses != 1 || m.Open != 5 || m.QueueBytes < 5*200 || m.Receipts != 1 || m.ChunksRetried != 1 {
			t.Errorf("while it waits: %+v", m)
		}
		time.Sleep(time.Second)
		// Acknowledged is what the brokers have, not what Fluent Bit has heard of.
		if m := b.Metrics(); m.Acknowledged != 5 || m.Open != 0 || m.QueueBytes != 0 || m.DuplicatesAvoided != 0 {
			t.Errorf("before the retry: %+v", m)
		}
		b.flush(records(1, 5), false, OK)
		b.flush([]byte{0x01}, true, Error)
		if m := b.Metrics(); m.Acknowledged != 5 || m.DuplicatesAvoided != 5 || m.Receipts != 0 || m.ChunksOK != 1 || m.ChunksError != 1 {
			t.Errorf("after the retry: %+v", m)
		}
		b.flush(records(10, 5), true, OK)
		if m := b.Metrics(); m.Acknowledged != 10 || m.DuplicatesAvoided != 5 {
			t.Errorf("a chunk that needs no retry avoids nothing: %+v", m)
		}
		b.net.Set(reconnecttest.Down)
		time.Sleep(10 * time.Second)
		if got, ok := b.Metrics().Returned["transient"]; got != 0 || !ok {
			t.Errorf("%d records came back, %v", got, ok)
		}
		b.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		if m := b.Metrics(); m.Outages != 1 || m.OutageTime < 9*time.Second || m.OutageTime > 20*time.Second || m.ConnectSuccesses != 2 || m.ConnectFailures < 5 {
			t.Errorf("after an outage: %+v", m)
		}
	})
}

// A chunk counts once, however often it comes back.
func TestInstance_DuplicatesAvoidedAreCountedOnce(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.net.AckDelay = 5 * time.Second
		b.flush(records(1, 5), false, Retry)
		b.flush(records(1, 5), false, Retry)
		time.Sleep(6 * time.Second)
		b.flush(records(1, 5), false, OK)
		if m := b.Metrics(); m.DuplicatesAvoided != 5 || m.Acknowledged != 5 {
			t.Errorf("%+v", m)
		}
	})
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The endpoint lives as long as its instance, and a second life at the same address follows
// the first without a gap.
func TestInstance_ServesMetrics(t *testing.T) {
	addr := freeAddress(t)
	for life := range 2 {
		h := &host{}
		name := fmt.Sprintf("kafka_reconnect.%d", life)
		relay := flblog.NewRelay(h, name)
		in, err := New(Options{
			Config: decode(t, settings{"metrics_listen": addr}), Open: reconnecttest.NewNetwork("a:1").Open,
			Relay: relay, Name: name,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := in.Flush(records(1, 5), "tag", true); r != OK {
			t.Errorf("flush: %v", r)
		}
		body := scrape(t, addr)
		latency := `kafka_reconnect_ack_latency_seconds_count{instance="` + name + `"} 1`
		for range 100 { // it is counted just after the flush hears of it
			if strings.Contains(body, latency+"\n") {
				break
			}
			body = scrape(t, addr)
		}
		for _, line := range []string{
			`kafka_reconnect_chunks_total{instance="` + name + `",result="ok"} 1`,
			`kafka_reconnect_records_acknowledged_total{instance="` + name + `"} 5`,
			latency,
		} {
			if !strings.Contains(body, line+"\n") {
				t.Errorf("missing: %s\n%s", line, body)
			}
		}
		in.Close()
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			t.Error("the port is still open")
		}
		if h.count("WARN") > 0 {
			t.Errorf("%q", h.lines)
		}
	}
}

func TestInstance_DeliversWhileTheMetricsAddressIsInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := &host{}
	relay := flblog.NewRelay(h, "a")
	in, err := New(Options{
		Config: decode(t, settings{"metrics_listen": l.Addr().String()}), Open: reconnecttest.NewNetwork("a:1").Open,
		Relay: relay, Name: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := in.Flush(records(1, 5), "tag", true); r != OK {
		t.Errorf("flush: %v", r)
	}
	in.Close()
	if h.count("metrics can't be served") != 1 || h.count("address already in use") != 1 {
		t.Errorf("%q", h.lines)
	}
}

func scrape(t *testing.T, addr string) string {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	r, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

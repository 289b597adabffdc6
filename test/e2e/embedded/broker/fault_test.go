package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// unanswered tells whether nothing is heard of a record within a moment.
func unanswered(client *kgo.Client) bool {
	heard := make(chan struct{})
	client.Produce(context.Background(), kgo.StringRecord("lost"), func(*kgo.Record, error) { close(heard) })
	select {
	case <-heard:
		return false
	case <-time.After(500 * time.Millisecond):
		return true
	}
}

func TestBroker_LosesConnections(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}})
	first := newClient(t, b)
	produce(t, first, "one")
	if err := b.Lose(); err != nil {
		t.Fatal(err)
	}
	if !unanswered(first) {
		t.Error("a lost connection answers, or tells that it is lost")
	}
	produce(t, newClient(t, b), "two")
	if n := b.Topics()["app"][0]; n != 2 {
		t.Errorf("%d records, want those of the connections that were not lost", n)
	}
}

func TestBroker_ForgetsIdleConnections(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}, IdleClose: 200 * time.Millisecond, IdleForget: true})
	client := newClient(t, b)
	produce(t, client, "one")
	until(t, "the connections are forgotten", func() (bool, string) {
		dead := 0
		for _, d := range b.doors {
			d.mu.Lock()
			for c := range d.conns {
				if c.dead.Load() {
					dead++
				}
			}
			d.mu.Unlock()
		}
		return dead > 0 && dead == b.Stats().Open, fmt.Sprint(dead, " are")
	})
	if !unanswered(client) {
		t.Error("a forgotten connection answers, or tells that it is forgotten")
	}
	if s := b.Stats(); s.IdleClosed != 0 || s.Open == 0 {
		t.Errorf("%+v", s)
	}
}

func TestBroker_FailsProduceRequests(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}})
	client := newClient(t, b, kgo.DisableIdempotentWrite(), kgo.RecordRetries(0))
	b.FailProduce(kerr.InvalidRecord.Code, 1)
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("refused")).FirstErr(); !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("error %v", err)
	}
	produce(t, client, "one")
	b.FailProduce(kerr.InvalidRecord.Code, -1)
	for range 3 {
		if err := client.ProduceSync(t.Context(), kgo.StringRecord("refused")).FirstErr(); !errors.Is(err, kerr.InvalidRecord) {
			t.Errorf("error %v", err)
		}
	}
	b.FailProduce(0, 0)
	produce(t, client, "two")
	if n := b.Topics()["app"][0]; n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

func TestBroker_DiscardsWhatItAcknowledges(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}, Discard: true})
	client := newClient(t, b)
	produce(t, client, "one")
	produce(t, client, "two")
	if n := b.Topics()["app"][0]; n != 0 || b.discarded != 2 {
		t.Errorf("%d records are kept, %d were discarded", n, b.discarded)
	}
}

func TestBroker_ReadsSlowly(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}})
	client := newClient(t, b, kgo.ProducerBatchCompression(kgo.NoCompression()))
	produce(t, client, "one")
	b.Slow(50 << 10)
	start := time.Now()
	produce(t, client, string(make([]byte, 100<<10)))
	if took := time.Since(start); took < time.Second {
		t.Errorf("100 KiB at 50 KiB a second took %s", took)
	}
}

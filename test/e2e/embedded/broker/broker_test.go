package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func newBroker(t *testing.T, opts Options) *Broker {
	t.Helper()
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func newClient(t *testing.T, b *Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.Addrs()...),
		kgo.DefaultProduceTopic("app"),
		kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func produce(t *testing.T, client *kgo.Client, values ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, value := range values {
		if err := client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatalf("producing %q: %v", value, err)
		}
	}
}

func consume(t *testing.T, b *Broker, n int, opts ...kgo.Opt) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := newClient(t, b, append(opts, kgo.ConsumeTopics("app"))...)
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("consuming: have %d of %d: %v", len(records), n, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}

func until(t *testing.T, what string, met func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, seen := met()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: last seen %s", what, seen)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestBroker_StoppedOneRefusesAndKeepsItsDataAndPort(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}})
	client := newClient(t, b)
	produce(t, client, "one", "two")

	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", b.Addrs()[0]); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling the stopped broker: got %v, want refused", err)
	}
	if got := b.Stats().Open; got != 0 {
		t.Errorf("%d connections are open after the stop", got)
	}
	acked := make(chan error, 1)
	client.Produce(t.Context(), kgo.StringRecord("three"), func(_ *kgo.Record, err error) { acked <- err })
	if got := b.Topics()["app"]; !slices.Equal(got, []int64{2}) {
		t.Errorf("high watermarks while stopped: got %v, want [2]", got)
	}

	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if err := <-acked; err != nil {
		t.Fatalf("producing across the stop: %v", err)
	}
	var values []string
	for _, r := range consume(t, b, 3) {
		values = append(values, string(r.Value))
	}
	if want := []string{"one", "two", "three"}; !slices.Equal(values, want) {
		t.Errorf("records: got %q, want %q", values, want)
	}
}

func TestBroker_FrozenOneAcceptsAndHoldsTheAnswer(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}})
	client := newClient(t, b)
	produce(t, client, "one")
	if err := b.Freeze(); err != nil {
		t.Fatal(err)
	}
	before := b.Stats()

	acked := make(chan error, 1)
	client.Produce(t.Context(), kgo.StringRecord("two"), func(_ *kgo.Record, err error) { acked <- err })
	c, err := net.Dial("tcp", b.Addrs()[0])
	if err != nil {
		t.Fatalf("dialling the frozen broker: %v", err)
	}
	defer func() { _ = c.Close() }()
	until(t, "the connect is counted", func() (bool, string) {
		s := b.Stats()
		return s.Connects == before.Connects+1 && s.Open == before.Open+1, fmt.Sprintf("%+v", s)
	})
	select {
	case err := <-acked:
		t.Errorf("a frozen broker answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}

	if err := b.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := <-acked; err != nil {
		t.Fatalf("producing across the freeze: %v", err)
	}
	if got := b.Topics()["app"]; !slices.Equal(got, []int64{2}) {
		t.Errorf("high watermarks: got %v, want [2]", got)
	}
}

func TestBroker_FrozenOneCanBeStopped(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}})
	client := newClient(t, b)
	produce(t, client, "one")
	for _, do := range []func(...int) error{b.Freeze, b.Stop, b.Start} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	produce(t, client, "two")
	if b.State() != "up" {
		t.Errorf("state %q, want up", b.State())
	}
}

func TestBroker_ClosesIdleConnections(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}})
	client := newClient(t, b)
	produce(t, client, "one")
	b.IdleClose(50 * time.Millisecond)
	until(t, "all connections are closed", func() (bool, string) {
		s := b.Stats()
		return s.Open == 0 && s.IdleClosed == s.Connects, fmt.Sprintf("%+v", s)
	})
	b.IdleClose(0)
	produce(t, client, "two")
}

func TestBroker_NodesAreStoppedOneByOne(t *testing.T) {
	b := newBroker(t, Options{Nodes: 3, Topics: map[string]int{"app": 3}})
	if err := b.Stop(1); err != nil {
		t.Fatal(err)
	}
	for node, addr := range b.Addrs() {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		if (err != nil) != (node == 1) {
			t.Errorf("dialling node %d: %v", node, err)
		}
	}
	if got := b.State(); got != "mixed" {
		t.Errorf("state %q, want mixed", got)
	}
	if err := b.Stop(3); err == nil || !strings.Contains(err.Error(), "node 3") {
		t.Errorf("stopping a node that is not there: %v", err)
	}
	if err := b.Freeze(1); !errors.Is(err, errDown) {
		t.Errorf("freezing a node that is down: got %v, want %v", err, errDown)
	}
}

func TestBroker_StampsTheAppendTime(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}, AppendTime: true})
	client := newClient(t, b)
	old := kgo.StringRecord("old")
	old.Timestamp = time.Unix(1, 0)
	before := time.Now().Truncate(time.Millisecond)
	if err := client.ProduceSync(t.Context(), old).FirstErr(); err != nil {
		t.Fatal(err)
	}
	got := consume(t, b, 1, kgo.DisableFetchCRCValidation())[0]
	if got.Attrs.TimestampType() != 1 || got.Timestamp.Before(before) || got.Timestamp.After(time.Now()) {
		t.Errorf("timestamp %v of type %d, want one since %v of type 1", got.Timestamp, got.Attrs.TimestampType(), before)
	}
}

func TestCountingListener_CountsOnTheBrokersPort(t *testing.T) {
	b := newBroker(t, Options{})
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	l, err := NewCountingListener(b.Ports()[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c, err := net.Dial("tcp", l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("it answered")
		}
		_ = c.Close()
	}
	if got := l.Connects(); len(got) != 3 || !slices.IsSortedFunc(got, time.Time.Compare) {
		t.Errorf("connects: got %v, want 3 in order", got)
	}
	l.Close()
	if err := b.Start(); err != nil {
		t.Fatalf("after the counting: %v", err)
	}
}

package rdkafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// mixed is a batch with every kind of key and of header over two topics of three.
func mixed(n int) *reconnect.Batch {
	b := &reconnect.Batch{Topics: []string{"unused", "alpha", "beta"}}
	for i := range n {
		m := reconnect.Message{
			Topic: int32(1 + i%2), Partition: reconnect.PartitionAny, Timestamp: 1700000000000 + int64(i),
			KeyLen: reconnect.NoKey, ValOff: int32(len(b.Data)),
		}
		b.Data = fmt.Appendf(b.Data, "value %d", i)
		m.ValLen = int32(len(b.Data)) - m.ValOff
		switch i % 3 {
		case 1:
			m.KeyLen = 0
		case 2:
			m.KeyOff = int32(len(b.Data))
			b.Data = fmt.Appendf(b.Data, "key %d", i)
			m.KeyLen = int32(len(b.Data)) - m.KeyOff
			m.Partition = 0
		}
		if i%4 == 3 {
			m.HdrOff = int32(len(b.Data))
			b.Data = reconnect.AppendHeader(b.Data, "number", fmt.Append(nil, i))
			b.Data = reconnect.AppendHeader(b.Data, "null", nil)
			b.Data = reconnect.AppendHeader(b.Data, "", []byte{})
			m.HdrLen = int32(len(b.Data)) - m.HdrOff
		}
		b.Messages = append(b.Messages, m)
	}
	return b
}

// message says everything of one message of a batch.
func message(b *reconnect.Batch, i int) string {
	m := b.Messages[i]
	part := func(off, n int32) string {
		if n < 0 {
			return "null"
		}
		if n == 0 {
			return `""`
		}
		return fmt.Sprintf("%q", b.Data[off:off+n])
	}
	headers := ""
	for name, value := range b.Headers(i) {
		headers += fmt.Sprintf(" %q=%q(%v)", name, value, value == nil)
	}
	return fmt.Sprintf("%s/%d at %d: %s = %s%s", b.Topics[m.Topic], m.Partition, m.Timestamp,
		part(m.KeyOff, m.KeyLen), part(m.ValOff, m.ValLen), headers)
}

// leftOf waits for a delivery and checks that what is left of it are the messages that were
// sent and failed. The batch that was sent may be overwritten by now, so a copy is compared.
func leftOf(t *testing.T, d *reconnect.Delivery, sent *reconnect.Batch) *reconnect.Batch {
	t.Helper()
	wait(t, d, 5*time.Second)
	left := d.Left()
	if len(d.Failures()) == 0 {
		if left != nil {
			t.Fatalf("nothing failed, left %+v", left)
		}
		return nil
	}
	if left == nil || len(left.Messages) != len(d.Failures()) {
		t.Fatalf("%d failures, left %+v", len(d.Failures()), left)
	}
	for i, f := range d.Failures() {
		if got, want := message(left, i), message(sent, f.Index); got != want {
			t.Fatalf("failure %d, message %d: left %s, sent %s", i, f.Index, got, want)
		}
	}
	return left
}

// A handOver hands a batch over as callers do, who write into its memory at once if it is still theirs.
type handOver func(c *Client, b *reconnect.Batch) *reconnect.Delivery

// eachWay runs a test with bytes that the client copies, and with bytes that it may keep.
func eachWay(t *testing.T, test func(t *testing.T, produce handOver)) {
	for _, lent := range []bool{false, true} {
		t.Run(fmt.Sprintf("lent %v", lent), func(t *testing.T) {
			test(t, func(c *Client, b *reconnect.Batch) *reconnect.Delivery { return produceAndReuse(t, c, b, lent) })
		})
	}
}

func produceAndReuse(t *testing.T, c *Client, b *reconnect.Batch, lent bool) *reconnect.Delivery {
	t.Helper()
	reused := &reconnect.Batch{Topics: slices.Clone(b.Topics), Data: bytes.Clone(b.Data), Messages: slices.Clone(b.Messages), Lent: lent}
	var block []byte
	if lent {
		block = Memory{}.Lend(max(len(b.Data), lendFrom))
		reused.Data = append(block, b.Data...)
	}
	d := c.Produce(reused)
	if kept := lent && !reused.Lent; kept != (reused.Data == nil) || !lent && kept {
		t.Errorf("lent %v, then %v with %d bytes", lent, reused.Lent, len(reused.Data))
	}
	clear(reused.Topics)
	clear(reused.Data)
	clear(reused.Messages)
	if reused.Lent {
		Memory{}.Return(block)
	}
	return d
}

func twoTopics(t *testing.T, o broker.Options) *broker.Broker {
	t.Helper()
	o.Topics = map[string]int{"alpha": 1, "beta": 1, "unused": 1}
	return newBroker(t, o)
}

func TestLeft_NothingWhenAllIsAcknowledged(t *testing.T) { eachWay(t, nothingLeft) }

func nothingLeft(t *testing.T, produce handOver) {
	b := twoTopics(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	sent := mixed(30)
	if left := leftOf(t, produce(r.Client, sent), sent); left != nil {
		t.Errorf("left %+v", left)
	}
}

func TestLeft_OfWhatTheBrokerRejects(t *testing.T) { eachWay(t, rejected) }

func rejected(t *testing.T, produce handOver) {
	b := twoTopics(t, broker.Options{})
	b.FailProduce(44, -1)
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	sent := mixed(30)
	left := leftOf(t, produce(r.Client, sent), sent)
	if len(left.Messages) != 30 {
		t.Fatalf("%d left", len(left.Messages))
	}
	// What is left is a batch like any other.
	b.FailProduce(0, 0)
	if leftOf(t, r.Produce(left), left) != nil || end(b, "alpha") != 15 || end(b, "beta") != 15 {
		t.Errorf("produced again: alpha %d, beta %d", end(b, "alpha"), end(b, "beta"))
	}
}

func TestLeft_OfWhatTheClientRefuses(t *testing.T) { eachWay(t, refused) }

func refused(t *testing.T, produce handOver) {
	b := twoTopics(t, broker.Options{StartDown: true})
	r := openRig(t, b.Addrs()[0], fsm.ConnShut, Property{"queue.buffering.max.messages", "10"}, Property{"message.max.bytes", "1000"})
	sent := mixed(30)
	sent.Topics[2] = strings.Repeat("x", 600)
	for _, m := range []*reconnect.Message{&sent.Messages[2], &sent.Messages[6]} {
		m.ValOff, m.ValLen = int32(len(sent.Data)), 2000
	}
	sent.Messages[2].HdrOff, sent.Messages[2].HdrLen = sent.Messages[3].HdrOff, sent.Messages[3].HdrLen
	sent.Data = append(sent.Data, make([]byte, 2000)...)
	d := produce(r.Client, sent)
	if err := r.Close(2 * time.Second); err != nil {
		t.Error(err)
	}
	leftOf(t, d, sent)
	codes := map[int]int{}
	for _, f := range d.Failures() {
		codes[f.Code]++
	}
	// The topic's, the one that is too large, and what the close purged. From the first on for which the
	// queue was full nothing was taken.
	if len(d.Failures()) != 24 || d.LeftOut() != 6 || len(codes) != 3 || codes[-186] != 12 || codes[10] != 2 || codes[-152] != 10 {
		t.Errorf("%d failures, %d left out, codes %v", len(d.Failures()), d.LeftOut(), codes)
	}
	// A closed client takes nothing, and gives it all back.
	if left := leftOf(t, produce(r.Client, sent), sent); len(left.Messages) != 30 {
		t.Errorf("%d left of a closed client", len(left.Messages))
	}
}

// The handle outlives the close, so C keeps the memory; what is left of it is a copy.
func TestLeft_OfAHandleThatOutlivesTheClose(t *testing.T) { eachWay(t, outliving) }

func outliving(t *testing.T, produce handOver) {
	// Many partitions: each has its own report, and the close does not wait for the last. All
	// may be in time all the same, so there are several tries.
	b := newBroker(t, broker.Options{Topics: map[string]int{"alpha": 50, "beta": 50, "unused": 1}})
	for range 5 {
		if closeEarly(t, b, produce) > 0 {
			return
		}
	}
	t.Error("no close left anything unreported")
}

// closeEarly closes a client that a hanging heartbeat holds and returns how many messages
// were given up unreported.
func closeEarly(t *testing.T, b *broker.Broker, produce handOver) int {
	t.Helper()
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	wait(t, r.Produce(mixed(3000)), 5*time.Second) // the partitions are known
	if err := b.Freeze(); err != nil {
		t.Fatal(err)
	}
	heartbeat := make(chan struct{})
	go func() {
		_, _ = r.Heartbeat(500 * time.Millisecond)
		close(heartbeat)
	}()
	time.Sleep(100 * time.Millisecond) // it has been sent
	sent := mixed(20000)
	d := produce(r.Client, sent)
	if err := r.Close(time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the handle did not outlive the close: %v", err)
	}
	leftOf(t, d, sent)
	if len(d.Failures()) != 20000 {
		t.Errorf("%d failures", len(d.Failures()))
	}
	<-heartbeat
	if err := b.Thaw(); err != nil {
		t.Fatal(err)
	}
	abandoned := 0
	for _, f := range d.Failures() {
		if f.Code == codeClosed && f.Status == reconnect.PossiblyPersisted {
			abandoned++
		}
	}
	return abandoned
}

package rdkafka

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// quiet is how long a connection must show no sign of life in these tests.
const quiet = time.Second

// large is a batch of one message of n bytes.
func large(topic string, n int) *reconnect.Batch {
	data := []byte(strings.Repeat("x", n))
	return &reconnect.Batch{Topics: []string{topic}, Data: data, Messages: []reconnect.Message{
		{Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValLen: int32(n)},
	}}
}

// untilSilent waits until a connection is judged silent and returns how long it took.
func (r *rig) untilSilent(within time.Duration) time.Duration {
	r.t.Helper()
	start := time.Now()
	r.until(within, "silence", func() bool { return r.Silence(quiet).Silent > 0 })
	return time.Since(start)
}

// never watches for a while that no connection is judged silent, and returns the last look.
func (r *rig) neverSilent(during time.Duration) reconnect.Silence {
	r.t.Helper()
	var s reconnect.Silence
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s = r.Silence(quiet); s.Silent > 0 || s.Ready == 0 {
			r.t.Fatalf("%+v", s)
		}
	}
	return s
}

func TestSilence_IdleIsNotSilent(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	r.untilUp()
	wait(t, r.Produce(numbered("alpha", 1, 10)), 5*time.Second)
	if s := r.neverSilent(3 * quiet); s.Suspect != 0 || s.Alive != 0 {
		t.Errorf("an idle connection: %+v", s)
	}
}

// A frozen broker takes bytes and answers nothing; only its connection is shut.
func TestSilence_FrozenBroker(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "tls"}[secure], func(t *testing.T) {
			var o broker.Options
			var props []Property
			if secure {
				pair := newIdentity(t, t.TempDir())
				o.Kfake = []kfake.Opt{kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair.pair}})}
				props = []Property{{"security.protocol", "ssl"}, {"ssl.ca.location", pair.cert}}
			}
			b := newBroker(t, o)
			r := openRig(t, b.Addrs()[0], fsm.ConnOpen, props...)
			wait(t, r.Produce(numbered("alpha", 1, 10)), 5*time.Second)
			if err := b.Freeze(); err != nil {
				t.Fatal(err)
			}
			d := r.Produce(numbered("alpha", 11, 10))
			if took := r.untilSilent(3 * quiet); took < quiet {
				t.Errorf("silent after %s", took)
			}
			r.ShutSilent(quiet)
			if s := r.Silence(quiet); s.Ready != 0 {
				t.Errorf("after the shutdown: %+v", s)
			}
			if err := b.Thaw(); err != nil {
				t.Fatal(err)
			}
			wait(t, d, 5*time.Second)
			if n := end(b, "alpha"); n != 20 {
				t.Errorf("the topic holds %d records, want 20", n)
			}
		})
	}
}

// A broker that can't write answers each try with an error: it lives.
func TestSilence_NotEnoughReplicasIsAnAnswer(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{})
	b.FailProduce(19, -1)
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen, Property{"retry.backoff.max.ms", "200"})
	r.untilUp()
	r.Produce(numbered("alpha", 1, 10))
	time.Sleep(quiet)
	if s := r.neverSilent(2 * quiet); s.Alive != 1 {
		t.Errorf("a broker that answers: %+v", s)
	}
}

// A request on its way over a slow link is no silence, however long it takes.
func TestSilence_SlowLink(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen, Property{"socket.timeout.ms", "60000"})
	wait(t, r.Produce(numbered("alpha", 1, 1)), 5*time.Second)
	b.Slow(100 << 10)
	d := r.Produce(large("alpha", 900<<10))
	start := time.Now()
	r.until(time.Minute, "delivery over the slow link", func() bool {
		if s := r.Silence(quiet); s.Silent > 0 {
			t.Fatalf("after %s: %+v", time.Since(start), s)
		}
		return isClosed(d.Done())
	})
	if took := time.Since(start); d.Acked() != 1 || took < 2*quiet {
		t.Errorf("acked %d after %s", d.Acked(), took)
	}
}

// A stopped process has a kernel that takes in one request after the other: that is no sign
// of life.
func TestSilence_FrozenWhileMoreIsSent(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	wait(t, r.Produce(numbered("alpha", 1, 1)), 5*time.Second)
	if err := b.Freeze(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for r.Silence(quiet).Silent == 0 {
		if time.Since(start) > 3*quiet {
			t.Fatalf("not silent after %s: %+v", time.Since(start), r.Silence(quiet))
		}
		r.Produce(numbered("alpha", 2, 1))
		time.Sleep(quiet / 5)
	}
	if err := b.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// What follows the request that waits is taken later, which says nothing of when that request was. Whether anybody looked
// in between is chance, so there are some tries.
func TestSilence_MoreIsTakenBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, broker.Options{})
			r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
			wait(t, r.Produce(numbered("alpha", 1, 1)), 5*time.Second)
			b.Slow(4 << 20)
			if err := b.Lose(); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			r.Produce(large("alpha", 900<<10)) // is on its way for a quarter of a second
			time.Sleep(quiet / 10)
			r.Silence(quiet)
			time.Sleep(quiet)
			r.Produce(numbered("alpha", 2, 1))
			time.Sleep(quiet / 20)
			r.untilSilent(2 * quiet)
			if took := time.Since(start); took > 5*quiet/2 {
				t.Errorf("silent after %s", took)
			}
		})
	}
}

// A load balancer that has lost its state swallows everything: that is silent, also while
// a large request is on its way.
func TestSilence_LostConnection(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	wait(t, r.Produce(numbered("alpha", 1, 1)), 5*time.Second)
	if err := b.Lose(); err != nil {
		t.Fatal(err)
	}
	d := r.Produce(large("alpha", 900<<10))
	r.untilSilent(3 * quiet)
	r.ShutSilent(quiet)
	wait(t, d, 5*time.Second)
	if n := end(b, "alpha"); d.Acked() != 1 || n != 2 {
		t.Errorf("acked %d, the topic holds %d records", d.Acked(), n)
	}
}

// A process that is stopped while it has a large request to read: its kernel takes in what
// it has room for, and no more.
func TestSilence_StoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	wait(t, r.Produce(numbered("alpha", 1, 1)), 5*time.Second)
	b.Slow(1) // as good as stopped
	r.Produce(large("alpha", 900<<10))
	r.untilSilent(10 * quiet)
	b.Slow(0)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

package rdkafka

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

func TestClient_CloseReportsEverythingWhileKafkaIsAway(t *testing.T) {
	b := newBroker(t, broker.Options{StartDown: true})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	d := r.Produce(numbered("alpha", 1, 5000))
	start := time.Now()
	if err := r.Close(2 * time.Second); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("close took %v", took)
	}
	wait(t, d, 10*time.Millisecond)
	if len(d.Failures()) != 5000 {
		t.Fatalf("%d failures", len(d.Failures()))
	}
	if f := d.Failures()[4999]; f.Index != 4999 || f.Class != fsm.ClassTransient || f.Status != reconnect.NotPersisted {
		t.Errorf("%+v", f)
	}
	if d := r.Produce(numbered("alpha", 1, 1)); len(d.Failures()) != 1 {
		t.Error("a closed client took a message")
	}
	if _, err := r.Heartbeat(time.Second); !errors.Is(err, ErrClosed) {
		t.Errorf("heartbeat of a closed client: %v", err)
	}
}

// A heartbeat that hangs must not hold the close up: the handle goes later, by itself.
func TestClient_CloseDoesNotWaitForAHeartbeat(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	r.untilUp()
	if err := b.Freeze(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_, _ = r.Heartbeat(2 * time.Second)
		close(done)
	}()
	time.Sleep(100 * time.Millisecond)
	d := r.Produce(numbered("alpha", 1, 10))
	start := time.Now()
	err := r.Close(500 * time.Millisecond)
	if took := time.Since(start); took > 1500*time.Millisecond {
		t.Errorf("close took %v", took)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	wait(t, d, 10*time.Millisecond)
	<-done
}

func TestClient_TellsPermanentFromTransient(t *testing.T) {
	b := newBroker(t, broker.Options{})
	if err := b.CreateTopic("small", 1, map[string]string{"max.message.bytes": "1000"}); err != nil {
		t.Fatal(err)
	}
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen, Property{"message.max.bytes", "100000"})
	big := &reconnect.Batch{Topics: []string{"alpha", strings.Repeat("x", 600)}, Data: make([]byte, 200000)}
	big.Messages = []reconnect.Message{
		{Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValLen: 200000},
		{Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValLen: 10},
		{Topic: 1, Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValLen: 10},
	}
	d := r.Produce(big)
	wait(t, d, 5*time.Second)
	if d.Acked() != 1 || len(d.Failures()) != 2 {
		t.Fatalf("acked %d, failures %+v", d.Acked(), d.Failures())
	}
	if f := d.Failures()[0]; f.Index != 0 || f.Class != fsm.ClassRecord || !f.Refused || f.Text == "" {
		t.Errorf("too large for the client: %+v", f)
	}
	if f := d.Failures()[1]; f.Index != 2 || !f.Refused || f.Code == 0 {
		t.Errorf("impossible topic name: %+v", f)
	}
}

func TestClient_ReportsWhatTheBrokerRejects(t *testing.T) {
	b := newBroker(t, broker.Options{})
	b.FailProduce(44, -1)
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	d := r.Produce(numbered("alpha", 1, 3))
	wait(t, d, 5*time.Second)
	if len(d.Failures()) != 3 || d.Failures()[2].Code != 44 || d.Failures()[2].Class != fsm.ClassRecord || d.Failures()[2].Refused {
		t.Fatalf("%+v", d.Failures())
	}
}

func TestClient_FatalErrorIsTold(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	wait(t, r.Produce(numbered("alpha", 1, 3)), 5*time.Second)
	b.FailProduce(45, -1) // out of order sequence number
	d := r.Produce(numbered("alpha", 10, 3))
	r.until(5*time.Second, "the fatal notice", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, n := range r.notices {
			if n.Kind == reconnect.NoticeFatal && n.Class == fsm.ClassFatal && n.Gen == 7 && n.Text != "" {
				return true
			}
		}
		return false
	})
	wait(t, d, 5*time.Second)
	if len(d.Failures()) != 3 {
		t.Fatalf("acked %d, failures %+v", d.Acked(), d.Failures())
	}
}

func TestClient_CountsAFailedLookUpAsAnAttempt(t *testing.T) {
	r := openRig(t, "no-such-host.invalid:9092", fsm.ConnSweep)
	r.until(10*time.Second, "a failed look-up", func() bool { return r.sum(failures) == 1 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.brokers[0]; b.Class != fsm.ClassResolve || b.Attempts != 1 || b.Text == "" || b.Addr != "no-such-host.invalid:9092" {
		t.Errorf("%+v", b)
	}
}

func TestClient_NamesTheStageThatFailed(t *testing.T) {
	b := newBroker(t, broker.Options{})
	id := newIdentity(t, t.TempDir())
	mutual := newBroker(t, broker.Options{Kfake: []kfake.Opt{kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{id.pair}, ClientAuth: tls.RequireAnyClientCert,
	})}})
	for _, tc := range []struct {
		name  string
		addr  string
		props []Property
		want  fsm.Class
	}{
		{"tls against a plain listener", b.Addrs()[0], []Property{{"security.protocol", "ssl"}}, fsm.ClassTLS},
		{"no certificate of ours", mutual.Addrs()[0], []Property{{"security.protocol", "ssl"}, {"ssl.ca.location", id.cert}}, fsm.ClassTLS},
		{"refused", newBroker(t, broker.Options{StartDown: true}).Addrs()[0], nil, fsm.ClassNetwork},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := openRig(t, tc.addr, fsm.ConnSweep, append(tc.props, Property{"socket.connection.setup.timeout.ms", "1000"})...)
			r.until(5*time.Second, "a failure", func() bool { return r.sum(failures) > 0 })
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := r.brokers[0]; got.Class != tc.want || got.Text == "" || strings.ContainsAny(got.Text[:1], "[1") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Too many words at once are dropped and counted; no delivery report is.
func TestClient_OverflowLosesWordsOnly(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen, Property{"debug", "all"}, Property{"log_level", "7"})
	for i := range 20 {
		d := r.Produce(numbered("alpha", i*1000, 1000))
		wait(t, d, 10*time.Second)
		if d.Acked() != 1000 {
			t.Fatalf("acked %d", d.Acked())
		}
	}
	r.untilUp()
}

func TestConf(t *testing.T) {
	if !strings.HasPrefix(Version(), "2.11.1") {
		t.Errorf("version %q", Version())
	}
	if !strings.Contains(Features(), "sasl_scram") {
		t.Errorf("features %q", Features())
	}
	if err := CheckProperty("linger.ms", "5"); err != nil {
		t.Error(err)
	}
	for _, p := range []Property{{"linger.ms", "five"}, {"no.such.thing", "1"}, {"acks", "99999"}, {"linger.ms", "1\x002"}} {
		if err := CheckProperty(p.Name, p.Value); err == nil || err.Error() == "" {
			t.Errorf("%v: %v", p, err)
		}
	}
	err := CheckAll([]Property{{"enable.idempotence", "true"}, {"acks", "1"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "acks") {
		t.Errorf("idempotence with acks=1: %v", err)
	}
	if err := CheckAll([]Property{{"bootstrap.servers", "127.0.0.1:1"}}, nil); err != nil {
		t.Error(err)
	}
	dump, err := Dump([]Property{{"client.id", "me"}})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range dump {
		found = found || p == Property{"client.id", "me"}
	}
	if !found || len(dump) < 100 {
		t.Errorf("dump of %d properties, client.id found: %v", len(dump), found)
	}
	if _, err := Open(Options{Properties: []Property{{"a", "1"}, {"b", "2"}}}, 1, nil); err == nil || !strings.Contains(err.Error(), "a") || !strings.Contains(err.Error(), "b") {
		t.Errorf("both faults in one error: %v", err)
	}
}

// librdkafka 2.11.1 leaves a broken configuration behind when it fails late: it must not be
// touched again, neither at the start nor when a running agent opens a client anew.
func TestOpen_SurvivesWhatFailsLate(t *testing.T) {
	for _, p := range []Property{
		{"ssl.ca.location", "/nonexistent"},
		{"ssl.certificate.location", "/nonexistent"},
		{"ssl.key.location", "/nonexistent"},
		{"ssl.key.pem", "junk"},
		{"ssl.ca.pem", "junk"},
		{"ssl.cipher.suites", "NOPE"},
		{"ssl.providers", "nope"},
		{"ssl.curves.list", "x"},
	} {
		props := []Property{{"bootstrap.servers", "127.0.0.1:1"}, {"security.protocol", "ssl"}, p}
		if err := CheckAll(props, nil); err == nil || err.Error() == "" {
			t.Errorf("%s: checked without an error", p.Name)
		}
		if _, err := Open(Options{Properties: props}, 1, nil); err == nil {
			t.Errorf("%s: opened without an error", p.Name)
		}
	}
}

func TestClassify_UnknownIsTransient(t *testing.T) {
	if Classify(9999) != fsm.ClassTransient || Classify(10) != fsm.ClassRecord || Classify(0) != fsm.ClassNone {
		t.Error("wrong class")
	}
}

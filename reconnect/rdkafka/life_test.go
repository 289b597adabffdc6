package rdkafka

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// life is a supervisor with real clients.
type life struct {
	*reconnect.Supervisor
	t *testing.T
	lines
}

// lines are what a logger has written.
type lines struct {
	mu  sync.Mutex
	log strings.Builder // guarded by mu
}

// Write takes the lines of the log.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.String()
}

// supervise begins a life with the settings of the plugin and some more.
func supervise(t *testing.T, bootstrap string, cfg fsm.Config, more ...Property) *life {
	t.Helper()
	return superviseWith(t, Options{}, bootstrap, cfg, more...)
}

// superviseWith is supervise with further options.
func superviseWith(t *testing.T, o Options, bootstrap string, cfg fsm.Config, more ...Property) *life {
	t.Helper()
	l := &life{t: t}
	o.Properties = append([]Property{
		{"bootstrap.servers", bootstrap},
		{"enable.idempotence", "true"},
		{"message.timeout.ms", "0"},
		{"reconnect.backoff.ms", "100"},
		{"reconnect.backoff.max.ms", "250"},
		{"broker.address.ttl", "0"},
		{"enable.metrics.push", "false"},
		{"socket.connection.setup.timeout.ms", "1000"},
	}, more...)
	cfg.BackoffMax, cfg.ProbeTimeout = 500*time.Millisecond, 2*time.Second
	log := slog.New(slog.NewTextHandler(l, nil))
	s, err := reconnect.New(reconnect.Options{
		Config: cfg, Logger: log, Open: Opener(o),
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Supervisor = s
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(l.text())
		}
	})
	return l
}

// until polls a condition.
func (l *life) until(within time.Duration, what string, ok func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: not within %v; %+v", what, within, l.Status())
		}
	}
}

// deliver hands a batch over, again if it comes back, until it is acknowledged as a whole.
func (l *life) deliver(within time.Duration, b *reconnect.Batch) {
	l.t.Helper()
	l.until(within, "delivery", func() bool {
		d, err := l.Produce(b)
		if err != nil {
			return false
		}
		select {
		case <-d.Done():
			return len(d.Failures()) == 0
		case <-time.After(within):
			return false
		}
	})
}

// A fatal error of the idempotent producer: a new client is opened at the pace of the
// backoff, and what was given back is delivered by it.
func TestLife_FatalError(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{})
	l := supervise(t, b.Addrs()[0], fsm.Config{})
	l.deliver(5*time.Second, numbered("alpha", 1, 3))
	b.FailProduce(45, 1) // out of order sequence number
	d, err := l.Produce(numbered("alpha", 4, 3))
	if err != nil {
		t.Fatal(err)
	}
	wait(t, d, 5*time.Second)
	if len(d.Failures()) != 3 {
		t.Fatalf("acked %d, failures %+v", d.Acked(), d.Failures())
	}
	l.deliver(5*time.Second, numbered("alpha", 4, 3))
	if st := l.Status(); st.Generation != 2 || end(b, "alpha") != 6 {
		t.Errorf("generation %d, %d records", st.Generation, end(b, "alpha"))
	}
	if text := l.text(); !strings.Contains(text, `"client replaced"`) || !strings.Contains(text, `because="fatal error"`) {
		t.Errorf("the log does not tell:\n%s", text)
	}
}

// The brokers refuse the login round after round: new clients are opened, and one of them
// gets in when the brokers have changed their mind.
func TestLife_RefusedLogins(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{Kfake: []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "agent", "secret")}})
	var good atomic.Bool
	b.Cluster().ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = 58 // authentication failed
		return resp, nil, !good.Load()
	})
	l := supervise(t, b.Addrs()[0], fsm.Config{RenewAfter: 3}, Property{"security.protocol", "sasl_plaintext"},
		Property{"sasl.mechanism", "PLAIN"}, Property{"sasl.username", "agent"}, Property{"sasl.password", "secret"})
	l.until(15*time.Second, "a second client", func() bool { return l.Status().Generation > 1 })
	good.Store(true)
	l.deliver(5*time.Second, numbered("alpha", 1, 3))
	if text := l.text(); !strings.Contains(text, `because="login refused repeatedly"`) || end(b, "alpha") != 3 {
		t.Errorf("%d records; the log:\n%s", end(b, "alpha"), text)
	}
}

// Nothing is acknowledged for long and nobody knows why: a new client beside the old one,
// which gives its records back in the end. They are delivered once.
func TestLife_Stuck(t *testing.T) {
	t.Parallel()
	b := newBroker(t, broker.Options{})
	l := supervise(t, b.Addrs()[0], fsm.Config{RenewAfter: 2, StallTimeout: time.Second})
	l.deliver(5*time.Second, numbered("alpha", 1, 3))
	b.FailProduce(19, -1) // not enough replicas
	d, err := l.Produce(numbered("alpha", 4, 3))
	if err != nil {
		t.Fatal(err)
	}
	l.until(10*time.Second, "a second client", func() bool { return l.Status().Generation > 1 })
	wait(t, d, 5*time.Second)
	if len(d.Failures()) != 3 {
		t.Fatalf("acked %d, failures %+v", d.Acked(), d.Failures())
	}
	b.FailProduce(0, 0)
	l.deliver(5*time.Second, numbered("alpha", 4, 3))
	st := l.Status()
	if text := l.text(); st.Outages != 0 || st.Refused != 0 || end(b, "alpha") != 6 || !strings.Contains(text, `because="nothing acknowledged"`) {
		t.Errorf("%+v, %d records; the log:\n%s", st, end(b, "alpha"), text)
	}
}

// install puts a certificate where the configuration looks, as Kubernetes does: a link to
// a folder is swapped.
func install(t *testing.T, link, folder string) {
	t.Helper()
	next := link + ".next"
	if err := os.Symlink(folder, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, link); err != nil {
		t.Fatal(err)
	}
}

// The broker gets a certificate of another authority during an outage; the file that we
// trust follows later, by a swapped link. The next rounds of attempts take it up.
func TestLife_AuthorityChangesWhileDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "..data")
	first, second := newIdentity(t, t.TempDir()), newIdentity(t, t.TempDir())
	install(t, data, filepath.Dir(first.cert))
	b := newBroker(t, broker.Options{Kfake: []kfake.Opt{kfake.TLS(&tls.Config{Certificates: []tls.Certificate{second.pair}})}})
	l := supervise(t, b.Addrs()[0], fsm.Config{}, Property{"security.protocol", "ssl"}, Property{"ssl.ca.location", filepath.Join(data, "tls.crt")})
	l.until(5*time.Second, "an outage", func() bool { return l.Status().Reason == fsm.ClassTLS })
	install(t, data, filepath.Dir(second.cert))
	l.deliver(8*time.Second, numbered("alpha", 1, 3))
	if !strings.Contains(l.text(), `because="files changed"`) {
		t.Errorf("the log does not tell:\n%s", l.text())
	}
}

// Half of a key makes no client: the one that is open stays in service.
func TestClient_Changed(t *testing.T) {
	dir := t.TempDir()
	id := newIdentity(t, dir)
	b := newBroker(t, broker.Options{Kfake: []kfake.Opt{kfake.TLS(&tls.Config{Certificates: []tls.Certificate{id.pair}})}})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen,
		Property{"security.protocol", "ssl"}, Property{"ssl.ca.location", id.cert},
		Property{"ssl.certificate.location", id.cert}, Property{"ssl.key.location", id.key})
	look := func(wantFiles, wantErr string) {
		t.Helper()
		files, err := r.Changed()
		text := ""
		if err != nil {
			text = err.Error()
		}
		if files != wantFiles || (wantErr == "") != (err == nil) || !strings.Contains(text, wantErr) {
			t.Errorf("changed %q, error %v; want %q, %q", files, err, wantFiles, wantErr)
		}
	}
	key, err := os.ReadFile(id.key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look("", "")
	write(id.key, key) // the same again
	look("", "")
	write(id.key, key[:len(key)/2])
	look("", id.key)
	wait(t, r.Produce(numbered("alpha", 1, 3)), 5*time.Second)
	if err := os.Remove(id.key); err != nil {
		t.Fatal(err)
	}
	look("", id.key)
	write(id.key, key)
	look("", "")
	newIdentity(t, dir)
	look(id.cert+", "+id.key, "")
}

// A password in a file is read at each opening, without the line break at its end, and a change of it is one of the client.
func TestClient_PasswordFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := newBroker(t, broker.Options{Kfake: []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "agent", "geheim ")}})
	o := Options{
		Properties: []Property{
			{"bootstrap.servers", b.Addrs()[0]}, {"security.protocol", "sasl_plaintext"}, {"sasl.mechanism", "PLAIN"}, {"sasl.username", "agent"},
		},
		Files: []Property{{"sasl.password", path}},
	}
	write("geheim \r\n")
	r := &rig{t: t}
	c, err := Open(o, 1, r.take)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(2 * time.Second) })
	r.untilUp()
	if files, err := c.Changed(); files != "" || err != nil {
		t.Errorf("changed %q, %v", files, err)
	}
	write("offen")
	if files, err := c.Changed(); files != path || err != nil {
		t.Errorf("changed %q, %v; want %s", files, err, path)
	}
	for _, faulty := range []string{"", "\n", "geheim\x00geheim"} {
		write(faulty)
		_, err := Open(o, 2, nil)
		if err == nil || !strings.Contains(err.Error(), "sasl.password") || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v", faulty, err)
		}
	}
}

func TestFiles_Folder(t *testing.T) {
	dir := t.TempDir()
	newIdentity(t, dir)
	f := lookAt([]Property{{"ssl.ca.location", dir}, {"ssl.ca.location", "probe"}, {"client.id", dir}}, nil)
	if len(f) != 1 || f.changed() != "" {
		t.Fatalf("%v changed %q", f, f.changed())
	}
	newIdentity(t, dir)
	if got := f.changed(); got != dir {
		t.Errorf("changed %q", got)
	}
}

func TestConfigured(t *testing.T) {
	got := configured([]Property{{"bootstrap.servers", "a:1, SSL://b:2,c ,[::1]:3"}, {"client.id", "d:4"}})
	want := []string{"a:1", "b:2", "c:9092", "::1:3"}
	for _, addr := range want {
		if !got[addr] {
			t.Errorf("%s is missing in %v", addr, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
}

package outage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func TestProxy_SpoilsRefusesAndCounts(t *testing.T) {
	began := time.Now()
	p, err := newProxy("127.0.0.1:0", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.refuse()
	addr := p.inner.Listen
	// talk returns an error unless what is sent comes back.
	talk := func() error {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1))
		return err
	}
	if err := talk(); err != nil {
		t.Errorf("a good network: %v", err)
	}
	if err := p.spoil(toxic{"timeout", "upstream", map[string]int{"timeout": 0}}); err != nil {
		t.Fatal(err)
	}
	if err := talk(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent network: %v", err)
	}
	p.cure(t.Context())
	if err := talk(); err != nil {
		t.Errorf("after the cure: %v", err)
	}
	p.refuse()
	if err := talk(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed port: %v", err)
	}
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	if err := talk(); err != nil {
		t.Errorf("opened again: %v", err)
	}
	if n := p.connects.between(began, time.Now()); n != 4 {
		t.Errorf("%d connects were counted, want 4", n)
	}
	if err := p.spoil(toxic{"nonsense", "upstream", nil}); err == nil {
		t.Error("an unknown fault is no error")
	}
}

func TestIdentities_OnlyTheRightCertificateIsTrusted(t *testing.T) {
	p, err := newIdentities(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(p.authority)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("the authority can't be read")
	}
	for path, good := range map[string]bool{p.right: true, p.wrong: false} {
		pair, err := tls.LoadX509KeyPair(path, path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1"})
		if (err == nil) != good {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestMeter_ReadsTheCountersOfAllInstances(t *testing.T) {
	var page atomic.Value
	page.Store("# TYPE " + acknowledgedTotal + " counter\n" +
		acknowledgedTotal + "{instance=\"a\"} 40\n" + acknowledgedTotal + "{instance=\"b\"} 2\n" +
		"# TYPE " + possibleTotal + " counter\n" + possibleTotal + "{instance=\"a\"} 7\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = io.WriteString(w, page.Load().(string))
		}
	}))
	defer server.Close()
	var pid atomic.Int64
	pid.Store(5)
	m := newMeter(server.URL, &pid)
	defer m.client.CloseIdleConnections()
	s, err := m.read(t.Context())
	if err != nil || s.acknowledged != 42 || s.possible != 7 || s.pid != 5 {
		t.Errorf("got %+v, %v", s, err)
	}
	page.Store("other 1\n")
	if _, err := m.read(t.Context()); err == nil {
		t.Error("a page without the counter is no error")
	}
}

func TestHighWater(t *testing.T) {
	if kib := highWater(os.Getpid()); kib < 1000 {
		t.Errorf("this process needs %d KiB", kib)
	}
	if kib := highWater(0); kib != 0 {
		t.Errorf("no process needs %d KiB", kib)
	}
}

func TestOutage_NotesItsTimesAndLasts(t *testing.T) {
	host, err := rig.NewHost("chost", rig.HostOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{say: func(string, ...any) {}, host: host}
	var order []string
	step := func(name string) Step {
		return func(context.Context, *world) error {
			order = append(order, name)
			return nil
		}
	}
	const length = 50 * time.Millisecond
	if err := outage(step("fault"), length, step("end"), step("meanwhile"))(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	o := w.outages[0]
	if strings.Join(order, " ") != "fault meanwhile end" || o.Back.Sub(o.Fault) < length || o.Ready.Before(o.Back) {
		t.Errorf("%q, %+v", order, o)
	}
	bad := func(context.Context, *world) error { return errors.ErrUnsupported }
	for _, steps := range [][3]Step{{bad, step(""), step("")}, {step(""), bad, step("")}, {step(""), step(""), bad}} {
		if err := outage(steps[0], 0, steps[1], steps[2])(t.Context(), w); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a step that fails: %v", err)
		}
	}
}

package metrics

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"out_kafka_reconnect/reconnect/fsm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a Source that says what it is told to.
type fake func() Sample

func (f fake) Metrics() Sample { return f() }

// full is a sample in which no two numbers are equal.
func full() Sample {
	return Sample{
		State:   fsm.AllDown,
		Outages: 2, OutageTime: 90500 * time.Millisecond,
		ConnectSuccesses: 3, ConnectFailures: 40,
		Acknowledged: 1_234_567, Open: 5,
		Rejected: map[string]int64{"record": 6, "topic": 7},
		Returned: map[string]int64{"timeout": 18, "topic": 19}, FieldsLeftOut: 17, DuplicatesAvoided: 8, PossibleDuplicates: 9,
		DeadLetters: map[string]int64{"topic": 10, "file": 11},
		QueueBytes:  67_108_864, Receipts: 12,
		Forgotten: 16,
		LeftOut:   17,
		ChunksOK:  13, ChunksRetried: 14, ChunksError: 15,
	}
}

// logBuffer keeps the lines of an instance.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// place is a hub whose servers listen at a free port of the loopback address, whatever the
// section says; it notes where.
type place struct {
	*hub
	at string
}

func newPlace() *place {
	p := &place{}
	p.hub = newHub(func(string) (net.Listener, error) {
		l, err := listen("127.0.0.1:0")
		if err == nil {
			p.at = l.Addr().String()
		}
		return l, err
	})
	return p
}

func (p *place) open(t *testing.T, instance string, s Source) *Endpoint {
	t.Helper()
	e := p.hub.open(Options{Listen: "here:1", Instance: instance, Source: s, Latency: NewLatency(), Logger: slog.New(slog.DiscardHandler)})
	if e == nil {
		t.Fatal("not served")
	}
	return e
}

// get asks a path on a connection of its own.
func (p *place) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	r, err := client.Get("http://" + p.at + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

func (p *place) scrape(t *testing.T) string {
	t.Helper()
	status, body := p.get(t, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	return body
}

// closed tells whether nobody listens where the last server did.
func (p *place) closed() bool {
	c, err := net.Dial("tcp", p.at)
	if err == nil {
		_ = c.Close()
	}
	return err != nil
}

func TestScrape_Golden(t *testing.T) {
	p := newPlace()
	e := p.open(t, "kafka_reconnect.0", fake(full))
	defer e.Close()
	e.collector.latency.Observe(3 * time.Millisecond)
	e.collector.latency.Observe(90 * time.Second)
	want, err := os.ReadFile("testdata/scrape.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := p.scrape(t)
	if got != string(want) {
		t.Errorf("testdata/scrape.txt is not what is served:\n%s", got)
	}
	problems, err := promlint.New(strings.NewReader(got)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %+v", err, problems)
	}
}

func TestServer_ServesMetricsOnly(t *testing.T) {
	p := newPlace()
	defer p.open(t, "a", fake(full)).Close()
	for _, path := range []string{"/", "/debug/pprof/", "/debug/vars"} {
		if status, _ := p.get(t, path); status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if body := p.scrape(t); strings.Contains(body, "go_") || strings.Contains(body, "process_") {
		t.Error("the host process is shown")
	}
}

func TestServer_InstancesShareAnAddress(t *testing.T) {
	p := newPlace()
	a := p.open(t, "a", fake(full))
	at := p.at
	b := p.open(t, "b", fake(func() Sample { return Sample{State: fsm.Up, Outages: 99} }))
	if p.at != at || len(p.servers) != 1 {
		t.Fatalf("%d servers, at %s and %s", len(p.servers), at, p.at)
	}
	body := p.scrape(t)
	for _, line := range []string{
		`kafka_reconnect_outages_total{instance="a"} 2`,
		`kafka_reconnect_outages_total{instance="b"} 99`,
		`kafka_reconnect_state{instance="b",state="up"} 1`,
		`kafka_reconnect_ack_latency_seconds_count{instance="b"} 0`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	a.Close()
	if body := p.scrape(t); strings.Contains(body, `"a"`) || !strings.Contains(body, `"b"`) {
		t.Errorf("after one was closed:\n%s", body)
	}
	b.Close()
	if !p.closed() || len(p.servers) != 0 {
		t.Error("the port is still open")
	}
}

// A hot reload closes the old instance and opens the new one, in either order, and the new
// one may have the old one's name.
func TestServer_SurvivesReload(t *testing.T) {
	var log logBuffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{hub: newHub(listen), at: l.Addr().String()}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	open := func(instance string) *Endpoint {
		return p.hub.open(Options{Listen: p.at, Instance: instance, Source: fake(full), Latency: NewLatency(), Logger: log.logger()})
	}
	for range 20 {
		old := open("a")
		// A scraper that keeps its connection must not keep the port.
		c, err := net.Dial("tcp", p.at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 1 {
			t.Fatal(err)
		}
		old.Close()
		last := open("a")
		next := open("b")
		last.Close()
		if body := p.scrape(t); !strings.Contains(body, `instance="b"`) || strings.Contains(body, `instance="a"`) {
			t.Fatalf("after the reload:\n%s", body)
		}
		next.Close()
	}
	if !p.closed() {
		t.Error("the port is still open")
	}
	if log.count("WARN") > 0 {
		t.Errorf("%s", log.buf.String())
	}
}

func TestServer_StopDoesNotWaitForASilentConnection(t *testing.T) {
	p := newPlace()
	e := p.open(t, "a", fake(full))
	c, err := net.Dial("tcp", p.at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p.scrape(t) // the server has taken the connection before this one
	done := make(chan struct{})
	go func() { e.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("Close waits for a client that says nothing")
	}
}

// idle is a listener to which nobody connects.
type idle struct {
	closed chan struct{}
	once   *sync.Once
}

func (l idle) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l idle) Close() error              { l.once.Do(func() { close(l.closed) }); return nil }
func (l idle) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9308} }

var errInUse = errors.New("address already in use")

func TestServer_AddressInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, second logBuffer
		var tries atomic.Int32
		var free atomic.Bool
		h := newHub(func(string) (net.Listener, error) {
			tries.Add(1)
			if !free.Load() {
				return nil, errInUse
			}
			return idle{make(chan struct{}), new(sync.Once)}, nil
		})
		first := h.open(Options{Listen: "here:1", Instance: "a", Source: fake(full), Latency: NewLatency(), Logger: log.logger()})
		other := h.open(Options{Listen: "here:1", Instance: "b", Source: fake(full), Latency: NewLatency(), Logger: second.logger()})
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if tries.Load() != 1+10*60/5 || log.count("WARN") != 1 || log.count("metrics_listen=here:1") != 1 || log.count(errInUse.Error()) != 1 {
			t.Errorf("%d tries in ten minutes; log:\n%s", tries.Load(), log.buf.String())
		}
		// The line about the success must not go to the log of an instance that is gone.
		first.Close()
		free.Store(true)
		time.Sleep(retryEvery)
		synctest.Wait()
		if log.count("metrics are served") != 0 || second.count("metrics are served") != 1 {
			t.Errorf("log:\n%s\nlog of the second:\n%s", log.buf.String(), second.buf.String())
		}
		before := tries.Load()
		time.Sleep(time.Minute)
		other.Close()
		if n := tries.Load() - before; n != 0 {
			t.Errorf("%d tries while it is served", n)
		}
	})
}

// A listener that breaks is opened anew.
func TestServer_ListenerBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		opened := make(chan idle, 2)
		h := newHub(func(string) (net.Listener, error) {
			l := idle{make(chan struct{}), new(sync.Once)}
			opened <- l
			return l, nil
		})
		e := h.open(Options{Listen: "here:1", Instance: "a", Source: fake(full), Latency: NewLatency(), Logger: log.logger()})
		_ = (<-opened).Close()
		time.Sleep(retryEvery)
		<-opened
		synctest.Wait()
		if log.count("WARN") != 1 || log.count("metrics are served") != 2 {
			t.Errorf("log:\n%s", log.buf.String())
		}
		e.Close()
	})
}

// The registry reads instances on goroutines of its own: a panic there must stay there.
func TestScrape_PanicOfASource(t *testing.T) {
	p := newPlace()
	defer p.open(t, "good", fake(full)).Close()
	defer p.open(t, "bad", fake(func() Sample { panic("a fault of ours") })).Close()
	if body := p.scrape(t); !strings.Contains(body, `instance="good"`) || strings.Contains(body, `instance="bad"`) {
		t.Errorf("got:\n%s", body)
	}
}

func TestOpen_NameInUse(t *testing.T) {
	p := newPlace()
	e := p.open(t, "a", fake(full))
	defer e.Close()
	var log logBuffer
	twin := p.hub.open(Options{Listen: "here:1", Instance: "a", Source: fake(full), Latency: NewLatency(), Logger: log.logger()})
	if twin != nil || log.count("WARN") != 1 {
		t.Errorf("%v, log: %s", twin, log.buf.String())
	}
	twin.Close()
	if !strings.Contains(p.scrape(t), `instance="a"`) {
		t.Error("the first is not served any more")
	}
}

func TestOpen_Off(t *testing.T) {
	e := Open(Options{Instance: "a", Source: fake(full), Latency: NewLatency(), Logger: slog.New(slog.DiscardHandler)})
	if e != nil {
		t.Fatal("served without an address")
	}
	e.Close()
	if len(shared.servers) != 0 {
		t.Error("a server was made")
	}
}

func TestEndpoint_ConcurrentUse(t *testing.T) {
	p := newPlace()
	keep := p.open(t, "keep", fake(full))
	defer keep.Close()
	var wg sync.WaitGroup
	for i := range 4 {
		name := string(rune('a' + i))
		wg.Go(func() {
			for range 20 {
				e := p.open(t, name, fake(full))
				e.collector.latency.Observe(time.Millisecond)
				e.Close()
			}
		})
	}
	for range 20 {
		p.scrape(t)
	}
	wg.Wait()
}

func BenchmarkLatency(b *testing.B) {
	l := NewLatency()
	b.ReportAllocs()
	for b.Loop() {
		l.Observe(3 * time.Millisecond)
	}
}

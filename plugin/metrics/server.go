package metrics

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// listenTimeout bounds one try to listen: the name of a host must be looked up.
	listenTimeout = time.Second
	// retryEvery is the time between two tries.
	retryEvery = 5 * time.Second
	// stopTimeout is how long the answer to a scrape may take when the server ends.
	stopTimeout = 200 * time.Millisecond
	// maxScrapes bounds the scrapes that are answered at once; further ones get 503.
	maxScrapes = 4
)

// listenFunc opens a listener at host:port.
type listenFunc func(addr string) (net.Listener, error)

func listen(addr string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listenTimeout)
	defer cancel()
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", addr)
}

// server serves the instances of one address.
type server struct {
	addr     string
	listen   listenFunc
	registry *prometheus.Registry
	http     *http.Server
	stopping chan struct{}
	done     chan struct{}

	mu      sync.Mutex // also held while a line is written: no member leaves meanwhile
	members []*Endpoint
}

func newServer(addr string, l listenFunc) *server {
	registry := prometheus.NewRegistry()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		// One broken instance must not hide the others.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		// A few kilobytes on loopback do not earn the memory of a compressor.
		DisableCompression: true,
	}))
	return &server{
		addr: addr, listen: l, registry: registry,
		http: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       5 * time.Second,
			WriteTimeout:      10 * time.Second,
			IdleTimeout:       2 * time.Minute, // longer than scrapers wait between two scrapes
			MaxHeaderBytes:    16 << 10,
			// What clients do wrong is not for the log of the agent.
			ErrorLog: log.New(io.Discard, "", 0),
		},
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
	}
}

func (s *server) join(e *Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = append(s.members, e)
}

// leave returns how many members are left.
func (s *server) leave(e *Endpoint) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(m *Endpoint) bool { return m == e })
	return len(s.members)
}

// log writes a line to the log of a member: that of one that has left must not be used.
func (s *server) log(level slog.Level, msg string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.members) > 0 {
		s.members[0].log.Log(context.Background(), level, msg, args...) //nolint:sloglint // constant at every call of log
	}
}

// start tries to listen, so that whoever has opened an endpoint can be scraped, and goes on
// in the background.
func (s *server) start() {
	l, err := s.listen(s.addr)
	if err == nil {
		s.log(slog.LevelInfo, "metrics are served", "url", s.url(l))
	}
	go s.run(l, err)
}

// run serves until the server is stopped. As long as it can't, it has told so once.
func (s *server) run(l net.Listener, err error) {
	defer close(s.done)
	told := false
	for {
		if err == nil {
			err = s.http.Serve(l) // returns an error always
		}
		if errors.Is(err, http.ErrServerClosed) {
			return
		}
		if !told {
			s.log(slog.LevelWarn, "metrics can't be served, delivery goes on and the address is tried again",
				"metrics_listen", s.addr, "every", retryEvery, "err", err)
			told = true
		}
		select {
		case <-s.stopping:
			return
		case <-time.After(retryEvery):
		}
		if l, err = s.listen(s.addr); err == nil {
			s.log(slog.LevelInfo, "metrics are served", "url", s.url(l))
			told = false
		}
	}
}

func (s *server) url(l net.Listener) string { return "http://" + l.Addr().String() + "/metrics" }

// stop ends the server: the listener is closed at once, a scrape that is being answered has
// a moment. No goroutine of ours is left when it returns.
func (s *server) stop() {
	close(s.stopping)
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.done
}

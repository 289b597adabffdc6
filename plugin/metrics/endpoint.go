package metrics

import (
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Options are what an Endpoint is made of.
type Options struct {
	// Listen is host:port; empty means that there are no metrics.
	Listen string
	// Instance is the value of the label of that name.
	Instance string
	Source   Source
	// Latency outlives the endpoint: a hot reload ends one and opens another.
	Latency *Latency
	// Logger is used until Close has returned.
	Logger *slog.Logger
}

// Endpoint is the part of one instance in the server at an address. A nil Endpoint stands
// for no metrics; its methods do nothing. The methods may be called from any goroutine.
type Endpoint struct {
	hub        *hub
	server     *server
	registerer prometheus.Registerer // adds the label
	collector  collector
	log        *slog.Logger
}

// Open begins to serve the metrics of an instance. It tries to listen once, which takes a
// second at most; when that fails it goes on in the background. It returns nil if there is
// nothing to serve.
func Open(o Options) *Endpoint { return shared.open(o) }

// Close takes the instance out. The last one at an address ends its server and waits for it:
// for a moment as long as a scrape is being answered, and no longer.
func (e *Endpoint) Close() {
	if e != nil {
		e.hub.leave(e)
	}
}

// hub holds the servers of the process by address.
type hub struct {
	listen listenFunc

	mu      sync.Mutex // held while a server starts or stops, so that the address is free then
	servers map[string]*server
}

// shared outlives the instances, and so a hot reload.
var shared = newHub(listen)

func newHub(l listenFunc) *hub {
	return &hub{listen: l, servers: map[string]*server{}}
}

func (h *hub) open(o Options) *Endpoint {
	if o.Listen == "" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s, running := h.servers[o.Listen]
	if !running {
		s = newServer(o.Listen, h.listen)
	}
	e := &Endpoint{
		hub: h, server: s, log: o.Logger,
		registerer: prometheus.WrapRegistererWith(prometheus.Labels{"instance": o.Instance}, s.registry),
		collector:  collector{source: o.Source, latency: o.Latency},
	}
	if err := e.registerer.Register(e.collector); err != nil {
		o.Logger.Warn("the metrics of this instance are not served", "err", err)
		return nil
	}
	s.join(e)
	if !running {
		h.servers[o.Listen] = s
		s.start()
	}
	return e
}

func (h *hub) leave(e *Endpoint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.registerer.Unregister(e.collector)
	if e.server.leave(e) > 0 {
		return
	}
	delete(h.servers, e.server.addr)
	e.server.stop()
}

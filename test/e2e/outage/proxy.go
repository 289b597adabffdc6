package outage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A proxy stands between the plugin and one node, and spoils the network on demand. It counts connects.
type proxy struct {
	inner    *toxiproxy.Proxy
	connects *connects
}

// connects notes the times at which a proxy has accepted a connection: its log is the only one that knows.
type connects struct {
	mu    sync.Mutex
	times []time.Time // guarded by mu
}

// Run implements zerolog.Hook.
func (c *connects) Run(_ *zerolog.Event, _ zerolog.Level, message string) {
	if message != "Accepted client" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = append(c.times, time.Now())
}

// between counts the connects of a span of time.
func (c *connects) between(from, to time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, at := range c.times {
		if at.After(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// newProxy opens a proxy.
func newProxy(listen, upstream string) (*proxy, error) {
	counter := &connects{}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.New(io.Discard).Hook(counter))
	p := &proxy{inner: toxiproxy.NewProxy(server, listen, listen, upstream), connects: counter}
	return p, p.open()
}

// listenPatience is for a port that a process which is being started holds until its exec.
const listenPatience = time.Second

// open lets connections through.
func (p *proxy) open() error {
	for end := time.Now().Add(listenPatience); ; time.Sleep(10 * time.Millisecond) {
		err := p.inner.Start()
		if err == nil || errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
			return nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return fmt.Errorf("opening the proxy: %w", err)
		}
	}
}

// refuse ends all connections and lets the kernel refuse new ones.
func (p *proxy) refuse() { p.inner.Stop() }

// A toxic is a fault of the network, in toxiproxy's words.
type toxic struct {
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Attributes map[string]int `json:"attributes"`
}

// spoil adds faults.
func (p *proxy) spoil(toxics ...toxic) error {
	for _, t := range toxics {
		text, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if _, err := p.inner.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
			return fmt.Errorf("adding %s: %w", text, err)
		}
	}
	return nil
}

// cure removes all faults. Connections whose data were dropped are closed.
func (p *proxy) cure(ctx context.Context) { p.inner.Toxics.ResetToxics(ctx) }

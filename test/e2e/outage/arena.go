package outage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"out_kafka_reconnect/test/e2e/kafka"
)

// An arena is a cluster of one kind with its proxies. One run at a time uses it.
type arena struct {
	kind    Kafka
	cluster *kafka.Cluster
	proxies []*proxy
	dir     string
	files   *identities // of a secure arena
}

const (
	// namedHost is the name of the broker of a named arena, firstAddr and secondAddr are where it lives, in turn.
	namedHost  = "kafka.test"
	firstAddr  = "127.0.0.2"
	secondAddr = "127.0.0.3"
	// openPatience is how long a cluster may take to come up.
	openPatience = 3 * time.Minute
)

// openArena makes a cluster of a kind and waits until it is ready.
func openArena(ctx context.Context, dist *kafka.Distribution, kind Kafka, dir string) (*arena, error) {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	a := &arena{kind: kind, dir: dir}
	opts := kafka.Options{Nodes: 1, Proxied: true, Dir: filepath.Join(dir, "kafka")}
	switch kind {
	case OneNode:
	case ThreeNodes:
		opts.Nodes = 3
	case Named:
		opts.ProxyHost = namedHost
	case Secure:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		var err error
		if a.files, err = newIdentities(dir); err != nil {
			return nil, err
		}
		a.files.secure(&opts)
	}
	cluster, err := kafka.New(dist, opts)
	if err != nil {
		return nil, err
	}
	a.cluster = cluster
	if err := a.begin(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *arena) begin(ctx context.Context) error {
	if err := a.cluster.Start(); err != nil {
		return err
	}
	if a.kind != Named { // there each run chooses the address
		if err := a.openProxies(""); err != nil {
			return err
		}
	}
	if err := a.cluster.WaitReady(ctx); err != nil {
		return err
	}
	if a.kind == Secure {
		return a.setPassword(ctx, rightPassword)
	}
	return nil
}

// openProxies puts a proxy before each node, on another host than the advertised one if one is given.
func (a *arena) openProxies(host string) error {
	for _, p := range a.proxies {
		p.refuse()
	}
	a.proxies = nil
	for i, addr := range a.cluster.ProxyAddrs() {
		if host != "" {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return err
			}
			addr = net.JoinHostPort(host, port)
		}
		p, err := newProxy(addr, a.cluster.ProxyTargets()[i])
		if err != nil {
			return err
		}
		a.proxies = append(a.proxies, p)
	}
	return nil
}

// restore puts right what a run may have left behind, for the next one.
func (a *arena) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	for _, p := range a.proxies {
		p.cure(ctx)
		if err := p.open(); err != nil {
			return err
		}
	}
	return a.cluster.WaitReady(ctx)
}

func (a *arena) close() error {
	for _, p := range a.proxies {
		p.refuse()
	}
	return a.cluster.Close()
}

// section holds the lines of the output section that the kind of cluster needs.
func (a *arena) section() string {
	if a.files == nil {
		return ""
	}
	return a.files.section()
}

// admin does something as an administrator.
func (a *arena) admin(ctx context.Context, do func(context.Context, *kadm.Client) error) error {
	client, err := a.cluster.Admin()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return do(ctx, client)
}

// A pool keeps the clusters that are free. There are never more than a limit, free or not.
type pool struct {
	dist  *kafka.Distribution
	dir   string
	limit int

	mu     sync.Mutex
	free   []*arena // guarded by mu
	opened int      // guarded by mu; how many there are, free or not
	serial int      // guarded by mu; how many there have been
}

// take returns a cluster of a kind; one that is free if there is one. The caller has a turn: no more than limit callers hold
// one at a time, so there is always room, once a free one of another kind has been closed.
func (p *pool) take(ctx context.Context, kind Kafka) (*arena, error) {
	p.mu.Lock()
	for i, a := range p.free {
		if a.kind == kind {
			p.free = append(p.free[:i], p.free[i+1:]...)
			p.mu.Unlock()
			return a, nil
		}
	}
	var old *arena
	if p.opened >= p.limit && len(p.free) > 0 {
		old = p.free[0]
		p.free = p.free[1:]
	} else {
		p.opened++
	}
	p.serial++
	dir := filepath.Join(p.dir, fmt.Sprintf("arena-%d", p.serial))
	p.mu.Unlock()
	if old != nil {
		if err := old.close(); err != nil {
			return nil, err
		}
	}
	a, err := openArena(ctx, p.dist, kind, dir)
	if err != nil {
		p.mu.Lock()
		p.opened--
		p.mu.Unlock()
	}
	return a, err
}

// giveBack makes a cluster free again. One that can't be put right is closed.
func (p *pool) giveBack(ctx context.Context, a *arena) error {
	err := a.restore(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.opened--
		return errors.Join(err, a.close())
	}
	p.free = append(p.free, a)
	return nil
}

// close closes what is free; nothing else is left then.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, a := range p.free {
		errs = append(errs, a.close())
	}
	p.free = nil
	return errors.Join(errs...)
}

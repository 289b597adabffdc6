package rdkafka

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// entrance is an address that stays while the cluster behind it moves: a load balancer that
// only serves the first connection, the brokers advertise addresses of their own.
type entrance struct {
	listener net.Listener
	target   atomic.Value // string
	wg       sync.WaitGroup
}

func newEntrance(t *testing.T, target string) *entrance {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &entrance{listener: l}
	e.target.Store(target)
	e.wg.Go(e.accept)
	t.Cleanup(func() {
		_ = l.Close()
		e.wg.Wait() // connections end with the client, whose cleanup comes first
	})
	return e
}

func (e *entrance) accept() {
	for {
		in, err := e.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", e.target.Load().(string))
		if err != nil {
			_ = in.Close()
			continue
		}
		pass := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			_, _ = to.Close(), from.Close()
		}
		e.wg.Go(func() { pass(in, out) })
		e.wg.Go(func() { pass(out, in) })
	}
}

// The cluster is replaced by another at other addresses, behind the same name. librdkafka
// begins again with the configured addresses by itself (metadata.recovery.strategy
// rebootstrap), and its producer then finds that the new cluster does not know it, which is
// fatal. Where that is switched off the client is replaced after some rounds.
func TestLife_ClusterMoves(t *testing.T) {
	t.Parallel()
	for strategy, because := range map[string]string{
		"rebootstrap": `because="fatal error"`,
		"none":        `because="learned addresses fail repeatedly"`,
	} {
		t.Run(strategy, func(t *testing.T) {
			first := newBroker(t, broker.Options{})
			door := newEntrance(t, first.Addrs()[0])
			l := supervise(t, door.listener.Addr().String(), fsm.Config{RenewAfter: 4}, Property{"metadata.recovery.strategy", strategy})
			l.deliver(5*time.Second, numbered("alpha", 1, 3))
			second := newBroker(t, broker.Options{})
			if err := first.Stop(); err != nil {
				t.Fatal(err)
			}
			l.until(5*time.Second, "an outage", func() bool { return l.State().Gate() == fsm.Refuse })
			door.target.Store(second.Addrs()[0])
			l.deliver(15*time.Second, numbered("alpha", 4, 3))
			if st := l.Status(); st.Generation != 2 || end(second, "alpha") != 3 || !strings.Contains(l.text(), because) {
				t.Errorf("generation %d, %d records, want %s in\n%s", st.Generation, end(second, "alpha"), because, l.text())
			}
		})
	}
}

package rdkafka

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// The client is connected to one broker of three and knows the others, which it tries only when that one is gone: the
// loss of the one is no outage, whether the others are of the configuration or were learned.
func TestLife_OtherBrokersAreUntried(t *testing.T) {
	t.Parallel()
	for name, configured := range map[string]int{"configured": 3, "learned": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				b := newBroker(t, broker.Options{Nodes: 3})
				l := supervise(t, strings.Join(b.Addrs()[:configured], ","), fsm.Config{DrainTimeout: 50 * time.Millisecond})
				l.deliver(5*time.Second, numbered("alpha", 1, 3))
				nodes := connected(l, b)
				if len(nodes) == 3 {
					continue // nobody is untried
				}
				if err := b.Stop(nodes...); err != nil {
					t.Fatal(err)
				}
				if _, err := l.Produce(numbered("alpha", 4, 3)); err != nil {
					t.Fatal(err)
				}
				l.until(5*time.Second, "another broker", func() bool {
					return slices.ContainsFunc(connected(l, b), func(n int) bool { return !slices.Contains(nodes, n) })
				})
				if st := l.Status(); st.Outages != 0 {
					t.Fatalf("%d outages\n%s", st.Outages, l.text())
				}
			}
		})
	}
}

// The client was connected to all brokers, and is to one: the others were restarted, and nothing was to be sent to them
// since. The client counts them as down, and the loss of the one is no outage all the same.
func TestLife_OtherBrokersWereRestarted(t *testing.T) {
	t.Parallel()
	var tried atomic.Int32
	t.Cleanup(func() {
		if tried.Load() == 0 {
			t.Error("the client was never left with one connection")
		}
	})
	for i := range 16 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, broker.Options{Nodes: 3, Topics: map[string]int{"alpha": 1, "beta": 12}})
			l := supervise(t, strings.Join(b.Addrs(), ","), fsm.Config{DrainTimeout: 50 * time.Millisecond})
			l.deliver(5*time.Second, numbered("alpha", 1, 3))
			for sent := 0; sent < 200; sent += 10 {
				l.deliver(5*time.Second, numbered("beta", 1+sent, 10))
			}
			leader := int(b.Cluster().LeaderFor("alpha", 0))
			others := slices.DeleteFunc(connected(l, b), func(n int) bool { return n == leader })
			time.Sleep(1100 * time.Millisecond) // or the broker would count as one that ends each connection at once
			if err := b.Stop(others...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(700 * time.Millisecond)
			if err := b.Start(others...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3200 * time.Millisecond) // what the client asked for a moment ago counts as untried anyway
			if !slices.Equal(connected(l, b), []int{leader}) || len(others) < 2 {
				return // one was connected anew, or leads nothing and never was
			}
			tried.Add(1)
			if err := b.Stop(leader); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Produce(numbered("alpha", 4, 3)); err != nil {
				t.Fatal(err)
			}
			l.until(5*time.Second, "another broker", func() bool {
				return slices.ContainsFunc(connected(l, b), func(n int) bool { return n != leader })
			})
			if st := l.Status(); st.Outages != 0 {
				t.Fatalf("%d outages\n%s", st.Outages, l.text())
			}
		})
	}
}

// connected are the nodes of b that l is connected to.
func connected(l *life, b *broker.Broker) []int {
	var nodes []int
	for _, known := range l.Status().Brokers {
		for i, addr := range b.Addrs() {
			if known.Addr == addr && known.Up > 0 {
				nodes = append(nodes, i)
			}
		}
	}
	return nodes
}

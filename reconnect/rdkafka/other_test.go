package rdkafka

import (
	"slices"
	"strings"
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

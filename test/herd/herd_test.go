package herd

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

const ms = time.Millisecond

// The bar: no broker sees more than twice the attempts a second of agents that are spread
// evenly over the longest wait, however many brokers there are.
func TestBar(t *testing.T) {
	b := results(t)
	for _, outage := range outages {
		for _, brokers := range []int{1, 3} {
			c := outageOf(ours, outage)
			c.Brokers = brokers
			r := b.of(c)
			if outage < time.Hour { // longer ones are made anew by make herd only
				r = c.Run()
			}
			t.Logf("%s: %d in the busiest second, %d at one broker, the bar is %d", c.key(), r.Peak, r.PeakOne, r.Bar)
			if r.PeakOne == 0 || r.PeakOne > c.bar() {
				t.Errorf("%s: %d attempts in the busiest second, the bar is %d", c.key(), r.PeakOne, c.bar())
			}
			if longest := int((ours.Longest + roundTrip).Milliseconds()); r.All > longest {
				t.Errorf("%s: the last agent took %d ms, the longest wait is %d", c.key(), r.All, longest)
			}
		}
	}
}

// An agent of the simulation does what the supervisor does with a client: the same attempts,
// the same time apart.
func TestSupervised_DoesWhatTheSupervisorDoes(t *testing.T) {
	addrs := []string{"a:1", "b:1", "c:1"}
	for n := 1; n <= len(addrs); n++ {
		for chance := range uint64(5) {
			synctest.Test(t, func(t *testing.T) {
				const outage = 90 * time.Second
				actual := supervisor(t, addrs[:n], chance, outage)
				simulated := alone(newSupervised(fsm.DefaultConfig(), n, rand.New(rand.NewPCG(seed, chance))), newCluster(outage, 0, n))
				if !slices.Equal(actual, simulated) {
					t.Errorf("%d brokers, chance %d:\nthe supervisor %v\nthe simulation %v", n, chance, actual, simulated)
				}
				if len(actual) < 20 {
					t.Errorf("only %d attempts", len(actual))
				}
			})
		}
	}
}

// supervisor returns the times of the attempts that a supervisor makes to each address over
// an outage, counted from the first one on.
func supervisor(t *testing.T, addrs []string, chance uint64, outage time.Duration) []time.Duration {
	t.Helper()
	net := reconnecttest.NewNetwork(addrs...)
	net.ConnectDelay = roundTrip
	cfg := fsm.Config{Rand: rand.New(rand.NewPCG(seed, chance)).Float64}
	sup, err := reconnect.New(reconnect.Options{Config: cfg, Open: net.Open, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second) // of bubble time, as all of these
	before := len(net.AttemptsTo(addrs[0]))
	net.Set(reconnecttest.Down)
	first := func() []time.Duration { return net.AttemptsTo(addrs[0])[before:] }
	for len(first()) == 0 {
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
	time.Sleep(outage - (net.Now() - first()[0]))
	net.Set(reconnecttest.Serving)
	time.Sleep(10 * time.Second)
	if err := sup.Close(context.Background()); err != nil {
		t.Error(err)
	}
	times := first()
	for _, addr := range addrs[1:] {
		if other := net.AttemptsTo(addr)[before:]; !slices.Equal(times, other) {
			t.Errorf("%s is tried at %v, %s at %v", addrs[0], times, addr, other)
		}
	}
	start := times[0]
	for i := range times {
		times[i] -= start
	}
	return times
}

// alone returns the times of the attempts of one agent.
func alone(a agent, c *cluster) []time.Duration {
	var times []time.Duration
	for ; a.due() < never; a.turn(c) {
		times = append(times, a.due())
	}
	return times
}

// The waits of librdkafka after refused attempts, as its code was measured to make them.
func TestHandle_WaitsAsMeasured(t *testing.T) {
	want := [][2]time.Duration{{150 * ms, 300 * ms}, {600 * ms, 1200 * ms}, {2400 * ms, 4800 * ms}, {7500 * ms, 10000 * ms}, {7500 * ms, 10000 * ms}}
	capped, n := 0, 0
	for i := range uint64(1000) {
		r := rand.New(rand.NewPCG(i, 1))
		h := handle{base: reconnectBackoff}
		c := newCluster(time.Hour, 0, 1)
		at := time.Duration(0)
		for j, w := range want {
			_, known := h.attempt(at, c, 0, r)
			next := h.due(known)
			if wait := next - known; wait < w[0] || wait > w[1] {
				t.Fatalf("wait %d: %s, want %s to %s", j+1, wait, w[0], w[1])
			} else if j > 2 {
				n++
				if wait == reconnectBackoffMax {
					capped++
				}
			}
			at = next
		}
	}
	if share := float64(capped) / float64(n); share < 0.6 || share > 0.72 {
		t.Errorf("%.2f of the waits at the cap are exactly the longest, want two of three", share)
	}
	h := handle{base: reconnectBackoffMax, next: time.Second}
	h.update(time.Second+reconnectBackoffMax+1, rand.New(rand.NewPCG(1, 1)))
	if h.base != 2*reconnectBackoff {
		t.Errorf("after a long pause it goes on from %s", h.base)
	}
}

// Twice a second and the backoff of the leader: 128 attempts were counted in a minute.
func TestPlain_KnocksAsMeasured(t *testing.T) {
	for i := range uint64(20) {
		times := alone(newPlain(true, 1, rand.New(rand.NewPCG(seed, i))), newCluster(time.Minute, 0, 1))
		n, _ := slices.BinarySearch(times, time.Minute)
		if n < 124 || n > 132 {
			t.Errorf("%d attempts in a minute", n)
		}
		times = alone(newPlain(false, 1, rand.New(rand.NewPCG(seed, i))), newCluster(time.Minute, 0, 1))
		if n, _ = slices.BinarySearch(times, time.Minute); n < 8 || n > 11 {
			t.Errorf("%d attempts in a minute without the knocking", n)
		}
	}
}

func TestCluster_AcceptsSlowly(t *testing.T) {
	const back, each = time.Second, time.Second / 10
	c := newCluster(back, 10, 1)
	if ok, known := c.attempt(back-1, 0); ok || known != back-1+roundTrip {
		t.Errorf("away: %t at %s", ok, known)
	}
	for i := range backlog + 3 {
		ok, known := c.attempt(back, 0)
		want := back + roundTrip
		if i <= backlog {
			want += time.Duration(i) * each
		}
		if ok != (i <= backlog) || known != want {
			t.Errorf("number %d: %t at %s, want it at %s", i, ok, known, want)
		}
	}
	if ok, _ := c.attempt(back+each, 0); !ok {
		t.Error("refused although one place is free")
	}
	if c.early[0] != 1 || len(c.later) != backlog+4 {
		t.Errorf("it counts %v and %d", c.early, len(c.later))
	}
}

func TestCluster_Busiest(t *testing.T) {
	c := newCluster(0, 0, 2)
	for _, k := range []knock{{0, 0}, {500 * ms, 1}, {999 * ms, 0}, {1000 * ms, 0}, {1100 * ms, 1}, {1400 * ms, 1}, {1499 * ms, 1}, {3000 * ms, 0}} {
		c.attempt(k.at, k.broker)
	}
	if all, one := c.busiest(); all != 6 || one != 4 {
		t.Errorf("%d and %d, want 6 and 4", all, one)
	}
}

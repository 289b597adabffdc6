package herd

import "time"

const (
	// roundTrip is how long an attempt takes, refused or not. It is the same for all agents:
	// what spreads them must be the backoff and not the network.
	roundTrip = time.Millisecond
	// backlog is how many connections may wait for a broker that accepts them slowly: the
	// default of Kafka's socket.listen.backlog.size. Further ones are refused.
	backlog = 50
)

// cluster is the Kafka that is away until back. It counts who knocks.
type cluster struct {
	back time.Duration
	// accepts is how many connections a broker accepts in a second; 0 means any number.
	accepts int
	brokers []broker
	// early counts attempts by the second while it is away, later has the times of all others.
	early []int
	later []knock
}

// broker is one address.
type broker struct {
	free time.Duration // when it can accept the next connection
}

// knock is one attempt.
type knock struct {
	at     time.Duration
	broker int
}

func newCluster(back time.Duration, accepts, brokers int) *cluster {
	return &cluster{back: back, accepts: accepts, brokers: make([]broker, brokers), early: make([]int, (back+time.Second-1)/time.Second)}
}

// attempt is one connection attempt to a broker. It returns whether it succeeds and when
// that is known.
func (c *cluster) attempt(at time.Duration, to int) (bool, time.Duration) {
	if at < c.back {
		c.early[at/time.Second]++
		return false, at + roundTrip
	}
	c.later = append(c.later, knock{at, to})
	if c.accepts == 0 {
		return true, at + roundTrip
	}
	b := &c.brokers[to]
	each := time.Second / time.Duration(c.accepts)
	turn := max(at, b.free)
	if turn-at > backlog*each {
		return false, at + roundTrip
	}
	b.free = turn + each
	return true, turn + roundTrip
}

// busiest is the highest number of attempts in any second that begins after the cluster is
// back, and the same for one broker.
func (c *cluster) busiest() (all, one int) {
	all = busiest(c.later, func(knock) bool { return true })
	for i := range c.brokers {
		one = max(one, busiest(c.later, func(k knock) bool { return k.broker == i }))
	}
	return all, one
}

// busiest slides over knocks, which are in the order of time.
func busiest(knocks []knock, counts func(knock) bool) int {
	most, n, from := 0, 0, 0
	for _, k := range knocks {
		if !counts(k) {
			continue
		}
		n++
		for ; knocks[from].at <= k.at-time.Second; from++ {
			if counts(knocks[from]) {
				n--
			}
		}
		most = max(most, n)
	}
	return most
}

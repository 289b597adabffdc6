package herd

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// Policy is how the agents of a herd come back.
type Policy struct {
	Name string
	// Longest is the longest wait, which the bar is made of.
	Longest time.Duration
	agent   func(brokers int, r *rand.Rand) agent
}

// supervisedBy is our machine with a backoff.
func supervisedBy(name string, shortest, longest time.Duration) Policy {
	cfg := fsm.DefaultConfig()
	cfg.BackoffMin, cfg.BackoffMax = shortest, longest
	return Policy{name, longest, func(brokers int, r *rand.Rand) agent { return newSupervised(cfg, brokers, r) }}
}

// The policies.
var (
	defaults    = fsm.DefaultConfig()
	ours        = supervisedBy("kafka_reconnect", defaults.BackoffMin, defaults.BackoffMax)
	alwaysLong  = supervisedBy("min = max = 5 s", defaults.BackoffMax, defaults.BackoffMax)
	alwaysShort = supervisedBy("min = max = 100 ms", defaults.BackoffMin, defaults.BackoffMin)
	backoffOnly = Policy{"librdkafka, its backoff only", reconnectBackoffMax, func(brokers int, r *rand.Rand) agent { return newPlain(false, brokers, r) }}
	asItRuns    = Policy{"librdkafka as it runs", reconnectBackoffMax, func(brokers int, r *rand.Rand) agent { return newPlain(true, brokers, r) }}
)

// Case is one herd in one outage.
type Case struct {
	Policy  Policy
	Agents  int
	Brokers int
	Outage  time.Duration
	// Accepts is how many connections a broker accepts in a second when it is back; 0 means
	// any number.
	Accepts int
}

// Result is what was counted in a case. Times are in milliseconds, of the end of the outage on.
type Result struct {
	Policy  string `json:"policy"`
	Agents  int    `json:"agents"`
	Brokers int    `json:"brokers"`
	OutageS int    `json:"outage_s"`
	Accepts int    `json:"accepts,omitempty"`
	// Attempts is how many there were in the outage, LastSecond how many in its last second.
	Attempts   int `json:"attempts"`
	LastSecond int `json:"last_second"`
	// FirstSecond is how many came in the first second after it, Peak how many in the busiest
	// second, whenever that began, and PeakOne the same for one broker.
	FirstSecond int `json:"first_second"`
	Peak        int `json:"peak"`
	PeakOne     int `json:"peak_one"`
	// Bar is what PeakOne may be: twice the agents for each longest wait.
	Bar int `json:"bar"`
	// Half, Most and All tell when 50, 99 and 100 % of the agents were connected.
	Half int `json:"half_ms"`
	Most int `json:"most_ms"`
	All  int `json:"all_ms"`
	// Before has the attempts by the second up to the end of the outage, a minute at most, and
	// After those that came then.
	Before []int `json:"before,omitempty"`
	After  []int `json:"after,omitempty"`
	// Share has the number of agents that are connected, every 100 ms.
	Share []int `json:"share,omitempty"`
}

const (
	seed = 1
	// shown is how much of an outage a plot shows.
	shown = 60
	// shareEvery is the time between two figures of Result.Share.
	shareEvery = 100 * time.Millisecond
)

// Run simulates the case.
func (c Case) Run() Result {
	k := newCluster(c.Outage, c.Accepts, c.Brokers)
	herd := make(queue, c.Agents)
	for i := range herd {
		herd[i] = c.Policy.agent(c.Brokers, rand.New(rand.NewPCG(seed, uint64(i))))
		// While the cluster is away nobody gets anything that another one could take from him,
		// so that the agents can live through the outage one after the other.
		for herd[i].due() < c.Outage {
			herd[i].turn(k)
		}
	}
	agents := slices.Clone(herd)
	heap.Init(&herd)
	for herd[0].due() < never {
		herd[0].turn(k)
		heap.Fix(&herd, 0)
	}
	return c.count(k, agents)
}

// bar is twice the attempts a second of agents that are spread evenly over the longest wait.
func (c Case) bar() int { return 2 * c.Agents * int(time.Second) / int(c.Policy.Longest) }

func (c Case) count(k *cluster, agents []agent) Result {
	r := Result{
		Policy: c.Policy.Name, Agents: c.Agents, Brokers: c.Brokers, OutageS: int(c.Outage / time.Second), Accepts: c.Accepts,
		LastSecond: k.early[len(k.early)-1],
		Before:     k.early[max(0, len(k.early)-shown):],
		Bar:        c.bar(),
	}
	for _, n := range k.early {
		r.Attempts += n
	}
	for _, l := range k.later {
		s := int((l.at - c.Outage) / time.Second)
		for len(r.After) <= s {
			r.After = append(r.After, 0)
		}
		r.After[s]++
	}
	r.FirstSecond = r.After[0]
	r.Peak, r.PeakOne = k.busiest()
	times := make([]time.Duration, len(agents))
	for i, a := range agents {
		times[i] = a.connected() - c.Outage
	}
	slices.SortFunc(times, cmp.Compare)
	when := func(percent int) int { return int(times[(len(times)*percent+99)/100-1].Milliseconds()) }
	r.Half, r.Most, r.All = when(50), when(99), when(100)
	for at, n := time.Duration(0), 0; n < len(times); at += shareEvery {
		for n < len(times) && times[n] <= at {
			n++
		}
		r.Share = append(r.Share, n)
	}
	return r
}

// queue has the agents by what they do next, for container/heap.
type queue []agent

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due() < q[j].due() }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(agent)) }
func (q *queue) Pop() any          { panic("herd: the number of agents does not change") }

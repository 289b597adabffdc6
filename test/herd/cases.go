package herd

import "time"

// The sizes and outages of the herds.
var (
	sizes   = []int{100, 1000, 10000}
	outages = []time.Duration{10 * time.Second, 5 * time.Minute, 2 * time.Hour}
	// lengths, in seconds, are those whose busiest second is plotted.
	lengths  = []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60}
	policies = []Policy{ours, backoffOnly, asItRuns}
	// wrong are choices of the backoff that users could make.
	wrong = []Policy{alwaysLong, alwaysShort}
)

const (
	// most is the size of the herd where nothing else is said.
	most = 10000
	// slowly is how many connections a slow Kafka accepts in a second.
	slowly = 500
)

// outageOf makes the case of the largest herd, one broker that accepts everybody.
func outageOf(p Policy, length time.Duration) Case {
	return Case{Policy: p, Agents: most, Brokers: 1, Outage: length}
}

// slow makes the same case with a Kafka that comes back slowly.
func (c Case) slow() Case {
	c.Accepts = slowly
	return c
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// cases lists everything that docs/scale.md tells of, each case once.
func cases() []Case {
	var all []Case
	seen := map[string]bool{}
	add := func(c Case) {
		if key := c.key(); !seen[key] {
			seen[key] = true
			all = append(all, c)
		}
	}
	for _, p := range policies {
		for _, o := range outages {
			for _, n := range sizes {
				c := outageOf(p, o)
				c.Agents = n
				add(c)
			}
			c := outageOf(p, o)
			c.Brokers = 3
			add(c)
		}
	}
	for _, p := range append(policies[:len(policies):len(policies)], wrong...) {
		for _, o := range outages[:2] {
			add(outageOf(p, o))
			add(outageOf(p, o).slow())
		}
	}
	for _, p := range []Policy{ours, backoffOnly, asItRuns, alwaysLong} {
		for _, l := range lengths {
			add(outageOf(p, seconds(l)))
		}
	}
	return all
}

package outage

import (
	"fmt"
	"slices"
	"time"
)

// Matrix is all runs, in the order of the document.
func Matrix() []Run {
	return slices.Concat(brokerRuns(), clusterRuns(), networkRuns(), accessRuns(), agentRuns())
}

const s = time.Second

// brokerRuns are about the process of the broker.
func brokerRuns() []Run {
	return []Run{
		{
			Name: "stop-15s", Title: "The broker is stopped for 15 s and started again.", Kafka: OneNode, Short: true,
			Steps:   []Step{outage(stopNodes(), 15*s, startNodes())},
			BuiltIn: "0 lost, 0 doubled",
		},
		{
			Name: "stop-60s", Title: "The broker is stopped for 60 s and started again.", Kafka: OneNode,
			Steps:   []Step{outage(stopNodes(), 60*s, startNodes())},
			BuiltIn: "0 lost, 0 doubled; at 3,000/s with its defaults 91,979 lost",
		},
		{
			Name: "message-timeout", Title: "The broker is stopped for 20 s; the user has set `rdkafka.message.timeout.ms 5000`.",
			Kafka: OneNode, Short: true, Output: "rdkafka.message.timeout.ms 5000\n",
			Steps:   []Step{outage(stopNodes(), 20*s, startNodes())},
			BuiltIn: "7,798 of 14,582 lost (60 s, limit 30 s)",
		},
		{
			Name: "kill", Title: "The broker is killed with kill -9 and started again after 15 s.", Kafka: OneNode, Short: true,
			Steps:   []Step{outage(killNodes(), 15*s, startNodes())},
			BuiltIn: "0 lost, 0 doubled",
		},
		{
			Name: "freeze-15s", Title: "The broker freezes for 15 s: connections stay, new ones are accepted, nothing answers.",
			Kafka: OneNode, Short: true,
			Steps:   []Step{outage(freezeNodes(), 15*s, thawNodes())},
			BuiltIn: "0 lost, 0 doubled",
		},
		{
			Name: "freeze-75s", Title: "The broker freezes for 75 s, three times.", Kafka: OneNode, Long: true,
			Steps:   again(3, outage(freezeNodes(), 75*s, thawNodes()), wait(10*s)),
			BuiltIn: "0 lost, 3,387 doubled (once)",
		},
		{
			Name: "queue-small", Title: "The broker freezes for 20 s; `queue_limit` is a fifth of what is logged in that time.",
			Kafka: OneNode, Rate: 450, Output: "queue_limit 1MiB\n",
			Steps:   []Step{outage(freezeNodes(), 20*s, thawNodes())},
			BuiltIn: "0 lost, 7 doubled (stopped, queue of 2,000); 3,789 lost with its own retry limit",
		},
	}
}

// clusterRuns are about several nodes, and about topics.
func clusterRuns() []Run {
	var rolling, moves []Step
	for node := 1; node <= 3; node++ {
		rolling = append(rolling, outage(stopNodes(node), 3*s, startNodes(node)), wait(5*s))
		moves = append(moves, outage(moveLeaders(), 0, wait(0)), wait(6*s))
	}
	return []Run{
		{
			Name: "rolling-restart", Title: "Three nodes are restarted one after the other.", Kafka: ThreeNodes, Proxied: true,
			Steps: rolling, BuiltIn: "0 lost, 0 doubled",
		},
		{
			Name: "leader-moved", Title: "The leaders of all partitions move to another node, three times.", Kafka: ThreeNodes, Proxied: true,
			Steps: moves,
		},
		{
			Name: "min-isr", Title: "`min.insync.replicas` is 3 and one of three nodes is stopped for 20 s.", Kafka: ThreeNodes, Proxied: true,
			Topic: map[string]string{"min.insync.replicas": "3"},
			Steps: []Step{outage(stopNodes(3), 20*s, startNodes(3))},
		},
		{
			Name: "two-of-three", Title: "`min.insync.replicas` is 2 and two of three nodes are stopped for 15 s.", Kafka: ThreeNodes, Proxied: true,
			Topic:   map[string]string{"min.insync.replicas": "2"},
			Steps:   []Step{outage(stopNodes(2, 3), 15*s, startNodes(2, 3))},
			BuiltIn: "0 lost, 207 doubled (killed)",
		},
		{
			Name: "topic-made-again", Title: "The topic is deleted, and made again after 15 s.", Kafka: OneNode, Proxied: true,
			Steps: []Step{settle, outage(all(deleteTopic, feed), 15*s, makeTopic)},
		},
	}
}

// networkRuns are about what lies between the agent and the broker.
func networkRuns() []Run {
	silence := spoil(
		toxic{"timeout", "upstream", map[string]int{"timeout": 0}}, toxic{"timeout", "downstream", map[string]int{"timeout": 0}},
	)
	return []Run{
		{
			Name: "refused", Title: "The port refuses connections for 20 s.", Kafka: OneNode, Proxied: true,
			Steps:   []Step{outage(refuse, 20*s, open)},
			BuiltIn: "0 lost, 0 doubled",
		},
		{
			Name: "silent", Title: "The network drops all bytes for 30 s in silence; connections stay, new ones are accepted.",
			Kafka: OneNode, Short: true, Proxied: true,
			Steps:   []Step{outage(silence, 30*s, cure)},
			BuiltIn: "0 lost, 409 doubled (75 s)",
		},
		{
			Name: "reset-storm", Title: "Every connection is reset after half a second, for 20 s.", Kafka: OneNode, Proxied: true,
			Bars:    Bars{GoesOn: true},
			Steps:   []Step{outage(spoil(toxic{"reset_peer", "downstream", map[string]int{"timeout": 500}}), 20*s, cure)},
			BuiltIn: "0 lost, 0 doubled",
		},
		{
			Name: "slow", Title: "Every answer of the broker comes a second late, for 30 s.", Kafka: OneNode, Proxied: true,
			Bars:    Bars{GoesOn: true},
			Steps:   []Step{outage(spoil(toxic{"latency", "downstream", map[string]int{"latency": 1000}}), 30*s, cure)},
			BuiltIn: "0 lost, 0 doubled",
		},
		{
			Name: "bandwidth", Title: "For 40 s the network carries 10 KB/s, a fifth of what is logged.", Kafka: OneNode, Proxied: true,
			Bars:  Bars{GoesOn: true},
			Steps: []Step{outage(spoil(toxic{"bandwidth", "upstream", map[string]int{"rate": 10}}), 40*s, cure)},
		},
		{
			Name: "flapping", Title: "The port refuses connections 20 times, for 3 to 20 s; in between it works for 3 to 7 s.",
			Kafka: OneNode, Long: true, Proxied: true, Steps: flaps(20),
			BuiltIn: "0 lost, 0 doubled (18 s in all)",
		},
		{
			Name: "name-moved", Title: "The broker's name moves from 127.0.0.2 to 127.0.0.3; between the two nothing listens for 15 s.",
			Kafka: Named, Proxied: true,
			Steps: []Step{outage(refuse, 15*s, moveName)},
		},
	}
}

// flaps are outages of different lengths.
func flaps(n int) []Step {
	var steps []Step
	for i := range n {
		down, up := time.Duration(3+i*7%18)*s, time.Duration(3+i*3%5)*s
		steps = append(steps, outage(refuse, down, open), wait(up))
	}
	return steps
}

// accessRuns are about who may do what. The connections that exist are cut, so that the plugin has to prove itself anew.
func accessRuns() []Run {
	return []Run{
		{
			Name: "password", Title: "The broker takes the password no more, for 20 s.", Kafka: Secure, Proxied: true,
			Steps: []Step{outage(all(password(wrongPassword), cut), 20*s, password(rightPassword))},
		},
		{
			Name: "certificate", Title: "For 20 s the broker shows a certificate that nobody knows.", Kafka: Secure, Proxied: true,
			Steps: []Step{outage(all(wrongCertificate, cut), 20*s, rightCertificate)},
		},
		{
			Name: "acl", Title: "The right to write to the topic is taken away for 20 s.", Kafka: Secure, Proxied: true,
			Steps: []Step{outage(deny, 20*s, grant)},
		},
	}
}

// agentRuns end the agent in three ways, each before, in and after an outage.
func agentRuns() []Run {
	ends := []struct {
		name, title string
		steps       []Step
		bars        Bars
		service     string
	}{
		{"kill", "killed with kill -9 and started again", []Step{killAgent, wait(s), startAgent}, Bars{InFlight: true}, ""},
		{"stop", "stopped and started again", []Step{stopAgent, startAgent}, Bars{InFlight: true}, ""},
		{"reload", "reloaded (SIGHUP)", []Step{reloadAgent}, Bars{}, "hot_reload on\nhot_reload.ensure_thread_safety off\n"},
	}
	builtIn := map[string]string{
		"kill-up": "0 lost, 0 doubled", "kill-down": "2,201 lost", "stop-up": "0 lost, 0 doubled", "stop-down": "2,182 lost",
	}
	narrow := spoil(toxic{"bandwidth", "upstream", map[string]int{"rate": 100}})
	var runs []Run
	for _, e := range ends {
		for _, when := range []struct {
			name, title string
			steps       []Step
		}{
			{"up", "while all is well", []Step{outage(all(e.steps[:len(e.steps)-1]...), 0, e.steps[len(e.steps)-1])}},
			{"down", "in the middle of an outage of 20 s", []Step{outage(refuse, 20*s, open, append([]Step{wait(7 * s)}, e.steps...)...)}},
			{
				"recovering", "while the backlog of an outage of 15 s goes out over a slow network",
				slices.Concat([]Step{outage(refuse, 15*s, all(narrow, open)), connected, wait(s)}, e.steps, []Step{wait(3 * s), cure}),
			},
		} {
			name := e.name + "-" + when.name
			runs = append(runs, Run{
				Name: "agent-" + name, Title: fmt.Sprintf("The agent is %s %s.", e.title, when.title),
				Kafka: OneNode, Proxied: true, Service: e.service, Steps: when.steps, Bars: e.bars, BuiltIn: builtIn[name],
				Short: name == "kill-down" || name == "reload-down",
			})
		}
	}
	return runs
}

package config

import (
	"slices"
	"strconv"
	"time"
)

// Setting is a client property that this plugin sets unless the section does.
type Setting struct {
	Name string
	// Value tells the value in words for the documentation.
	Value string
	// Why is one sentence.
	Why string
	// value is what is set.
	value func(*Config) string
}

func constant(v string) func(*Config) string { return func(*Config) string { return v } }

// Settings are the defaults that differ from librdkafka's, in the order in which they
// are handed over. enable.idempotence is decided in settle.
var Settings = []Setting{
	{
		Name: "bootstrap.servers", Value: "`brokers`", Why: "the key of the built-in output.",
		value: func(c *Config) string { return c.Brokers },
	},
	{
		Name: "client.id", Value: "`client_id`", Why: "the key of the built-in output.",
		value: func(c *Config) string { return c.ClientID },
	},
	{
		Name: "partitioner", Value: "`partitioner`", Why: "a key of the section, as it is not obvious which one Java clients have.",
		value: func(c *Config) string { return c.Partitioner.String() },
	},
	{
		Name: "enable.idempotence", Value: "true",
		Why:   "what was in flight when a connection broke is sent again without duplicates, and in order.",
		value: constant("true"),
	},
	{
		Name: "queue.buffering.max.ms", Value: "1",
		Why: "also called `linger.ms`. A chunk is handed over as a whole, so there is little to wait for, and a flush that waits" +
			" for its acknowledgement would wait for librdkafka's 5 ms first.",
		value: constant("1"),
	},
	{
		Name: "message.timeout.ms", Value: "0",
		Why: "no record expires by age; Fluent Bit's `Retry_Limit` alone decides what is given up. With a value above 0" +
			" a record that expires is sent again at the retry.",
		value: constant("0"),
	},
	{
		Name: "socket.timeout.ms", Value: "300000",
		Why: "silent connections are found by `stall_timeout` and `keepalive_timeout`; this one would also cut a large" +
			" request on a slow link, and again each time it is sent anew.",
		value: constant("300000"),
	},
	{
		Name: "socket.connection.setup.timeout.ms", Value: "`probe_timeout`",
		Why:   "an attempt ends when the supervisor expects it to.",
		value: func(c *Config) string { return milliseconds(c.ProbeTimeout) },
	},
	{
		Name: "topic.metadata.propagation.max.ms", Value: "two thirds of `stall_timeout`",
		Why: "an unknown topic is reported as such before the wait for it looks like a stalled connection." +
			" (A topic that is made later is found all the same: its records are tried again.)",
		value: func(c *Config) string { return milliseconds(c.StallTimeout * 2 / 3) },
	},
	{
		Name: "socket.keepalive.enable", Value: "true",
		Why:   "the kernel finds dead connections even where no heartbeat runs.",
		value: constant("true"),
	},
	{
		Name: "reconnect.backoff.ms", Value: "100",
		Why:   "the supervisor rules the pace; librdkafka's own must only be short.",
		value: constant("100"),
	},
	{
		Name: "reconnect.backoff.max.ms", Value: "250",
		Why:   "with librdkafka's 10 s the first record after an outage would wait for up to that long.",
		value: constant("250"),
	},
	{
		Name: "broker.address.ttl", Value: "0",
		Why:   "names are looked up at every attempt, so a broker that moved is found.",
		value: constant("0"),
	},
	{
		Name: "queue.buffering.max.messages", Value: "0",
		Why: "no limit by number: `queue_limit` rules. With a limit, what finds the queue full waits in the plugin for a report," +
			" and a small queue is as slow as the round trips are.",
		value: constant("0"),
	},
	{
		Name: "queue.buffering.max.kbytes", Value: "2147483647",
		Why:   "the same by size.",
		value: constant("2147483647"),
	},
	{
		Name: "enable.metrics.push", Value: "false",
		Why:   "telemetry to the brokers is traffic of its own and keeps idle connections busy.",
		value: constant("false"),
	},
	{
		Name: "connections.max.idle.ms", Value: "0",
		Why:   "`idle_policy` rules; librdkafka alone would close and connect again at once.",
		value: constant("0"),
	},
	{
		Name: "log_level", Value: "6",
		Why:   "librdkafka's own lines up to informational ones; the plugin sorts them.",
		value: constant("6"),
	},
}

// milliseconds is d as librdkafka takes it, rounded up.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

// Rule is a client property that the section can't set.
type Rule struct {
	Name string
	// Why is one clause that explains it.
	Why string
	// Use names what to set in its place, or is empty.
	Use string
}

// Owned are the properties that the supervisor rules. A value in the section is not
// applied and earns a warning.
var Owned = []Rule{
	{"reconnect.backoff.ms", "the supervisor rules the pace of attempts", "reconnect_backoff_min"},
	{"reconnect.backoff.max.ms", "the supervisor rules the pace of attempts", "reconnect_backoff_max"},
	{"reconnect.backoff.jitter.ms", "the supervisor draws the jitter", ""},
	{"socket.connection.setup.timeout.ms", "the supervisor must know how long an attempt may take", "probe_timeout"},
	{"broker.address.ttl", "the supervisor lets or refuses each look-up", ""},
	{"enable.sparse.connections", "the supervisor decides when a connection may be made", ""},
	{"enabled_events", "the plugin chooses the events that it handles", ""},
	{"enable_sasl_queue", "the plugin serves the login callbacks itself", ""},
	{"log.queue", "the plugin brings librdkafka's lines into Fluent Bit's log itself", ""},
	{"internal.termination.signal", "a plugin sends no signals inside Fluent Bit", ""},
}

// Refused are the properties that would break a promise of this plugin. A value in the
// section is a fault, unless it is false.
var Refused = []Rule{
	{"transactional.id", "transactions are not supported", ""},
	{"delivery.report.only.error", "without a report for each record nobody knows what was written", ""},
	{"enable.gapless.guarantee", "one record that the brokers refuse would end the whole client", ""},
	{"plugin.library.paths", "a librdkafka plugin would call Fluent Bit's own librdkafka and not this one", ""},
}

// unitTestPrefix begins properties that set function pointers for librdkafka's unit
// tests. rd_kafka_conf_set takes a text for them and the process ends when it is called.
const unitTestPrefix = "ut_"

// ruleFor finds the rule for a canonical name.
func ruleFor(rules []Rule, name string) (Rule, bool) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Name == name })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// MaxMessageBytes is how large a message may be for the client (message.max.bytes).
func (c *Config) MaxMessageBytes() int {
	const librdkafkaDefault = 1_000_000
	i := slices.IndexFunc(c.properties, func(p Property) bool { return p.Name == "message.max.bytes" })
	if i < 0 {
		return librdkafkaDefault
	}
	n, err := integer(c.properties[i].Value)
	if err != nil { // librdkafka has refused it already
		return librdkafkaDefault
	}
	return int(n)
}

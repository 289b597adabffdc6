package config

import "time"

var supervisorOptions = prefixed(
	duration(Option{
		Name: "reconnect_backoff_min", Default: "100ms",
		Doc: "The first step of the backoff while all brokers are down.",
		Note: "After each failed attempt the wait is drawn between 0.75 and 1.5 times the step, and the step doubles. It" +
			" starts again at this value after a delivery was acknowledged. At most `reconnect_backoff_max`.",
	}, 50*ms, 10*time.Minute, func(c *Config) *time.Duration { return &c.ReconnectBackoffMin }),
	duration(Option{
		Name: "reconnect_backoff_max", Default: "5s",
		Doc: "The longest wait of the backoff; no wait is longer, whatever the draw.",
		Note: "It is also how long, plus a second, what waits may stay unsent after a broker has come back. With many" +
			" agents a larger value spreads them more.",
	}, 50*ms, time.Hour, func(c *Config) *time.Duration { return &c.ReconnectBackoffMax }),
	duration(Option{
		Name: "probe_timeout", Default: "5s",
		Doc:  "How long one connection attempt may take, from TCP over TLS to the login.",
		Note: "Sets librdkafka's `socket.connection.setup.timeout.ms`, which allows no less than a second.",
	}, sec, 5*time.Minute, func(c *Config) *time.Duration { return &c.ProbeTimeout }),
	choice(Option{
		Name: "idle_policy", Default: "keepalive",
		Doc: "What happens to connections without traffic.",
		Note: "`keepalive`: a heartbeat every `keepalive_interval` keeps load balancers and firewalls from forgetting the" +
			" connection, and finds out when they have. `close`: after `idle_timeout` without a record all connections are" +
			" closed and stay closed until the next one. `keep`: nothing is done.",
	}, idlePolicies, func(c *Config) *IdlePolicy { return &c.IdlePolicy }),
	duration(Option{
		Name: "idle_timeout", Default: "4m",
		Doc: "With `idle_policy close`: how long no record must come before the connections are closed.",
	}, sec, 24*time.Hour, func(c *Config) *time.Duration { return &c.IdleTimeout }),
	duration(Option{
		Name: "keepalive_interval", Default: "60s",
		Doc:  "With `idle_policy keepalive`: the time between two heartbeats.",
		Note: "Keep it well below the shortest idle limit on the way: 350 s for an AWS network load balancer, 240 s in Azure.",
	}, sec, time.Hour, func(c *Config) *time.Duration { return &c.KeepaliveInterval }),
	duration(Option{
		Name: "keepalive_timeout", Default: "10s",
		Doc:  "How long a heartbeat may stay unanswered before the connection is shut and made anew.",
		Note: "Below `keepalive_interval`.",
	}, 100*ms, 5*time.Minute, func(c *Config) *time.Duration { return &c.KeepaliveTimeout }),
	duration(Option{
		Name: "stall_timeout", Default: "15s",
		Doc: "How long a connection may show no sign of life after a request before it counts as dead and is shut.",
		Note: "It finds a broker that hangs but keeps its connections, and a firewall that drops silently. A request that" +
			" is on its way over a slow link, or an answer such as \"not enough replicas\", is a sign of life: then nothing is" +
			" shut and the log says that records wait. What was in flight is sent again, without duplicates as long as" +
			" idempotence is on.",
	}, sec, time.Hour, func(c *Config) *time.Duration { return &c.StallTimeout }),
)

var deliveryOptions = append(prefixed(
	duration(Option{
		Name: "delivery_wait", Default: "10s",
		Doc: "How long a flush on a worker thread (`workers` set) waits for the acknowledgement.",
		Note: "At a stop Fluent Bit waits for the flushes that its workers have begun, past `grace` if need be; so this" +
			" is also how much longer a stop may take.",
	}, 100*ms, 10*time.Minute, func(c *Config) *time.Duration { return &c.DeliveryWait }),
	duration(Option{
		Name: "delivery_wait_engine", Default: "50ms",
		Doc:  "The same on Fluent Bit's engine thread (`workers` not set), where all other plugins wait with it.",
		Note: "`0s` never waits: the result is then always collected at the retry.",
	}, 0, sec, func(c *Config) *time.Duration { return &c.DeliveryWaitEngine }),
	size(Option{
		Name: "queue_limit", Default: "64MiB",
		Doc:  "How many bytes may wait in the client, payload and 256 bytes for each record.",
		Note: "Above it a chunk is not taken and answered with a retry at once. It stays in Fluent Bit's own storage.",
	}, mib, 64*gib, func(c *Config) *int64 { return &c.QueueLimit }),
	duration(Option{
		Name: "shutdown_timeout", Default: "3s",
		Doc: "How long the end of the instance may take when Fluent Bit stops.",
	}, 100*ms, 5*time.Minute, func(c *Config) *time.Duration { return &c.ShutdownTimeout }),
	duration(Option{
		Name: "reload_timeout", Default: "10s",
		Doc: "How long a hot reload may wait for Kafka before the plugin takes the waiting chunks over.",
		Note: "Fluent Bit ends the old pipeline only when every chunk is answered for. What is taken over is delivered when a" +
			" broker is back. Without `state_path` it is kept in memory only, and lost if the process ends before that.",
	}, 100*ms, 10*time.Minute, func(c *Config) *time.Duration { return &c.ReloadTimeout }),
	size(Option{
		Name: "custody_limit", Default: "256MiB",
		Doc: "How many bytes may be taken over at a hot reload, on top of `queue_limit`.",
		Note: "Custody: Fluent Bit has been told OK for such a chunk and forgets it, though Kafka does not have it yet; from" +
			" then on the plugin alone answers for it. Chunks beyond the limit are not taken over and keep the reload waiting." +
			" With `0` nothing is taken over: a reload waits for Kafka, and so does a stop that comes during it.",
	}, 0, 64*gib, func(c *Config) *int64 { return &c.CustodyLimit }),
	text(Option{
		Name: "state_path", Allowed: "the path of a directory; a missing one is made",
		Doc: "The directory for what must outlive the process; without it that is in memory only.",
		Note: "It holds which chunks were delivered while Fluent Bit still has them, so that they are not written again after a" +
			" crash or a stop (only what was in flight may be), and the chunks that a hot reload has handed over. Sections and" +
			" agents may share it; but agents with the same command line and working directory, as in containers that" +
			" share a volume, need a path each. Nothing is written while chunks are acknowledged in time. Of a chunk that is partly" +
			" delivered it is known what is open: at once when that waits for a topic, else at the end. At a reload" +
			" with another path all of it moves there; an option that is new or gone takes effect at the next start. Chunks that were handed over wait for a section with the" +
			" same topics and the same options of record and format as theirs; others are told of after the start.",
	}, func(c *Config) *string { return &c.StatePath }),
	yesNo(Option{
		Name: "ordered", Default: "false",
		Doc: "Whether chunks are delivered one at a time, in the order in which they came.",
		Note: "The order of records holds across an outage, for one tag of one input with `workers` unset or 1. It costs" +
			" throughput: one round trip a chunk, and a record that waits holds up everything behind it. A hot reload that adds," +
			" removes or reorders sections of the same topics and cluster may mix what waits with what comes after it.",
	}, func(c *Config) *bool { return &c.Ordered }),
	duration(Option{
		Name: "ordered_wait", Default: "1m",
		Doc:  "With `ordered`: how long a chunk that did not fit into `queue_limit` is waited for before later ones go first.",
		Note: "Above the longest wait of Fluent Bit between two attempts (`scheduler.cap`).",
	}, sec, 24*time.Hour, func(c *Config) *time.Duration { return &c.OrderedWait }),
	duration(Option{
		Name: "receipt_ttl", Default: "1h",
		Doc: "How long the result of a chunk is kept for its retry.",
		Note: "A chunk that comes back later is written again. Fluent Bit waits up to 2000 s before a retry, or" +
			" `scheduler.cap`.",
	}, time.Minute, 7*24*time.Hour, func(c *Config) *time.Duration { return &c.ReceiptTTL }),
), ignored(Option{
	Name: "queue_full_retries",
	Doc:  "Accepted from a section of the built-in output, without effect.",
	Note: "The built-in output sleeps and tries again when its queue is full. Here a chunk that does not fit under" +
		" `queue_limit` is left to Fluent Bit's retry.",
}, KindNumber, "a chunk that does not fit under queue_limit is left to Fluent Bit's retry"))

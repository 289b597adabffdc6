package config

import "time"

// Sections is the option table. A new option is a row here; `make docs` then brings it
// into docs/configuration.md.
var Sections = []Section{
	{
		Title:   "Basics",
		Options: basicOptions,
	},
	{
		Title: "Topics and keys",
		Intro: "A field that names a topic, a key or a partition stays in the record. It is given as the name of a top-level" +
			" key, or as a record accessor (`$kubernetes['namespace_name']`). [routing.md](routing.md) has the rules and" +
			" examples.",
		Shapes:  true,
		Options: routingOptions,
	},
	{
		Title:   "Time",
		Intro:   "The time is put into the message value. The timestamp of the Kafka record is `message_timestamp`.",
		Shapes:  true,
		Options: timeOptions,
	},
	{
		Title:   "Kafka record",
		Intro:   "What a message has besides its key and its value. [routing.md](routing.md#the-kafka-record) has examples.",
		Shapes:  true,
		Options: recordOptions,
	},
	{
		Title:   "Tag and metadata in the value",
		Shapes:  true,
		Options: ownFieldOptions,
	},
	{
		Title:   "Formats",
		Intro:   "[formats.md](formats.md) shows a message of each format.",
		Shapes:  true,
		Options: formatOptions,
	},
	{
		Title: "Schema registry",
		Intro: "With `format avro`, unless the section has both `schema_str` and `schema_id`, the schema is fetched at the" +
			" start. Attempts follow `reconnect_backoff_min` and `reconnect_backoff_max`, each within `probe_timeout`, and" +
			" until one succeeds every flush is answered with a retry.",
		Options: registryOptions,
	},
	{
		Title: "Reconnect supervisor",
		Intro: "One backoff and one idle policy rule all connections of the section, in place of librdkafka's own." +
			" While all brokers are down every flush is answered with a retry at once.",
		Options: supervisorOptions,
	},
	{
		Title: "Delivery",
		Intro: "A chunk is reported as written only when the brokers have acknowledged all of it." +
			" What is not acknowledged in time comes back as a retry, and the retry collects the result.",
		Options: deliveryOptions,
	},
	{
		Title: "Dead letters",
		Intro: "A record that can never be written is set aside, so that its neighbours are: it goes to the targets that are" +
			" set here, and is counted and logged in any case: a line for each kind at most once a minute, whose `count` is how" +
			" many records it stands for. [dead-letter.md](dead-letter.md) tells which records those" +
			" are, what a letter holds and how to send it again.",
		Options: deadLetterOptions,
	},
	{
		Title: "Security",
		Intro: "TLS, logins and certificates are librdkafka's properties (`rdkafka.security.protocol`, `rdkafka.ssl.…`," +
			" `rdkafka.sasl.…`); [security.md](security.md) has a section for each kind. These keys are for what has none.",
		Options: securityOptions,
	},
	{
		Title:   "Metrics",
		Options: metricsOptions,
	},
	{
		Title: "Client properties",
		Intro: "Every property of librdkafka can be set as `rdkafka.<property>`, under any of its names, with the value" +
			" passed on unchanged (`$ConnectionString` too). librdkafka judges each value at the start and its reason is" +
			" in the error.",
		Options: clientOptions,
	},
}

var basicOptions = []Option{
	typed(Option{
		Name: "brokers", Aliases: []string{"bootstrap_servers", "bootstrap.servers"},
		Allowed: "[protocol://]host[:port], separated by commas",
		Doc:     "The brokers to ask first for the rest of the cluster; required.",
		Note: "`rdkafka.bootstrap.servers` replaces it and is enough alone. A protocol in front of a host must be that of" +
			" `rdkafka.security.protocol`.",
	}, KindList, func(c *Config) *string { return &c.Brokers }, parseBrokers, func(s string) string { return s }),
	typed(Option{
		Name: "topics", Aliases: []string{"topic"}, Default: "fluent-bit",
		Allowed: "Kafka topic names, separated by commas",
		Doc:     "The topics that may be written to; the first is the default topic.",
		Note:    "All records go to the default topic unless `topic_key` picks another one.",
	}, KindList, func(c *Config) *[]string { return &c.Topics }, parseTopics, joinList),
	choice(Option{
		Name: "format", Default: "json", Lenient: true,
		Doc: "The format of the message value.",
	}, formats, func(c *Config) *Format { return &c.Format }),
	text(Option{
		Name: "client_id", Aliases: []string{"client.id"}, Default: "fluent-bit",
		Doc: "The name under which the brokers log this client and count its quota.",
	}, func(c *Config) *string { return &c.ClientID }),
	yesNo(Option{
		Name: "strict", Default: "true",
		Doc: "Whether a section is refused for what the built-in output would silently ignore.",
		Note: "What that is stands [below](#strict). With `off` each of these is a warning, and the built-in output's way is" +
			" taken.",
	}, func(c *Config) *bool { return &c.Strict }),
	choice(Option{
		Name: "log_level", Default: "info",
		Doc: "How severe a line of this output must be to be logged: of this level or above.",
		Note: "Fluent Bit's core takes this key for itself and filters the lines of the section by it; the plugin" +
			" never sees it. Without it the `log_level` of `[SERVICE]` holds." +
			" The level of librdkafka's own lines is `rdkafka.log_level` (0 to 7).",
	}, logLevels, func(c *Config) *LogLevel { return &c.LogLevel }),
}

var timeOptions = []Option{
	yesNo(Option{
		Name: "add_timestamp", Default: "true",
		Doc:  "Whether the record's time is put into the message.",
		Note: "With `format json`, `msgpack` and `gelf`; the other formats never have it.",
	}, func(c *Config) *bool { return &c.AddTimestamp }),
	text(Option{
		Name: "timestamp_key", Default: "@timestamp",
		Doc: "The key under which the record's time is put in front of the record.",
	}, func(c *Config) *string { return &c.TimestampKey }),
	choice(Option{
		Name: "timestamp_format", Default: "double", Lenient: true,
		Doc: "How the time is written.",
		Note: "`double`: seconds since 1970 with six decimals. `iso8601`: UTC with microseconds, cut and not rounded." +
			" `iso8601_ns`: UTC with nanoseconds.",
	}, timestampFormats, func(c *Config) *TimestampFormat { return &c.TimestampFormat }),
}

var deadLetterOptions = []Option{
	typed(Option{
		Name:    "dead_letter_topic",
		Allowed: "a Kafka topic name that is not one of `topics`",
		Doc:     "The topic that dead letters go to, with the reason in their headers.",
		Note: "A letter that is larger than `rdkafka.message.max.bytes` is cut, as it would fit into no topic. Set" +
			" `dead_letter_file` for the whole of it.",
	}, KindText, func(c *Config) *string { return &c.DeadLetterTopic }, parseTopic, asIs),
	text(Option{
		Name: "dead_letter_file", Allowed: "the path of a file; a missing directory is made",
		Doc: "The file that dead letters go to, one JSON object a line.",
		Note: "Sections of the same Fluent Bit may share it. A file that can't be written to ends the start with an error; later" +
			" the letters, and their chunks with them, wait until it can. Without `state_path` a stop in that time has the" +
			" records beside them, which are delivered, written again after the start.",
	}, func(c *Config) *string { return &c.DeadLetterFile }),
	size(Option{
		Name: "dead_letter_file_limit", Default: "100MiB",
		Doc:  "The size at which `dead_letter_file` is rotated, rounded up to whole MiB.",
		Note: "The rotated file gets the time into its name: `dead-2026-03-01T12-00-00.000-size.jsonl`.",
	}, 16*mib, 100*gib, func(c *Config) *int64 { return &c.DeadLetterFileLimit }),
	number(Option{
		Name: "dead_letter_file_keep", Default: "5",
		Doc:  "How many rotated files are kept beside the current one; the oldest are removed.",
		Note: "`0` keeps all.",
	}, 0, 1000, func(c *Config) *int { return &c.DeadLetterFileKeep }),
	choice(Option{
		Name: "on_topic_error", Default: "retry",
		Doc: "What becomes of records whose topic does not exist or may not be written to.",
		Note: "`retry`: they wait until somebody mends it. `dead_letter`: they become dead letters, which needs" +
			" `dead_letter_topic` or `dead_letter_file`. `drop`: they are counted and gone.",
	}, topicErrorPolicies, func(c *Config) *TopicErrorPolicy { return &c.OnTopicError }),
	duration(Option{
		Name: "unknown_topic_wait", Default: "30s",
		Doc: "With `on_topic_error dead_letter` or `drop`: how long a topic must be unknown before that happens.",
		Note: "A topic that is just being created is unknown for a moment, and so is every topic while a cluster starts." +
			" It is checked about every two thirds of `stall_timeout` (10 s by default), and the first report takes as long.",
	}, 0, 24*time.Hour, func(c *Config) *time.Duration { return &c.UnknownTopicWait }),
}

var clientOptions = []Option{
	{
		Name: "rdkafka_options", Kind: KindList, Secret: true,
		Allowed: "name=value, separated by commas",
		Doc:     "Further librdkafka properties in one key, for names that this version of the plugin does not ask for.",
		Note:    "For commas inside a value see [below](#rdkafka_options).",
		// Read by readClientProperties, as it gives properties and not a field.
		set: func(*Config, string) error { return nil },
		get: func(*Config) string { return "" },
	},
}

// Short names for the bounds in the tables.
const (
	ms  = time.Millisecond
	sec = time.Second
	kib = int64(1) << 10
	mib = kib << 10
	gib = mib << 10
)

package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDecode_Defaults(t *testing.T) {
	got := *mustDecode(t, minimal)
	want := Config{
		Brokers:             "kafka:9092",
		Topics:              []string{"fluent-bit"},
		MaxDynamicTopics:    1000,
		Partitioner:         PartitionerConsistentRandom,
		Format:              FormatJSON,
		GELFShortMessageKey: "short_message",
		GELFFullMessageKey:  "full_message",
		GELFLevelKey:        "level",
		GELFHostKey:         "host",
		GELFTimestampKey:    "timestamp",
		SchemaVersion:       VersionLatest,
		AddTimestamp:        true,
		TimestampKey:        "@timestamp",
		TimestampFormat:     TimestampDouble,
		ClientID:            "fluent-bit",
		Strict:              true,
		LogLevel:            LogInfo,
		ReconnectBackoffMin: 100 * time.Millisecond,
		ReconnectBackoffMax: 5 * time.Second,
		ProbeTimeout:        5 * time.Second,
		IdlePolicy:          IdleKeepalive,
		IdleTimeout:         4 * time.Minute,
		KeepaliveInterval:   time.Minute,
		KeepaliveTimeout:    10 * time.Second,
		StallTimeout:        15 * time.Second,
		DeliveryWait:        10 * time.Second,
		DeliveryWaitEngine:  50 * time.Millisecond,
		QueueLimit:          64 << 20,
		ShutdownTimeout:     3 * time.Second,
		ReloadTimeout:       10 * time.Second,
		ReceiptTTL:          time.Hour,
		CustodyLimit:        256 << 20,
		OrderedWait:         time.Minute,
		DeadLetterFileLimit: 100 << 20,
		DeadLetterFileKeep:  5,
		OnTopicError:        TopicErrorRetry,
		UnknownTopicWait:    30 * time.Second,
	}
	got.properties, got.summary, got.keepaliveProbes = nil, "", false
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%+v\nwant:\n%+v", got, want)
	}
}

func TestDecode_Values(t *testing.T) {
	for _, test := range []struct {
		name string
		keys section
		get  func(*Config) any
		want any
	}{
		{"brokers trimmed", section{"brokers": " a:1 ,, b:2, a:1"}, func(c *Config) any { return c.Brokers }, "a:1,b:2"},
		{"brokers as bootstrap", section{"bootstrap_servers": "a"}, func(c *Config) any { return c.Brokers }, "a"},
		{"brokers as property", section{"rdkafka.bootstrap.servers": "a:1, b"}, func(c *Config) any { return c.Brokers }, "a:1, b"},
		{"brokers as old property", section{"rdkafka.metadata.broker.list": "a"}, func(c *Config) any { return c.Brokers }, "a"},
		{"brokers in catch-all", section{"rdkafka_options": `bootstrap.servers=a\,b`}, func(c *Config) any { return c.Brokers }, "a,b"},
		{"property replaces brokers", minimal.with("rdkafka.bootstrap.servers", "a"), func(c *Config) any { return c.Brokers }, "a"},
		{"brokers with protocol", section{"brokers": "SSL://[::1]:9093/x,ssl://h", "rdkafka.security.protocol": "ssl"}, func(c *Config) any { return c.Brokers }, "SSL://[::1]:9093/x,ssl://h"},
		{"brokers in IPv6", section{"brokers": "[::1]:9092,fe80::1,[::2]"}, func(c *Config) any { return c.Brokers }, "[::1]:9092,fe80::1,[::2]"},
		{"topics", minimal.with("topics", "a, b.c ,,d_e-F,a"), func(c *Config) any { return c.Topics }, []string{"a", "b.c", "d_e-F"}},
		{"topic", minimal.with("topic", "a"), func(c *Config) any { return c.Topics }, []string{"a"}},
		{"longest topic", minimal.with("topics", strings.Repeat("t", 249)), func(c *Config) any { return len(c.Topics[0]) }, 249},
		{"format in capitals", minimal.with("format", " JSON "), func(c *Config) any { return c.Format }, FormatJSON},
		{"key in capitals", section{"BROKERS": "a", "Topics": "b"}, func(c *Config) any { return c.Topics[0] }, "b"},
		{"time format", minimal.with("timestamp_format", "Iso8601"), func(c *Config) any { return c.TimestampFormat }, TimestampISO8601},
		{"time format ns", minimal.with("timestamp_format", "ISO8601_NS"), func(c *Config) any { return c.TimestampFormat }, TimestampISO8601NS},
		{"dynamic topic", minimal.with("dynamic_topic", "On", "topic_key", "t"), func(c *Config) any { return c.DynamicTopic }, true},
		{"no dynamic topic", minimal.with("dynamic_topic", "OFF"), func(c *Config) any { return c.DynamicTopic }, false},
		{"dynamic topics", minimal.with("max_dynamic_topics", " 7 "), func(c *Config) any { return c.MaxDynamicTopics }, 7},
		{"message key", minimal.with("message_key", " k "), func(c *Config) any { return []any{c.MessageKey, c.MessageKeySet} }, []any{" k ", true}},
		{"no message key", minimal, func(c *Config) any { return []any{c.MessageKey, c.MessageKeySet} }, []any{"", false}},
		{"message key field", minimal.with("message_key_field", "id"), func(c *Config) any { return c.MessageKeyField }, "id"},
		{"message key accessor", minimal.with("message_key_field", "$a['b'][0]"), func(c *Config) any { return c.MessageKeyField }, "$a['b'][0]"},
		{"message key template", minimal.with("message_key_template", " $a-%Y "), func(c *Config) any { return c.MessageKeyTemplate }, " $a-%Y "},
		{"topic template", minimal.with("topic_template", " a.$TAG[1].%Y%m "), func(c *Config) any { return c.TopicTemplate }, "a.$TAG[1].%Y%m"},
		{"partition field", minimal.with("partition_field", "p"), func(c *Config) any { return c.PartitionField }, "p"},
		{"partitioner", minimal.with("partitioner", "Murmur2_Random"), func(c *Config) any { v, _ := property(c, "partitioner"); return v }, "murmur2_random"},
		{"partitioner as property", minimal.with("rdkafka.partitioner", "fnv1a"), func(c *Config) any { v, _ := property(c, "partitioner"); return v }, "fnv1a"},
		{"message timestamp", minimal.with("message_timestamp", "EVENT"), func(c *Config) any { return c.MessageTimestamp }, MessageTimestampEvent},
		{"headers", minimal.with("headers", `a=1, b = x=y\, $TAG ,c=,,a=100%%`), func(c *Config) any { return c.Headers }, []Header{{"a", "1"}, {"b", "x=y, $TAG"}, {"c", ""}, {"a", "100%%"}}},
		{"headers key", minimal.with("headers_key", "$METADATA"), func(c *Config) any { return c.HeadersKey }, "$METADATA"},
		{"keys of the value", minimal.with("tag_key", "tag", "metadata_key", "$meta"), func(c *Config) any { return []any{c.TagKey, c.MetadataKey} }, []any{"tag", "$meta"}},
		{"topic key", minimal.with("topic_key", "t"), func(c *Config) any { return c.TopicKey }, "t"},
		{"time key", minimal.with("timestamp_key", "ts"), func(c *Config) any { return c.TimestampKey }, "ts"},
		{"client id", minimal.with("client.id", "me"), func(c *Config) any { return c.ClientID }, "me"},
		{"log level", minimal.with("log_level", "Trace"), func(c *Config) any { return c.LogLevel }, LogTrace},
		{"duration", minimal.with("reconnect_backoff_max", "1m30s"), func(c *Config) any { return c.ReconnectBackoffMax }, 90 * time.Second},
		{"duration in capitals", minimal.with("reconnect_backoff_max", "2S"), func(c *Config) any { return c.ReconnectBackoffMax }, 2 * time.Second},
		{"lowest duration", minimal.with("reconnect_backoff_min", "50ms"), func(c *Config) any { return c.ReconnectBackoffMin }, 50 * time.Millisecond},
		{"dotted", minimal.with("reconnect.backoff_min", "1s"), func(c *Config) any { return c.ReconnectBackoffMin }, time.Second},
		{"dotted policy", minimal.with("reconnect.idle_policy", "Close"), func(c *Config) any { return c.IdlePolicy }, IdleClose},
		{"dotted wait", minimal.with("reconnect.delivery_wait", "1s"), func(c *Config) any { return c.DeliveryWait }, time.Second},
		{"dead-letter topic", minimal.with("dead_letter_topic", " dead "), func(c *Config) any { return c.DeadLetterTopic }, "dead"},
		{"dead-letter file", minimal.with("dead_letter_file", "/d/x.jsonl"), func(c *Config) any { return c.DeadLetterFile }, "/d/x.jsonl"},
		{"all dead letters", minimal.with("dead_letter_file", "x", "dead_letter_file_keep", "0"), func(c *Config) any { return c.DeadLetterFileKeep }, 0},
		{"dead letters by policy", minimal.with("dead_letter_file", "x", "on_topic_error", "Dead_Letter"), func(c *Config) any { return c.OnTopicError }, TopicErrorDeadLetter},
		{"drop at once", minimal.with("on_topic_error", "drop", "unknown_topic_wait", "0s"), func(c *Config) any { return []any{c.OnTopicError, c.UnknownTopicWait} }, []any{TopicErrorDrop, time.Duration(0)}},
		{"never wait", minimal.with("delivery_wait_engine", "0s"), func(c *Config) any { return c.DeliveryWaitEngine }, time.Duration(0)},
		{"policy keep", minimal.with("idle_policy", "keep"), func(c *Config) any { return c.IdlePolicy }, IdleKeep},
		{"size in MB", minimal.with("queue_limit", "100mb"), func(c *Config) any { return c.QueueLimit }, int64(100e6)},
		{"size in MiB", minimal.with("queue_limit", "100 MiB"), func(c *Config) any { return c.QueueLimit }, int64(100 << 20)},
		{"TCP keepalive", minimal.with("keepalive_interval", "30s"), func(c *Config) any { return c.TCPKeepalive() }, 30 * time.Second},
		{"no TCP keepalive", minimal.with("idle_policy", "close"), func(c *Config) any { return c.TCPKeepalive() }, time.Duration(0)},
		{"TCP keepalive off", minimal.with("rdkafka.socket.keepalive.enable", "false"), func(c *Config) any { return c.TCPKeepalive() }, time.Duration(0)},
		{"metrics off", minimal, func(c *Config) any { return c.MetricsListen }, ""},
		{"metrics port", minimal.with("metrics_listen", " 9308 "), func(c *Config) any { return c.MetricsListen }, "127.0.0.1:9308"},
		{"metrics colon port", minimal.with("metrics_listen", ":9308"), func(c *Config) any { return c.MetricsListen }, "127.0.0.1:9308"},
		{"metrics host", minimal.with("metrics_listen", "LocalHost:9308"), func(c *Config) any { return c.MetricsListen }, "localhost:9308"},
		{"metrics for all", minimal.with("metrics_listen", "0.0.0.0:1"), func(c *Config) any { return c.MetricsListen }, "0.0.0.0:1"},
		{"metrics in IPv6", minimal.with("metrics_listen", "[::1]:65535"), func(c *Config) any { return c.MetricsListen }, "[::1]:65535"},
		{"same twice", minimal.with("idle_policy", "keep", "reconnect.idle_policy", "keep"), func(c *Config) any { return c.IdlePolicy }, IdleKeep},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.get(mustDecode(t, test.keys)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v: got %#v, want %#v", test.keys, got, test.want)
			}
		})
	}
}

// warningCase is a section that is accepted with warnings.
type warningCase struct {
	name string
	keys section
	want []string
}

var warnings = []warningCase{
	{"none", minimal, nil},
	{"queue_full_retries", section{"queue_full_retries": "no"}, []string{
		"queue_full_retries has no effect: a chunk that does not fit under queue_limit is left to Fluent Bit's retry",
	}},
	{"group_id", section{"group_id": "g"}, []string{
		"group_id has no effect: it is about consumer groups, which an output has none of",
	}},
	{"gelf key without gelf", section{"gelf_level_key": "l", "strict": "off"}, []string{
		"gelf_level_key has no effect with format json",
	}},
	{"JSON keys with gelf", section{"format": "gelf", "timestamp_key": "t", "json_invalid_utf8": "refuse"}, []string{
		"timestamp_key has no effect with format gelf",
		"json_invalid_utf8 has no effect with format gelf",
	}},
	{"time with raw", section{"format": "raw", "raw_log_key": "log", "add_timestamp": "off", "timestamp_format": "double"}, []string{
		"timestamp_format has no effect with format raw",
		"add_timestamp has no effect with format raw",
	}},
	{"own fields with formats that have none", section{"format": "gelf", "tag_key": "@timestamp", "metadata_key": "@timestamp"}, []string{
		"tag_key has no effect with format gelf",
		"metadata_key has no effect with format gelf",
	}},
	{"tag in the place of the time", section{"add_timestamp": "off", "tag_key": "@timestamp"}, nil},
	{"tag with msgpack", section{"format": "msgpack", "tag_key": "tag", "metadata_key": "meta"}, nil},
	{"routing with raw", section{"format": "raw", "raw_log_key": "log", "topic_template": "$a", "headers": "a=$a"}, nil},
	{"time switched off", section{"format": "msgpack", "add_timestamp": "no", "timestamp_key": "t"}, []string{
		"timestamp_key has no effect with add_timestamp false",
	}},
	{"password without user", section{
		"format": "avro", "schema_registry_url": "http://r", "schema_id": "7",
		"schema_registry_version": "2", "schema.registry.http.password": "geheim", "strict": "off",
	}, []string{
		"schema_registry_version has no effect without schema_registry_subject",
		"schema.registry.http.password has no effect without schema_registry_http_user",
	}},
	{"two logins, two schemas", section{
		"format": "avro", "schema_registry_url": "http://r", "schema_registry_subject": "s",
		"schema_str": "{}", "schema_registry_http_user": "u", "schema_registry_bearer_token": "geheim",
		"strict": "off",
	}, []string{
		"schema_str has no effect without schema_id: the schema is fetched",
		"schema_registry_bearer_token has no effect beside schema_registry_http_user",
	}},
	{"schema at hand", section{"format": "avro", "schema_str": "{}", "schema_id": "7"}, nil},
	{"otlp key without otlp", section{"otlp_logs_partition_by_resource": "on", "strict": "off"}, []string{
		"otlp_logs_partition_by_resource has no effect with format json",
	}},
	{"otlp", section{"format": "OTLP_Proto", "otlp_logs_partition_by_resource": "on"}, nil},
	{"otlp with routing", section{
		"format": "otlp_json", "topics": "a,b", "topic_key": "k", "dynamic_topic": "on", "message_key_field": "f", "message_key": "m",
		"add_timestamp": "off",
	}, []string{
		"add_timestamp has no effect with format otlp_json",
		"topic_key has no effect with format otlp_json",
		"dynamic_topic has no effect with format otlp_json",
		"message_key_field has no effect with format otlp_json",
	}},
	{"otlp without topic_key", section{"format": "otlp_json", "topics": "a,b", "dynamic_topic": "on"}, []string{
		"dynamic_topic has no effect with format otlp_json",
		`topics names 2 topics, but without topic_key all records go to the first, "a"`,
	}},
	{"otlp by resource, with a key", section{"format": "otlp_json", "otlp_logs_partition_by_resource": "on", "message_key": "m"}, []string{
		"message_key has no effect with otlp_logs_partition_by_resource",
	}},
	{"switched off", section{"aws_msk_iam": "off"}, nil},
	{"ARN alone", section{"aws_msk_iam_cluster_arn": arn}, []string{
		"aws_msk_iam_cluster_arn has no effect without aws_msk_iam true",
	}},
	{"IAM", section{"aws_msk_iam": "on", "aws_msk_iam_cluster_arn": arn}, nil},
	{"several topics", section{"topics": "a,b"}, []string{
		`topics names 2 topics, but without topic_key all records go to the first, "a"`,
	}},
	{"several topics with key", section{"topics": "a,b", "topic_key": "k"}, nil},
	{"dynamic topic without key", section{"dynamic_topic": "yes", "strict": "off"}, []string{"dynamic_topic has no effect without topic_key"}},
	{"several topics with a template", section{"topics": "a,b", "topic_template": "$x"}, nil},
	{"dynamic topic with a template", section{"topic_template": "$x", "dynamic_topic": "on"}, []string{
		"dynamic_topic has no effect with topic_template, which may name any topic",
	}},
	{"two partitioners", section{"partitioner": "random", "rdkafka.partitioner": "murmur2"}, []string{
		"partitioner is not applied: rdkafka.partitioner replaces it",
	}},
	{"idle timeout without close", section{"reconnect.idle_timeout": "1m"}, []string{
		"reconnect.idle_timeout has no effect with idle_policy keepalive",
	}},
	{"keepalive without keepalive", section{"idle_policy": "close", "keepalive_interval": "5s", "keepalive_timeout": "1s"}, []string{
		"keepalive_interval has no effect with idle_policy close",
		"keepalive_timeout has no effect with idle_policy close",
	}},
	{"dead-letter file settings without a file", section{
		"dead_letter_topic": "d", "dead_letter_file_limit": "1GiB", "dead_letter_file_keep": "9", "unknown_topic_wait": "1m",
	}, []string{
		"dead_letter_file_limit has no effect without dead_letter_file",
		"dead_letter_file_keep has no effect without dead_letter_file",
		"unknown_topic_wait has no effect with on_topic_error retry",
	}},
	{"dead letters", section{
		"dead_letter_topic": "d", "dead_letter_file": "/x", "on_topic_error": "dead_letter", "unknown_topic_wait": "1m",
	}, nil},
	{"stall before wait", section{"stall_timeout": "5s"}, []string{
		"stall_timeout 5s is not above delivery_wait 10s: a connection can be shut while a flush still waits for it",
	}},
	{"short receipts", section{"receipt_ttl": "30m"}, []string{
		"receipt_ttl 30m is below the 2000s that Fluent Bit may wait before a retry (scheduler.cap):" +
			" a chunk that comes back later is written twice",
	}},
	{"acks 0", section{"rdkafka.request.required.acks": "0"}, []string{
		`rdkafka.request.required.acks "0" switches idempotence off, which needs acks all:` +
			" a connection that breaks can double what was in flight",
		"rdkafka.request.required.acks 0: the brokers acknowledge nothing, so records can be lost and nobody notices",
	}},
	{"consumer", section{"rdkafka.auto.offset.reset": "nonsense", "rdkafka.group.id": "g"}, []string{
		"rdkafka.group.id is not applied: it is for consumers, and this is a producer",
		"rdkafka.auto.offset.reset is not applied: it is for consumers, and this is a producer",
	}},
	{"two broker lists", section{"rdkafka.bootstrap.servers": "b"}, []string{
		"brokers is not applied: rdkafka.bootstrap.servers replaces it",
	}},
	{"mock", section{"rdkafka.test.mock.num.brokers": "3"}, []string{
		"rdkafka.test.mock.num.brokers: records go to a mock cluster inside this process and nowhere else",
	}},
	{"owned", section{"rdkafka.reconnect.backoff.ms": "5", "rdkafka_options": "log.queue=true"}, []string{
		"rdkafka.reconnect.backoff.ms is not applied: the supervisor rules the pace of attempts; use reconnect_backoff_min",
		"rdkafka_options: log.queue is not applied: the plugin brings librdkafka's lines into Fluent Bit's log itself",
	}},
	{"finite message timeout", section{"rdkafka.message.timeout.ms": "60000"}, nil},
}

func TestDecode_Warnings(t *testing.T) {
	for _, test := range warnings {
		t.Run(test.name, func(t *testing.T) {
			keys := minimal.with()
			for k, v := range test.keys {
				keys[k] = v
			}
			sameLines(t, "warnings", mustDecode(t, keys).Warnings, test.want)
		})
	}
}

func TestSummary(t *testing.T) {
	for _, test := range []struct {
		keys section
		want string
	}{
		{minimal, "brokers=kafka:9092"},
		{minimal.with("topics", "fluent-bit", "reconnect_backoff_min", "0.1s", "format", "Json"), "brokers=kafka:9092"},
		{
			minimal.with("topics", "a,b", "idle_policy", "KEEP", "queue_limit", "1gib", "dynamic_topic", "on", "topic_key", "a b"),
			`brokers=kafka:9092 topics=a,b topic_key="a b" dynamic_topic=true idle_policy=keep queue_limit=1GiB`,
		},
		{
			minimal.with("headers", `a=$TAG, b=x\,y\\z`, "partitioner", "murmur2"),
			`brokers=kafka:9092 partitioner=murmur2 headers="a=$TAG,b=x\\,y\\\\z"`,
		},
		{minimal.with("client_id", "user:pw@host"), "brokers=kafka:9092 client_id=***"},
		{
			minimal.with("strict", "off", "rdkafka_options", "sasl.password=x, linger.ms=5", "rdkafka.acks", "all"),
			"brokers=kafka:9092 strict=false rdkafka.acks=all rdkafka.sasl.password=*** rdkafka.linger.ms=5",
		},
		{section{"rdkafka.bootstrap.servers": "b", "rdkafka.reconnect.backoff.ms": "1"}, "brokers=b"},
	} {
		if got := mustDecode(t, test.keys).Summary(); got != test.want {
			t.Errorf("%v:\ngot  %s\nwant %s", test.keys, got, test.want)
		}
	}
}

func TestEnums_OutOfRange(t *testing.T) {
	for _, got := range []string{Format(9).String(), TimestampFormat(9).String(), IdlePolicy(9).String(), LogLevel(9).String()} {
		if got != "unknown" {
			t.Errorf("got %q, want unknown", got)
		}
	}
}

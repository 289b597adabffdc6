package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// verdicts are texts of librdkafka 2.11.1, as it gave them.
var verdicts = library{
	features: bundled,
	files: map[string]string{
		"/etc/kafka/ca.pem":     "can't be read: no such file or directory",
		"/etc/kafka/ca.jks":     "holds no certificate in PEM: it is a key store of Java",
		"/etc/kafka/client.key": "can't be read: permission denied",
		"/etc/kafka":            "is a folder, and a file is needed",
		"/geheim/password":      "can't be read: no such file or directory",
		"/etc/passwort":         "is empty",
		"/etc/registry.pem":     "holds no certificate in PEM",
	},
	refuse: map[string]string{
		"queue.buffering.max.ms=abc":       `Invalid value for configuration property "queue.buffering.max.ms"`,
		"queue.buffering.max.ms=9999999":   "Configuration property \"queue.buffering.max.ms\" value 1e+07 is outside allowed range 0..900000\n",
		"compression.codec=zz":             `Invalid value "zz" for configuration property "compression.codec"`,
		"security.protocol=tls":            `Invalid value "tls" for configuration property "security.protocol"`,
		"dr_cb=x":                          `Property "dr_cb" must be set through dedicated .._set_..() function`,
		"socket.keepalive.enable=yes":      `Expected bool value for "socket.keepalive.enable": true or false`,
		"sasl.password=open sesame, sadly": `Invalid value for configuration property "sasl.password": open sesame, sa`,
		"sasl.password=" + otherText:       `Invalid value for configuration property "sasl.password": ` + otherText,
		"ssl.key.password=kafka":           "Keys are not supported, see https://github.com/confluentinc/librdkafka/wiki",
		"ssl.key.password=" + otherText:    "Keys are not supported, see https://github.com/confluentinc/librdkafka/wiki",
		"sasl.oauthbearer.config=short":    "No, short",
	},
}

// faultCase is a section that is refused: the keys go into the minimal section.
type faultCase struct {
	name string
	keys section
	want []string
}

var sectionFaults = []faultCase{
	{"no brokers", section{"brokers": ""}, []string{
		"brokers: is not set; write host:port of at least one broker, for example kafka-1:9092",
	}},
	{"empty brokers", section{"brokers": " , "}, []string{
		`brokers: " , " names no broker; write host:port of at least one`,
	}},
	{"empty bootstrap servers", section{"brokers": "", "rdkafka.bootstrap.servers": ","}, []string{
		`rdkafka.bootstrap.servers: "," names no broker; write host:port of at least one`,
	}},
	{"port", section{"brokers": "a:9092,b:kafka"}, []string{
		`brokers: "a:9092,b:kafka" has no port between 1 and 65535 in "b:kafka"`,
	}},
	{"port range", section{"brokers": "", "bootstrap.servers": "[::1]:70000"}, []string{
		`bootstrap.servers: "[::1]:70000" has no port between 1 and 65535 in "[::1]:70000"`,
	}},
	{"protocol", section{"brokers": "SASL_SSL://a:1"}, []string{
		`brokers: "SASL_SSL://a:1" has the protocol of "SASL_SSL://a:1", but security.protocol is plaintext`,
	}},
	{"semicolon between brokers", section{"brokers": "a:1;b:2"}, []string{
		`brokers: "a:1;b:2" has "a:1;b:2", which is no [protocol://]host[:port]; brokers are separated by commas`,
	}},
	{"blank between brokers", section{"brokers": "", "rdkafka.bootstrap.servers": "a:1, b:2 c:3"}, []string{
		`rdkafka.bootstrap.servers: "a:1, b:2 c:3" has "b:2 c:3", which is no [protocol://]host[:port]; brokers are separated by commas`,
	}},
	{"user in brokers", section{"brokers": "me:geheim@a:1"}, []string{
		"brokers: *** names a user; that belongs into rdkafka.sasl.username and rdkafka.sasl.password",
	}},
	{"topics", section{"topics": "ok,a b,..,ä"}, []string{
		`topics: "ok,a b,..,ä" has names that Kafka refuses:` +
			` "a b" (a topic name consists of letters a-z, digits, '.', '_' and '-'),` +
			` ".." (a topic is never called "." or ".."),` +
			` "ä" (a topic name consists of letters a-z, digits, '.', '_' and '-')`,
	}},
	{"long topic", section{"topics": strings.Repeat("t", 250)}, []string{
		`topics: "` + strings.Repeat("t", 80) + `…" has names that Kafka refuses: "` + strings.Repeat("t", 80) +
			`…" (a topic name has at most 249 characters)`,
	}},
	{"password in the wrong key", section{"format": "me:geheim@host", "topics": "https://me:geheim@host"}, []string{
		`topics: *** has names that Kafka refuses: *** (a topic name consists of letters a-z, digits, '.', '_' and '-')`,
		`format: *** is unknown; allowed: json, msgpack, gelf, raw, avro, otlp_json, otlp_proto`,
	}},
	{"no topic", section{"topics": ","}, []string{`topics: "," names no topic`}},
	{"unknown format", section{"format": "xml"}, []string{`format: "xml" is unknown; allowed: json, msgpack, gelf, raw, avro, otlp_json, otlp_proto`}},
	{"time format", section{"timestamp_format": "rfc3339"}, []string{
		`timestamp_format: "rfc3339" is unknown; allowed: double, iso8601, iso8601_ns`,
	}},
	{"policy", section{"reconnect.idle_policy": "sleep"}, []string{
		`reconnect.idle_policy: "sleep" is unknown; allowed: keepalive, close, keep`,
	}},
	{"log level", section{"log_level": "loud"}, []string{
		`log_level: "loud" is unknown; allowed: error, warn, info, debug, trace`,
	}},
	{"boolean", section{"dynamic_topic": "1", "topic_key": "k"}, []string{
		`dynamic_topic: "1" is neither true nor false; allowed: true, on, yes, false, off, no`,
	}},
	{"number", section{"max_dynamic_topics": "many"}, []string{`max_dynamic_topics: "many" is not a whole number`}},
	{"number below", section{"max_dynamic_topics": "0"}, []string{
		`max_dynamic_topics: "0" is below 1; allowed: 1 to 100000`,
	}},
	{"number above", section{"max_dynamic_topics": "100001"}, []string{
		`max_dynamic_topics: "100001" is above 100000; allowed: 1 to 100000`,
	}},
	{"duration", section{"reconnect.backoff_min": "5x"}, []string{
		`reconnect.backoff_min: "5x" is not a duration; use a number and a unit such as 500ms, 2s or 1m30s`,
	}},
	{"bare number", section{"reconnect_backoff_min": "100"}, []string{
		`reconnect_backoff_min: "100" has no unit; write 100ms or 100s`,
	}},
	{"bare zero", section{"delivery_wait_engine": "0"}, []string{`delivery_wait_engine: "0" has no unit; write 0ms or 0s`}},
	{"long number", section{"probe_timeout": "1000000000000"}, []string{
		`probe_timeout: "1000000000000" has no unit; write for example 500ms or 2s`,
	}},
	{"backoff below", section{"reconnect_backoff_min": "49ms"}, []string{
		`reconnect_backoff_min: "49ms" is below 50ms; allowed: 50ms to 10m`,
	}},
	{"negative", section{"idle_timeout": "-1s"}, []string{`idle_timeout: "-1s" is below 1s; allowed: 1s to 24h`}},
	{"engine wait", section{"delivery_wait_engine": "2s"}, []string{
		`delivery_wait_engine: "2s" is above 1s; allowed: 0s to 1s`,
	}},
	{"metrics port 0", section{"metrics_listen": "0"}, []string{
		`metrics_listen: "0" is not an address to listen at; allowed: port, :port or host:port, with a port from 1 to 65535`,
	}},
	{"metrics port range", section{"metrics_listen": "127.0.0.1:65536"}, []string{
		`metrics_listen: "127.0.0.1:65536" is not an address to listen at; allowed: port, :port or host:port, with a port from 1 to 65535`,
	}},
	{"metrics without a port", section{"metrics_listen": "localhost"}, []string{
		`metrics_listen: "localhost" is not an address to listen at; allowed: port, :port or host:port, with a port from 1 to 65535`,
	}},
	{"metrics bare IPv6", section{"metrics_listen": "::1"}, []string{
		`metrics_listen: "::1" is not an address to listen at; allowed: port, :port or host:port, with a port from 1 to 65535`,
	}},
	{"metrics URL", section{"metrics_listen": "http://localhost:9308"}, []string{
		`metrics_listen: "http://localhost:9308" is not an address to listen at; allowed: port, :port or host:port, with a port from 1 to 65535`,
	}},
	{"metrics wildcard", section{"metrics_listen": "*:9308"}, []string{
		`metrics_listen: "*:9308" is not an address to listen at; allowed: port, :port or host:port, with a port from 1 to 65535`,
	}},
	{"metrics word", section{"metrics_listen": "on"}, []string{
		`metrics_listen: "on" is not an address to listen at; allowed: port, :port or host:port, with a port from 1 to 65535`,
	}},
	{"size", section{"queue_limit": "64XB"}, []string{
		`queue_limit: "64XB" is not a size; use a number and a unit such as 64MiB or 500MB`,
	}},
	{"bare size", section{"queue_limit": "64"}, []string{`queue_limit: "64" is below 1MiB; allowed: 1MiB to 64GiB`}},
	{"huge size", section{"queue_limit": "9999999999999GiB"}, []string{`queue_limit: "9999999999999GiB" is too large`}},
	{"backoff order", section{"reconnect_backoff_min": "3s", "reconnect.backoff_max": "2s"}, []string{
		`reconnect_backoff_min: "3s" is above reconnect.backoff_max 2s`,
	}},
	{"backoff above default", section{"reconnect_backoff_min": "10s"}, []string{
		`reconnect_backoff_min: "10s" is above reconnect_backoff_max 5s (the default)`,
	}},
	{"backoff max below default", section{"reconnect_backoff_max": "60ms"}, []string{
		`reconnect_backoff_max: "60ms" contradicts reconnect_backoff_min 100ms (the default), which is above it`,
	}},
	{"no noise after a bad value", section{"reconnect_backoff_max": "60ms", "reconnect_backoff_min": "x"}, []string{
		`reconnect_backoff_min: "x" is not a duration; use a number and a unit such as 500ms, 2s or 1m30s`,
	}},
	{"accessor without a name", section{"topic_key": "$"}, []string{
		`topic_key: "$" has a "$" without a name; a field is written $name or $['name'], the sign itself $$`,
	}},
	{"accessor with a dot", section{"message_key_field": "$kubernetes.pod_name"}, []string{
		`message_key_field: "$kubernetes.pod_name" does not end behind "$kubernetes"; a sub-key is written ['pod_name']`,
	}},
	{"accessor without its end", section{"partition_field": "$a['b'"}, []string{
		`partition_field: "$a['b'" has no ] behind "$a['b'"`,
	}},
	{"tag as a field", section{"headers_key": "$TAG"}, []string{
		`headers_key: "$TAG" names the tag, which only templates can hold; a key that begins like it is written $['TAG…']`,
	}},
	{"date in a template", section{"topic_template": "logs-%Q"}, []string{
		`topic_template: "logs-%Q" has a "%" that begins no date; allowed behind it: Y, y, m, d, j, H, M, S, G, V, F, s and %`,
	}},
	{"braces in a template", section{"topic_template": "logs-{tag}-$a"}, []string{
		`topic_template: "logs-{tag}-$a" holds "logs-{tag}-", which no topic can` +
			` (a topic name consists of letters a-z, digits, '.', '_' and '-')`,
	}},
	{"fixed template", section{"topic_template": "logs"}, []string{
		`topic_template: "logs" has nothing that differs from record to record; for a fixed topic use topics`,
	}},
	{"two topics", section{"topic_template": "$a", "topic_key": "a"}, []string{
		`topic_template: "$a" contradicts topic_key; keep one of them`,
	}},
	{"two keys", section{"message_key_template": "$a$b", "message_key_field": "a"}, []string{
		`message_key_template: "$a$b" contradicts message_key_field; keep one of them`,
	}},
	{"name that ends in _", section{"message_key_template": "$a_$b"}, []string{
		`message_key_template: "$a_$b" has the name "a_", which ends in "_"; write $['a']_ or $['a_'] to tell which is meant`,
	}},
	{"partitioner", section{"partitioner": "sticky"}, []string{
		`partitioner: "sticky" is unknown; allowed: random, consistent, consistent_random, murmur2, murmur2_random, fnv1a, fnv1a_random`,
	}},
	{"message timestamp", section{"message_timestamp": "now"}, []string{
		`message_timestamp: "now" is unknown; allowed: produce, event`,
	}},
	{"headers without a value", section{"headers": "a=1,b"}, []string{
		`headers: "a=1,b" has an item 2 that is not name=value; a comma inside a value is written "\,"`,
	}},
	{"headers without a name", section{"headers": "=1"}, []string{
		`headers: "=1" has an item 1 that is not name=value; a comma inside a value is written "\,"`,
	}},
	{"no headers", section{"headers": ","}, []string{`headers: "," names no header`}},
	{"header template", section{"headers": "a=50%"}, []string{
		`headers: "a=50%" has a value for "a" that has a "%" that begins no date;` +
			` allowed behind it: Y, y, m, d, j, H, M, S, G, V, F, s and %`,
	}},
	{"one key for two without time", section{"add_timestamp": "off", "format": "msgpack", "tag_key": "k", "metadata_key": "k"}, []string{
		`metadata_key: "k" is also the tag_key; a key can stand for one thing only`,
	}},
	{"one key for two", section{"tag_key": "@timestamp", "metadata_key": "@timestamp"}, []string{
		`tag_key: "@timestamp" is also the timestamp_key; a key can stand for one thing only`,
		`metadata_key: "@timestamp" is also the timestamp_key; a key can stand for one thing only`,
	}},
	{"dead-letter topic", section{"dead_letter_topic": "a b"}, []string{
		`dead_letter_topic: "a b" is a name that Kafka refuses (a topic name consists of letters a-z, digits, '.', '_' and '-')`,
	}},
	{"dead letters among records", section{"topic": "a,b", "dead_letter_topic": "b"}, []string{
		`dead_letter_topic: "b" is one of topic; dead letters need a topic of their own`,
	}},
	{"dead letters in the default topic", section{"dead_letter_topic": "fluent-bit"}, []string{
		`dead_letter_topic: "fluent-bit" is one of topics; dead letters need a topic of their own`,
	}},
	{"dead letters without a target", section{"on_topic_error": "DEAD_LETTER"}, []string{
		`on_topic_error: "DEAD_LETTER" needs dead_letter_topic or dead_letter_file`,
	}},
	{"dead letters to a bad target", section{"on_topic_error": "dead_letter", "dead_letter_topic": "ä"}, []string{
		`dead_letter_topic: "ä" is a name that Kafka refuses (a topic name consists of letters a-z, digits, '.', '_' and '-')`,
	}},
	{"topic error policy", section{"on_topic_error": "ignore"}, []string{
		`on_topic_error: "ignore" is unknown; allowed: retry, dead_letter, drop`,
	}},
	{"dead-letter bounds", section{
		"dead_letter_file": "x", "dead_letter_file_limit": "1MiB", "dead_letter_file_keep": "-1",
		"on_topic_error": "drop", "unknown_topic_wait": "25h",
	}, []string{
		`dead_letter_file_limit: "1MiB" is below 16MiB; allowed: 16MiB to 100GiB`,
		`dead_letter_file_keep: "-1" is below 0; allowed: 0 to 1000`,
		`unknown_topic_wait: "25h" is above 24h; allowed: 0s to 24h`,
	}},
	{"waits", section{"delivery_wait": "200ms", "delivery_wait_engine": "300ms"}, []string{
		`delivery_wait_engine: "300ms" is above delivery_wait 200ms`,
	}},
	{"heartbeats", section{"keepalive_interval": "5s"}, []string{
		`keepalive_interval: "5s" contradicts keepalive_timeout 10s (the default), which is not below it`,
	}},
	{"twice", section{"idle_policy": "keep", "reconnect.idle_policy": "close"}, []string{
		`reconnect.idle_policy: is also set as idle_policy, to another value; keep one of them`,
	}},
	{"OTLP", section{"format": "otlp", "otlp_logs_partition_by_resource": "yes please"}, []string{
		`format: "otlp" is unknown; allowed: json, msgpack, gelf, raw, avro, otlp_json, otlp_proto`,
		`otlp_logs_partition_by_resource: "yes please" is neither true nor false; allowed: true, on, yes, false, off, no`,
	}},
	{"raw without key", section{"format": "raw"}, []string{"raw_log_key: is not set, and format raw needs it"}},
	{"text options of JSON", section{"json_escape_unicode": "maybe", "json_invalid_utf8": "hide", "add_timestamp": "0"}, []string{
		`add_timestamp: "0" is neither true nor false; allowed: true, on, yes, false, off, no`,
		`json_escape_unicode: "maybe" is neither true nor false; allowed: true, on, yes, false, off, no`,
		`json_invalid_utf8: "hide" is unknown; allowed: replace, remove, refuse`,
	}},
	{"avro without schema", section{"format": "Avro"}, []string{
		`format: "Avro" needs schema_str and schema_id, or schema_registry_url`,
	}},
	{"avro without number", section{"format": "avro", "schema_str": "{}"}, []string{
		"schema_id: is not set, and schema_str needs it; or set schema_registry_url to fetch the schema",
	}},
	{"avro with a registry only", section{"format": "avro", "schema.registry.url": "http://r:8081"}, []string{
		"schema.registry.url: needs schema_registry_subject or schema_id, to know which schema to fetch",
	}},
	{"schema number", section{"format": "avro", "schema_id": "2147483648"}, []string{
		`schema_id: "2147483648" is above 2147483647; allowed: 0 to 2147483647`,
	}},
	{"schema version", section{"schema.registry.version": "0"}, []string{
		`schema.registry.version: "0" is no version; allowed: latest, or a number from 1`,
	}},
	{"framing", section{"serializer.framing": "none"}, []string{`serializer.framing: "none" is unknown; allowed: cp1`}},
	{"user in the registry's address", section{"schema.registry.url": "http://u:pw@r"}, []string{
		"schema.registry.url: *** names a user; that belongs into schema_registry_http_user and schema_registry_http_passwd",
	}},
	{"registry's address", section{"schema_registry_url": "http://r, r:8081"}, []string{
		`schema_registry_url: "http://r, r:8081" has "r:8081", which is no http or https address`,
	}},
	{"token in the registry's address", section{"schema_registry_url": "http://r/?token=geheim"}, []string{
		"schema_registry_url: *** has a query; a token belongs into schema_registry_bearer_token",
	}},
	{"no address of a registry", section{"schema_registry_url": ","}, []string{
		`schema_registry_url: "," names no address; write for example http://registry:8081`,
	}},
}

func TestDecode_Faults(t *testing.T) {
	for _, test := range sectionFaults {
		t.Run(test.name, func(t *testing.T) { checkFaults(t, test.keys, test.want) })
	}
}

var clientFaults = []faultCase{
	{"librdkafka's text", section{"rdkafka.linger.ms": "abc"}, []string{
		`rdkafka.linger.ms: "abc" is refused by librdkafka:` +
			` Invalid value for configuration property "queue.buffering.max.ms"`,
	}},
	{"without line break", section{"rdkafka.linger.ms": "9999999"}, []string{
		`rdkafka.linger.ms: "9999999" is refused by librdkafka:` +
			` Configuration property "queue.buffering.max.ms" value 1e+07 is outside allowed range 0..900000`,
	}},
	{"callback", section{"rdkafka.dr_cb": "x"}, []string{
		`rdkafka.dr_cb: "x" is refused by librdkafka: Property "dr_cb" must be set through dedicated .._set_..() function`,
	}},
	{"unit", section{"rdkafka.message.timeout.ms": "30s"}, []string{
		`rdkafka.message.timeout.ms: "30s" is not a whole number;` +
			` librdkafka takes no units and would drop what follows the digits`,
	}},
	{"unit of a float", section{"rdkafka.linger.ms": "30s"}, []string{
		`rdkafka.linger.ms: "30s" is not a number; librdkafka takes no units and would drop what follows the digits;` +
			` a fraction is written with a point`,
	}},
	{"comma in a float", section{"rdkafka.queue.buffering.max.ms": "0,5"}, []string{
		`rdkafka.queue.buffering.max.ms: "0,5" is not a number; librdkafka takes no units and would drop what follows the digits;` +
			` a fraction is written with a point`,
	}},
	{"range", section{"rdkafka.retries": "3000000000", "rdkafka.batch.size": "99999999999999999999"}, []string{
		`rdkafka.retries: "3000000000" is out of the range of a 32-bit number`,
		`rdkafka.batch.size: "99999999999999999999" is out of the range of a 32-bit number`,
	}},
	{"only errors", section{"rdkafka.delivery.report.only.error": "True"}, []string{
		`rdkafka.delivery.report.only.error: "True" is refused: without a report for each record nobody knows what was written`,
	}},
	{"transactions", section{"rdkafka.transactional.id": "0"}, []string{
		`rdkafka.transactional.id: "0" is refused: transactions are not supported`,
	}},
	{"plugins", section{"rdkafka.plugin.library.paths": "x.so"}, []string{
		`rdkafka.plugin.library.paths: "x.so" is refused:` +
			` a librdkafka plugin would call Fluent Bit's own librdkafka and not this one`,
	}},
	{"unit tests", section{"rdkafka_options": "ut_handle_ProduceResponse=x"}, []string{
		`rdkafka_options: "ut_handle_ProduceResponse": *** is refused: it is for librdkafka's own unit tests`,
	}},
	{"unknown name", section{"rdkafka_options": "linger.msec=5"}, []string{
		`rdkafka_options: "linger.msec": *** is refused by librdkafka: No such configuration property: "linger.msec"`,
	}},
	{"items", section{"rdkafka_options": "debug=broker,topic, =x, linger.ms="}, []string{
		`rdkafka_options: item 2: is not name=value; a comma inside a value is written "\,"`,
		`rdkafka_options: item 3: is not name=value; a comma inside a value is written "\,"`,
		`rdkafka_options: linger.ms: has no value; an environment variable that is not set gives none`,
	}},
	{"comma in a password", section{
		"rdkafka_options": "sasl.password=ab,cdef=gh, ij, sasl.username=me", "rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.mechanism": "PLAIN",
	}, []string{
		`rdkafka_options: item 2: *** is refused by librdkafka:` +
			` No such configuration property: "***"; a comma inside a value is written "\,"`,
		`rdkafka_options: item 3: is not name=value; a comma inside a value is written "\,"`,
	}},
	{"comma in an unknown password", section{"rdkafka_options": "new.password=ab,cdef=gh"}, []string{
		`rdkafka_options: "new.password": *** is refused by librdkafka: No such configuration property: "new.password"`,
		`rdkafka_options: item 2: *** is refused by librdkafka:` +
			` No such configuration property: "***"; a comma inside a value is written "\,"`,
	}},
	{"secret in librdkafka's text", section{"rdkafka.sasl.password": "open sesame, sadly"}, []string{
		`rdkafka.sasl.password: *** is refused by librdkafka: Invalid value for configuration property "sasl.password": ***`,
	}},
	{"twice", section{"rdkafka.acks": "1", "rdkafka_options": "REQUEST.required.acks=all"}, []string{
		`rdkafka_options: request.required.acks: is also set as rdkafka.acks, to another value; keep one of them`,
	}},
	{"idempotence", section{"rdkafka.enable.idempotence": "true", "rdkafka.acks": "1"}, []string{
		`rdkafka.acks: "1" contradicts rdkafka.enable.idempotence true, which needs acks all`,
	}},
	{"no mechanism", section{"rdkafka.security.protocol": "SASL_SSL"}, []string{
		`rdkafka.sasl.mechanism: is not set and means GSSAPI then, which needs a librdkafka with Kerberos and this one has` +
			` none; set it to one of: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER`,
	}},
	{"GSSAPI", section{"rdkafka.sasl.mechanisms": "GSSAPI"}, []string{
		`rdkafka.sasl.mechanisms: "GSSAPI" needs a librdkafka with Kerberos, and this one has none; use another login,` +
			` or the built-in kafka output; allowed: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER`,
	}},
	{"mechanism in small letters", section{"rdkafka.sasl.mechanism": "plain"}, []string{
		`rdkafka.sasl.mechanism: "plain" is unknown; allowed, in capitals: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER`,
	}},
	{"no credentials", section{"rdkafka.security.protocol": "sasl_plaintext", "rdkafka.sasl.mechanism": "SCRAM-SHA-512"}, []string{
		"rdkafka.sasl.username: is not set, and the login needs it; an environment variable that is not set gives none",
		"rdkafka.sasl.password: is not set, and the login needs it; an environment variable that is not set gives none",
	}},
	{"password twice", section{
		"rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.mechanism": "PLAIN", "rdkafka.sasl.username": "me",
		"rdkafka.sasl.password": "geheim", "sasl_password_file": "/run/secrets/password",
	}, []string{
		"sasl_password_file: contradicts rdkafka.sasl.password; keep one of them",
	}},
	{"password in place of its file", section{"sasl_password_file": "geheim"}, []string{"sasl_password_file: *** is no absolute path of a file"}},
	{"password in the address of the tokens", section{
		"rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.mechanism": "OAUTHBEARER", "rdkafka.sasl.oauthbearer.method": "oidc",
		"rdkafka.sasl.oauthbearer.token.endpoint.url": "https://me:geheim@login/token",
	}, []string{
		"rdkafka.sasl.oauthbearer.token.endpoint.url: *** names a user; a secret belongs into" +
			" rdkafka.sasl.oauthbearer.client.id and rdkafka.sasl.oauthbearer.client.secret",
	}},
	{"secret in the address of the tokens", section{
		"rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.mechanism": "OAUTHBEARER", "rdkafka.sasl.oauthbearer.method": "oidc",
		"rdkafka.sasl.oauthbearer.token.endpoint.url": "https://login/token?scope=logs&client_secret=geheim",
	}, []string{
		"rdkafka.sasl.oauthbearer.token.endpoint.url: *** has a query that may hold a secret, and librdkafka prints the address in its" +
			" errors; a secret belongs into rdkafka.sasl.oauthbearer.client.id and rdkafka.sasl.oauthbearer.client.secret; allowed in the" +
			" query: api-version, audience, client_id, grant_type, realm, resource, scope, tenant, version",
	}},
	{"words of a secret in librdkafka's text", section{
		"rdkafka.security.protocol": "ssl", "rdkafka.ssl.key.location": "/k", "rdkafka.ssl.certificate.location": "/c",
		"rdkafka.ssl.key.password": "kafka",
	}, []string{
		"rdkafka.ssl.key.password: *** is refused by librdkafka: Keys are not supported, see https://github.com/confluentinc/librdkafka/wiki",
	}},
	{"text with nothing but a secret", section{
		"rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.mechanism": "OAUTHBEARER", "rdkafka.sasl.oauthbearer.method": "oidc",
		"rdkafka.sasl.oauthbearer.config": "short",
	}, []string{"rdkafka.sasl.oauthbearer.config: *** is refused by librdkafka: ***"}},
	{"semicolons between properties", section{
		"rdkafka_options": "sasl.username=u; sasl.password=geheim, linger.ms=5 acks=1", "rdkafka.security.protocol": "sasl_ssl",
		"rdkafka.sasl.mechanism": "OAUTHBEARER", "rdkafka.sasl.oauthbearer.method": "oidc",
	}, []string{
		"rdkafka_options: sasl.username: has a further property in its value, sasl.password; items are separated by commas",
		"rdkafka_options: linger.ms: has a further property in its value, acks; items are separated by commas",
	}},
	{"no tokens", section{"rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.mechanism": "OAUTHBEARER"}, []string{
		`rdkafka.sasl.mechanism: "OAUTHBEARER" needs a source of tokens: set rdkafka.sasl.oauthbearer.method to oidc with the keys` +
			` of the server, or aws_msk_iam; for tests only there is rdkafka.enable.sasl.oauthbearer.unsecure.jwt`,
	}},
	{"key without its certificate", section{"rdkafka.security.protocol": "ssl", "rdkafka.ssl.key.location": "/k"}, []string{
		"rdkafka.ssl.key.location: has no effect without its certificate: set rdkafka.ssl.certificate.location (strict off: only a warning)",
	}},
	{"files of TLS", section{
		"rdkafka.security.protocol": "ssl", "rdkafka.ssl.ca.location": "/etc/kafka/ca.jks",
		"rdkafka.ssl.certificate.location": "/etc/kafka", "rdkafka.ssl.key.location": "/etc/kafka/client.key", "format": "xml",
	}, []string{
		`format: "xml" is unknown; allowed: json, msgpack, gelf, raw, avro, otlp_json, otlp_proto`,
		`rdkafka.ssl.key.location: "/etc/kafka/client.key" can't be read: permission denied`,
		`rdkafka.ssl.certificate.location: "/etc/kafka" is a folder, and a file is needed`,
		`rdkafka.ssl.ca.location: "/etc/kafka/ca.jks" holds no certificate in PEM: it is a key store of Java`,
	}},
	{"missing authorities", section{"strict": "off", "rdkafka.security.protocol": "ssl", "rdkafka.ssl.ca.location": "/etc/kafka/ca.pem"}, []string{
		`rdkafka.ssl.ca.location: "/etc/kafka/ca.pem" can't be read: no such file or directory`,
	}},
	{"files of a login", section{
		"rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.mechanism": "OAUTHBEARER", "rdkafka.sasl.oauthbearer.method": "oidc",
		"rdkafka.https.ca.location": "/etc/kafka/ca.pem", "sasl_oauthbearer_client_secret_file": "/etc/passwort",
	}, []string{
		`rdkafka.https.ca.location: "/etc/kafka/ca.pem" can't be read: no such file or directory`,
		`sasl_oauthbearer_client_secret_file: "/etc/passwort" is empty`,
	}},
	{"password with slashes in place of its file", section{
		"rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.mechanism": "PLAIN", "rdkafka.sasl.username": "u",
		"sasl_password_file": "/geheim/password",
	}, []string{"sasl_password_file: *** can't be read: no such file or directory"}},
	{"authorities of the registry", section{
		"format": "avro", "schema_id": "7", "schema_registry_url": "https://r", "schema_registry_ca_file": "/etc/registry.pem",
	}, []string{`schema_registry_ca_file: "/etc/registry.pem" holds no certificate in PEM`}},
	{"IAM without ARN", section{"aws_msk_iam": "true", "strict": "off"}, []string{
		`aws_msk_iam: "true" needs aws_msk_iam_cluster_arn, to know the region`,
	}},
	{"ARN of something else", section{"aws_msk_iam_cluster_arn": "arn:aws:s3:::logs"}, []string{
		`aws_msk_iam_cluster_arn: "arn:aws:s3:::logs" is no ARN of a cluster; allowed: arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/UUID`,
	}},
	{"IAM with another login", section{
		"aws_msk_iam": "true", "aws_msk_iam_cluster_arn": arn, "rdkafka.security.protocol": "SASL_PLAINTEXT",
		"rdkafka.sasl.mechanism": "SCRAM-SHA-512", "rdkafka.sasl.username": "me", "sasl_password_file": "/p",
	}, []string{
		`rdkafka.security.protocol: "SASL_PLAINTEXT" contradicts aws_msk_iam, which needs sasl_ssl`,
		`rdkafka.sasl.mechanism: "SCRAM-SHA-512" contradicts aws_msk_iam, which needs OAUTHBEARER`,
	}},
	{"IAM with another source of tokens", section{
		"aws_msk_iam": "true", "aws_msk_iam_cluster_arn": arn,
		"rdkafka.sasl.oauthbearer.method": "oidc", "rdkafka.enable.sasl.oauthbearer.unsecure.jwt": "true",
	}, []string{
		`rdkafka.sasl.oauthbearer.method: "oidc" contradicts aws_msk_iam, which needs the method default`,
		`rdkafka.enable.sasl.oauthbearer.unsecure.jwt: "true" contradicts aws_msk_iam, which needs it to be false`,
	}},
}

func TestDecode_ClientFaults(t *testing.T) {
	for _, test := range clientFaults {
		t.Run(test.name, func(t *testing.T) { checkFaults(t, test.keys, test.want) })
	}
}

// checkFaults decodes the minimal section with the given keys.
func checkFaults(t *testing.T, keys section, want []string) {
	t.Helper()
	all := minimal.with()
	for k, v := range keys {
		all[k] = v
	}
	c, err := Decode(all, verdicts)
	if err == nil || c != nil {
		t.Fatalf("Decode(%v) = %v, %v; want an error alone", all, c, err)
	}
	var lines []string
	for _, w := range want {
		lines = append(lines, "config: "+w)
	}
	sameLines(t, "faults", strings.Split(err.Error(), "\n"), lines)
}

func TestDecode_AllFaultsAtOnce(t *testing.T) {
	checkFaults(t, section{
		"brokers": "", "format": "xml", "reconnect_backoff_min": "10", "aws_msk_iam": "on", "rdkafka.compression.codec": "zz",
	}, []string{
		`format: "xml" is unknown; allowed: json, msgpack, gelf, raw, avro, otlp_json, otlp_proto`,
		`reconnect_backoff_min: "10" has no unit; write 10ms or 10s`,
		`rdkafka.compression.codec: "zz" is refused by librdkafka:` +
			` Invalid value "zz" for configuration property "compression.codec"`,
		"brokers: is not set; write host:port of at least one broker, for example kafka-1:9092",
		`aws_msk_iam: "on" needs aws_msk_iam_cluster_arn, to know the region`,
	})
}

func TestDecode_GSSAPIWhereTheBuildHasIt(t *testing.T) {
	has := library{features: "ssl,sasl_gssapi,sasl_plain"}
	c, err := Decode(minimal.with("rdkafka.security.protocol", "sasl_ssl"), has)
	if err != nil || len(c.Warnings) > 0 {
		t.Errorf("got %v, %v; want no fault and no warning", c.Warnings, err)
	}
}

func TestDecode_WithoutChecker(t *testing.T) {
	c, err := Decode(minimal.with("rdkafka.sasl.mechanism", "GSSAPI", "rdkafka_options", "anything=1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := property(c, "anything"); !ok || v != "1" {
		t.Errorf("anything = %q, %t; want it handed over", v, ok)
	}
}

// A line of Fluent Bit's log ends at 4 KB.
func TestFaults_FitIntoOneLogLine(t *testing.T) {
	var items []string
	for i := range 300 {
		items = append(items, fmt.Sprintf("unknown.%d=%s", i, strings.Repeat("x", 200)))
	}
	keys := minimal.with(
		"rdkafka_options", strings.Join(items, ","),
		"topics", strings.Repeat(" bad topic\n,", 500),
		"format", "x"+strings.Repeat("ü", 5000),
	)
	_, err := Decode(keys, verdicts)
	if err == nil {
		t.Fatal("no error")
	}
	text := err.Error()
	if len(text) > 3900 {
		t.Errorf("the message has %d bytes", len(text))
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if !strings.HasPrefix(last, "config: and ") || !strings.HasSuffix(last, " more; mend these first") {
		t.Errorf("the last line is %q", last)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "config: ") {
			t.Errorf("a line begins with %q", line)
		}
	}
	if all, ok := errors.AsType[faults](err); !ok || len(all) != 302 || !errors.Is(err, all[7]) {
		t.Errorf("want 302 faults one by one")
	}
}

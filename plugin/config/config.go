package config

import (
	"slices"
	"time"
)

// Getter gives the text of one property of the section. The name is matched in any
// letter case, and an empty text means that the property is not set: both are Fluent
// Bit's rules, and it has no call that lists the names.
type Getter interface {
	Get(name string) string
}

// GetterFunc makes a Getter of a function.
type GetterFunc func(name string) string

// Get calls f.
func (f GetterFunc) Get(name string) string { return f(name) }

// Checker is the judgement of librdkafka, which this package can't have without cgo, and of
// the files that it reads.
type Checker interface {
	// CheckProperty says whether librdkafka takes the value for the property, and if
	// not, in librdkafka's words why.
	CheckProperty(name, value string) error
	// CheckFile says whether librdkafka can use the file that the property names, or that holds
	// its value, and if not, why: the error continues the sentence that begins with the path.
	CheckFile(name, path string) error
	// Features is the value of the property builtin.features: a comma-separated list.
	Features() string
}

// Property is one librdkafka property to set.
type Property struct {
	Name, Value string
	// File is where the value is read from at each opening of a client; empty means that Value is it.
	File string
	// Secret tells that the value must not be printed.
	Secret bool
}

// Config is one [OUTPUT] section. Durations and sizes lie within the bounds of their
// option; docs/configuration.md says what each means.
type Config struct {
	// Brokers is the bootstrap list, comma-separated: that of rdkafka.bootstrap.servers
	// if the section has one.
	Brokers string
	// Topics holds at least one topic; the first is the default topic.
	Topics []string
	// TopicKey is the field whose value picks the topic; empty means none. A field is the name
	// of a top-level key, or an accessor if it begins with "$".
	TopicKey string
	// TopicTemplate makes the topic; empty means that TopicKey does. Not both are set.
	TopicTemplate string
	// DynamicTopic allows topics that are not in Topics.
	DynamicTopic bool
	// MaxDynamicTopics bounds how many of those there may be.
	MaxDynamicTopics int
	// Format of the message value.
	Format Format

	// JSONEscapeUnicode writes text that is not ASCII as escapes with FormatJSON.
	JSONEscapeUnicode bool
	// JSONInvalidUTF8 says what FormatJSON does with bytes that are not UTF-8.
	JSONInvalidUTF8 InvalidUTF8
	// RawLogKey is the field that FormatRaw writes; not empty with it.
	RawLogKey string
	// The fields of the record that FormatGELF knows; none is empty.
	GELFShortMessageKey, GELFFullMessageKey, GELFLevelKey, GELFHostKey, GELFTimestampKey string
	// SchemaText and SchemaID are the schema of FormatAvro; if one is missing it is fetched.
	SchemaText string
	SchemaID   int
	// AvroUnknownFields says what becomes of fields that it has no name for.
	AvroUnknownFields UnknownFields
	// SchemaSubject and SchemaVersion say which schema is fetched; without a subject that of
	// SchemaID is. The version may be VersionLatest.
	SchemaSubject string
	SchemaVersion int
	framing       framing
	// OTLPPartitionByResource gives each resource messages and a key of its own, with a format
	// that bundles.
	OTLPPartitionByResource bool
	// RegistryURLs is where it is fetched; not empty if FormatAvro needs that.
	RegistryURLs []string
	// RegistryUser and RegistryPassword log in there, or else RegistryToken does.
	RegistryUser, RegistryPassword, RegistryToken string
	// RegistryCAFile is a file of authorities to trust; empty means those of the system.
	RegistryCAFile string

	// MessageKey is the literal key of every message; valid if MessageKeySet.
	MessageKey string
	// MessageKeySet tells a message key from none (which makes null keys).
	MessageKeySet bool
	// MessageKeyField is the field that gives the key; empty means none.
	MessageKeyField string
	// MessageKeyTemplate makes the key; empty means that MessageKeyField does. Not both are set.
	MessageKeyTemplate string
	// PartitionField is the field with the number of the partition; empty means none.
	PartitionField string
	// Partitioner chooses the partition otherwise.
	Partitioner Partitioner

	// MessageTimestamp says which time the Kafka record has.
	MessageTimestamp MessageTimestamp
	// Headers are on every message.
	Headers []Header
	// HeadersKey is the field with a map of further headers; empty means none.
	HeadersKey string
	// TagKey and MetadataKey are the keys under which tag and metadata are put into the value;
	// empty means not at all.
	TagKey, MetadataKey string

	// AddTimestamp puts the time into the value.
	AddTimestamp bool
	// TimestampKey is the key under which the time is put into the value.
	TimestampKey string
	// TimestampFormat is how it is written.
	TimestampFormat TimestampFormat

	// ClientID is what the brokers see in their logs and quotas.
	ClientID string
	// Strict made faults of what would be warnings otherwise; nothing else depends on it.
	Strict bool
	// LogLevel is informative only: Fluent Bit's core keeps the key to itself.
	LogLevel LogLevel

	// ReconnectBackoffMin is the first step of the backoff in an outage.
	ReconnectBackoffMin time.Duration
	// ReconnectBackoffMax bounds every wait of the backoff.
	ReconnectBackoffMax time.Duration
	// ProbeTimeout bounds one connection attempt, from TCP to the last login step.
	ProbeTimeout time.Duration
	// IdlePolicy says what happens to connections without traffic.
	IdlePolicy IdlePolicy
	// IdleTimeout is how long nothing must happen before IdleClose closes.
	IdleTimeout time.Duration
	// KeepaliveInterval is the time between heartbeats with IdleKeepalive.
	KeepaliveInterval time.Duration
	// KeepaliveTimeout is how long a heartbeat may stay unanswered; with
	// IdleKeepalive it is below KeepaliveInterval.
	KeepaliveTimeout time.Duration
	// StallTimeout is the age of the oldest unacknowledged record at which the
	// connection counts as dead.
	StallTimeout time.Duration

	// DeliveryWait bounds the wait of a flush that runs on a worker thread.
	DeliveryWait time.Duration
	// DeliveryWaitEngine bounds the wait of a flush on the engine thread; zero means
	// that such a flush never waits.
	DeliveryWaitEngine time.Duration
	// QueueLimit bounds the bytes in the client's queue, its overhead included.
	QueueLimit int64
	// ShutdownTimeout bounds closing the instance when Fluent Bit stops.
	ShutdownTimeout time.Duration
	// ReloadTimeout bounds the same at a hot reload.
	ReloadTimeout time.Duration
	// ReceiptTTL is how long the result of a chunk waits for its retry.
	ReceiptTTL time.Duration
	// CustodyLimit bounds the bytes that are taken over at a hot reload, on top of QueueLimit.
	CustodyLimit int64
	// StatePath is the directory for what must outlive the process; empty means nowhere.
	StatePath string
	// Ordered has one chunk at a time under way, in the order in which they came.
	Ordered bool
	// OrderedWait is how long a chunk that had to be refused is waited for.
	OrderedWait time.Duration

	// DeadLetterTopic and DeadLetterFile are where dead letters go; empty means not there.
	DeadLetterTopic, DeadLetterFile string
	// DeadLetterFileLimit is the size at which the file is rotated.
	DeadLetterFileLimit int64
	// DeadLetterFileKeep is how many rotated files are kept; zero keeps all.
	DeadLetterFileKeep int
	// OnTopicError says what becomes of records whose topic is unknown or denied. With
	// TopicErrorDeadLetter there is a target.
	OnTopicError TopicErrorPolicy
	// UnknownTopicWait is how long a topic must be unknown before OnTopicError applies to it.
	UnknownTopicWait time.Duration

	// SASLPasswordFile, OAuthSecretFile and KeyPasswordFile hold the value of a property; empty means that the section has it.
	SASLPasswordFile, OAuthSecretFile, KeyPasswordFile string
	// MSKIAM logs in with AWS IAM at the cluster of MSKClusterARN.
	MSKIAM        bool
	MSKClusterARN string

	// MetricsListen is host:port of the metrics; empty means that they are not served.
	MetricsListen string

	// Warnings are things in the section that are accepted but probably not meant.
	// Each is one line and starts with the key.
	Warnings []string

	// keepaliveProbes tells that socket.keepalive.enable is on.
	keepaliveProbes bool
	// properties is what Properties returns.
	properties []Property
	// summary is what Summary returns.
	summary string
}

// Properties lists what to set at librdkafka, in this order: what this plugin needs,
// replaced by the section's value where it has one, then the rest of the section's.
// No property appears twice, not even under another of its names.
func (c *Config) Properties() []Property { return slices.Clone(c.properties) }

// Summary is the section in one line for the start-up message: what differs from the
// defaults, as key=value, secrets as ***.
func (c *Config) Summary() string { return c.summary }

// TCPKeepalive is how long a connection must be silent before the kernel asks whether
// its peer is still there; 0 leaves that to the kernel's own setting. The heartbeats of
// IdleKeepalive go to one connection only, so the others rely on it.
func (c *Config) TCPKeepalive() time.Duration {
	if c.IdlePolicy != IdleKeepalive || !c.keepaliveProbes {
		return 0
	}
	return c.KeepaliveInterval
}

// Format is the shape of a message value.
type Format uint8

// The formats.
const (
	// FormatJSON is one JSON object.
	FormatJSON Format = iota
	// FormatMsgPack is one MessagePack map.
	FormatMsgPack
	// FormatGELF is the Graylog Extended Log Format.
	FormatGELF
	// FormatRaw is the text of one field.
	FormatRaw
	// FormatAvro is Avro's binary form behind the number of its schema.
	FormatAvro
	// FormatOTLPJSON is the OpenTelemetry protocol in JSON, many records a message.
	FormatOTLPJSON
	// FormatOTLPProto is the same in protobuf.
	FormatOTLPProto
)

var formats = []string{"json", "msgpack", "gelf", "raw", "avro", "otlp_json", "otlp_proto"}

// Bundles tells whether a message holds many records.
func (f Format) Bundles() bool { return f == FormatOTLPJSON || f == FormatOTLPProto }

// String gives the word used in the section.
func (f Format) String() string { return word(formats, f) }

// InvalidUTF8 says what becomes of bytes that are not UTF-8.
type InvalidUTF8 uint8

// The ways to treat them.
const (
	// InvalidReplace writes U+FFFD for each.
	InvalidReplace InvalidUTF8 = iota
	// InvalidRemove leaves them out.
	InvalidRemove
	// InvalidRefuse makes a dead letter of the record.
	InvalidRefuse
)

var invalidUTF8 = []string{"replace", "remove", "refuse"}

// String gives the word used in the section.
func (u InvalidUTF8) String() string { return word(invalidUTF8, u) }

// UnknownFields says what becomes of fields that a schema has no name for.
type UnknownFields uint8

// The ways to treat them.
const (
	// UnknownIgnore leaves them out of the message.
	UnknownIgnore UnknownFields = iota
	// UnknownReject makes a dead letter of the record.
	UnknownReject
)

var unknownFields = []string{"ignore", "reject"}

// String gives the word used in the section.
func (u UnknownFields) String() string { return word(unknownFields, u) }

// framing is what stands in front of an Avro message. There is one kind.
type framing uint8

var framings = []string{"cp1"}

// TimestampFormat is how a record's time is written into the message value.
type TimestampFormat uint8

// The time formats.
const (
	// TimestampDouble is seconds since the epoch with six decimals.
	TimestampDouble TimestampFormat = iota
	// TimestampISO8601 is UTC text with microseconds.
	TimestampISO8601
	// TimestampISO8601NS is UTC text with nanoseconds.
	TimestampISO8601NS
)

var timestampFormats = []string{"double", "iso8601", "iso8601_ns"}

// String gives the word used in the section.
func (f TimestampFormat) String() string { return word(timestampFormats, f) }

// Partitioner chooses the partition of a message that has none of its own.
type Partitioner uint8

// The partitioners, named as librdkafka names them.
const (
	PartitionerRandom Partitioner = iota
	PartitionerConsistent
	PartitionerConsistentRandom
	PartitionerMurmur2
	PartitionerMurmur2Random
	PartitionerFNV1a
	PartitionerFNV1aRandom
)

var partitioners = []string{"random", "consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"}

// String gives the word used in the section and by librdkafka.
func (p Partitioner) String() string { return word(partitioners, p) }

// MessageTimestamp says which time a Kafka record has.
type MessageTimestamp uint8

// The times.
const (
	// MessageTimestampProduce is when the client took the message.
	MessageTimestampProduce MessageTimestamp = iota
	// MessageTimestampEvent is the record's own.
	MessageTimestampEvent
)

var messageTimestamps = []string{"produce", "event"}

// String gives the word used in the section.
func (m MessageTimestamp) String() string { return word(messageTimestamps, m) }

// IdlePolicy says what happens to connections without traffic.
type IdlePolicy uint8

// The idle policies.
const (
	// IdleKeepalive sends heartbeats.
	IdleKeepalive IdlePolicy = iota
	// IdleClose closes, and connects again for the next record.
	IdleClose
	// IdleKeep does nothing.
	IdleKeep
)

var idlePolicies = []string{"keepalive", "close", "keep"}

// String gives the word used in the section.
func (p IdlePolicy) String() string { return word(idlePolicies, p) }

// TopicErrorPolicy says what becomes of a record whose topic an operator has to mend.
type TopicErrorPolicy uint8

// The policies for topic errors.
const (
	// TopicErrorRetry waits for the operator.
	TopicErrorRetry TopicErrorPolicy = iota
	// TopicErrorDeadLetter makes dead letters.
	TopicErrorDeadLetter
	// TopicErrorDrop drops.
	TopicErrorDrop
)

var topicErrorPolicies = []string{"retry", "dead_letter", "drop"}

// String gives the word used in the section.
func (p TopicErrorPolicy) String() string { return word(topicErrorPolicies, p) }

// LogLevel is the lowest level that is logged.
type LogLevel uint8

// The log levels, named as Fluent Bit names them.
const (
	LogError LogLevel = iota
	LogWarn
	LogInfo
	LogDebug
	LogTrace
)

var logLevels = []string{"error", "warn", "info", "debug", "trace"}

// String gives the word used in the section.
func (l LogLevel) String() string { return word(logLevels, l) }

// word is the text of an enumerated value, also of one out of range.
func word[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return "unknown"
}

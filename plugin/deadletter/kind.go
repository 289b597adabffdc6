package deadletter

import (
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// Kind says why a record can't be written. The text is the word in letters, metrics and logs.
type Kind string

// The kinds.
const (
	// None: the failure passes by itself, so the record is no dead letter.
	None Kind = ""
	// TooLarge: larger than the client or the topic allows.
	TooLarge Kind = "too_large"
	// IllegalTopic: the name is none that Kafka takes.
	IllegalTopic Kind = "illegal_topic"
	// UnknownTopic: the cluster has no such topic.
	UnknownTopic Kind = "unknown_topic"
	// TopicAuthorization: the login may not write to the topic, or lacks a right of the cluster for that.
	TopicAuthorization Kind = "topic_authorization"
	// InvalidTimestamp: outside of what the topic allows.
	InvalidTimestamp Kind = "invalid_timestamp"
	// RejectedByBroker: every other verdict on the record itself.
	RejectedByBroker Kind = "rejected_by_broker"
	// Undecodable: an entry of a chunk that is no record.
	Undecodable Kind = "undecodable"
	// Unencodable: a record that the format can't express.
	Unencodable Kind = "unencodable"
)

// Kinds lists every kind but None.
var Kinds = []Kind{
	TooLarge, IllegalTopic, UnknownTopic, TopicAuthorization, InvalidTimestamp, RejectedByBroker, Undecodable, Unencodable,
}

// OperatorCanFix tells the kinds that end when somebody mends the cluster: the record itself
// is good, and waiting for that is a choice (on_topic_error).
func (k Kind) OperatorCanFix() bool { return k == UnknownTopic || k == TopicAuthorization }

// kinds are the codes that have a kind of their own, as librdkafka and the Kafka protocol
// number them. The other verdicts on a record are known by their class.
var kinds = map[int]Kind{
	10:   TooLarge,
	18:   TooLarge, // the segment of the topic is smaller than the record
	17:   IllegalTopic,
	3:    UnknownTopic,
	-188: UnknownTopic, // as the client remembers it
	-190: UnknownTopic, // the topic lost the partition
	29:   TopicAuthorization,
	32:   InvalidTimestamp,
}

// codeInvalidArgument is what the client says to a topic name that it can't even ask for.
const codeInvalidArgument = -186

// KindOf tells what a failure makes of its record.
func KindOf(f reconnect.Failure) Kind {
	if k, ok := kinds[f.Code]; ok {
		return k
	}
	switch {
	case f.Refused && f.Code == codeInvalidArgument:
		return IllegalTopic
	case f.Class == fsm.ClassAuthorization:
		return TopicAuthorization
	case f.Class == fsm.ClassRecord:
		return RejectedByBroker
	}
	return None
}

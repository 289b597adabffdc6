package deadletter

import (
	"testing"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

func TestKindOf(t *testing.T) {
	for _, test := range []struct {
		name    string
		failure reconnect.Failure
		want    Kind
	}{
		{"client limit", reconnect.Failure{Code: 10, Class: fsm.ClassRecord, Refused: true}, TooLarge},
		{"segment limit", reconnect.Failure{Code: 18, Class: fsm.ClassRecord}, TooLarge},
		{"name refused by the broker", reconnect.Failure{Code: 17, Class: fsm.ClassRecord}, IllegalTopic},
		{"name refused by the client", reconnect.Failure{Code: -186, Class: fsm.ClassTransient, Refused: true}, IllegalTopic},
		{"invalid argument in a report", reconnect.Failure{Code: -186, Class: fsm.ClassTransient}, None},
		{"unknown topic", reconnect.Failure{Code: 3, Class: fsm.ClassTopic}, UnknownTopic},
		{"unknown topic in the client", reconnect.Failure{Code: -188, Class: fsm.ClassTopic, Refused: true}, UnknownTopic},
		{"unknown partition", reconnect.Failure{Code: -190, Class: fsm.ClassTopic}, UnknownTopic},
		{"topic denied", reconnect.Failure{Code: 29, Class: fsm.ClassAuthorization}, TopicAuthorization},
		{"cluster denied", reconnect.Failure{Code: 31, Class: fsm.ClassAuthorization}, TopicAuthorization},
		{"timestamp", reconnect.Failure{Code: 32, Class: fsm.ClassRecord}, InvalidTimestamp},
		{"policy", reconnect.Failure{Code: 44, Class: fsm.ClassRecord}, RejectedByBroker},
		{"invalid record", reconnect.Failure{Code: 87, Class: fsm.ClassRecord}, RejectedByBroker},
		{"purged", reconnect.Failure{Code: -152, Class: fsm.ClassTransient}, None},
		{"batch mate", reconnect.Failure{Code: -138, Class: fsm.ClassTransient}, None},
	} {
		if got := KindOf(test.failure); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestKind_OperatorCanFix(t *testing.T) {
	var fixable []Kind
	for _, k := range Kinds {
		if k.OperatorCanFix() {
			fixable = append(fixable, k)
		}
	}
	if len(fixable) != 2 || fixable[0] != UnknownTopic || fixable[1] != TopicAuthorization || None.OperatorCanFix() {
		t.Errorf("fixable: %q", fixable)
	}
}

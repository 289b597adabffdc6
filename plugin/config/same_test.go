package config

import (
	"slices"
	"testing"
)

func TestDestinationID(t *testing.T) {
	plain := mustDecode(t, minimal)
	// It names files: other text here means that state is not found after an upgrade.
	if got := plain.DestinationID(); got != "25a87a129b37c205" {
		t.Errorf("the identity of the plain section changed to %s", got)
	}
	for _, test := range []struct {
		name  string
		pairs []string
		same  bool
	}{
		{"other brokers", []string{"brokers", "elsewhere:9092"}, true},
		{"a default written out", []string{"timestamp_key", "@timestamp"}, true},
		{"how it connects", []string{"reconnect_backoff_max", "7s"}, true},
		{"another topic", []string{"topics", "other"}, false},
		{"another time format", []string{"timestamp_format", "iso8601"}, false},
		{"a message key", []string{"message_key", "k"}, false},
		{"larger messages", []string{"rdkafka.message.max.bytes", "2000000"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			other := mustDecode(t, minimal.with(test.pairs...))
			if same := other.DestinationID() == plain.DestinationID(); same != test.same {
				t.Errorf("same destination: %t", same)
			}
		})
	}
}

// Whoever has changed a section finds in it what to put back.
func TestDestinationSettings(t *testing.T) {
	c := mustDecode(t, minimal.with("topics", "a,b", "format", "otlp_json", "topic_key", "t", "headers", "from=http://u:pw@h", "tag_key", "x\ty"))
	want := []string{
		"topics a,b", "format otlp_json", "rdkafka.message.max.bytes 1000000", "topic_key t", "headers ***", `tag_key "x\ty"`,
	}
	if got := c.DestinationSettings(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Where a message of many records ends depends on how large it may be.
func TestDestinationID_Bundles(t *testing.T) {
	plain := mustDecode(t, minimal.with("format", "otlp_proto"))
	larger := mustDecode(t, minimal.with("format", "otlp_proto", "rdkafka.message.max.bytes", "2000000"))
	written := mustDecode(t, minimal.with("format", "otlp_proto", "rdkafka.message.max.bytes", "1000000"))
	if plain.DestinationID() == larger.DestinationID() || plain.DestinationID() != written.DestinationID() {
		t.Error("the size of a message is not part of the identity, or not with its default")
	}
}

func TestSameDestination_NeedsABrokerInCommon(t *testing.T) {
	a := mustDecode(t, section{"brokers": "a:1,b:1"})
	b := mustDecode(t, section{"brokers": "b:1,c:1"})
	c := mustDecode(t, section{"brokers": "c:1"})
	if !a.SameDestination(b) || !b.SameDestination(c) || a.SameDestination(c) {
		t.Error("a cluster is known by an address in common")
	}
}

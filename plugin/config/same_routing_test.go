package config

import "testing"

// What changes the bytes of a message or where it goes makes another destination: a record
// that was delivered with the old section must then be delivered with the new one too.
func TestSameDestination_Routing(t *testing.T) {
	for key, value := range map[string]string{
		"topic_template": "$a", "message_key_template": "$a", "partition_field": "p", "partitioner": "murmur2",
		"message_timestamp": "event", "headers": "a=1", "headers_key": "h", "tag_key": "t", "metadata_key": "m",
	} {
		a, b := mustDecode(t, minimal), mustDecode(t, minimal.with(key, value))
		if a.SameDestination(b) || b.SameDestination(a) {
			t.Errorf("%s %s is the same destination as without", key, value)
		}
		if again := mustDecode(t, minimal.with(key, value)); !b.SameDestination(again) {
			t.Errorf("%s %s differs from itself", key, value)
		}
	}
}

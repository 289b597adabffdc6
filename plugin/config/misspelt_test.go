package config

import (
	"slices"
	"testing"
)

// misspelt are keys with one slip each. The built-in output does not start with them.
var misspelt = []faultCase{
	{"separators", section{"topic-key": "t", "message.key": "k", "timestampkey": "ts"}, []string{
		"topic-key: is unknown; topic_key is probably meant",
		"message.key: is unknown; message_key is probably meant",
		"timestampkey: is unknown; timestamp_key is probably meant",
	}},
	{"letters", section{"Broker": "b", "dynamic_topics": "on", "message_keey": "k", "reconnect_bakcoff_min": "1s"}, []string{
		"broker: is unknown; brokers is probably meant",
		"dynamic_topics: is unknown; dynamic_topic is probably meant",
		"message_keey: is unknown; message_key is probably meant",
		"reconnect_bakcoff_min: is unknown; reconnect_backoff_min is probably meant",
	}},
}

func TestDecode_FindsMisspeltKeys(t *testing.T) {
	for _, test := range misspelt {
		t.Run(test.name, func(t *testing.T) { checkFaults(t, test.keys, test.want) })
	}
}

// Each is a call into the host at the start of a section, of less than a microsecond.
func TestSlips_AreNotTooMany(t *testing.T) {
	n := 0
	for range slips() {
		n++
	}
	if n > 25_000 {
		t.Errorf("%d questions", n)
	}
	t.Logf("%d questions", n)
}

func TestVariants(t *testing.T) {
	got := slices.Collect(variants("a_b"))
	slices.Sort(got)
	want := []string{"_b", "ab", "a_", "aa_b", "a__b", "a_bb", "_ab", "ab_", "a_bs", "a_b", "a.b", "a-b", "ab"}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func BenchmarkDecode(b *testing.B) {
	for b.Loop() {
		if _, err := Decode(minimal, nil); err != nil {
			b.Fatal(err)
		}
	}
}

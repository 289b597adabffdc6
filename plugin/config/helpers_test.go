package config

import (
	"strings"
	"testing"
)

// section is a Getter over a map, in any letter case as in Fluent Bit.
type section map[string]string

func (s section) Get(name string) string {
	for key, value := range s {
		if len(key) == len(name) && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// with returns a copy with further keys; the pairs are key, value, key, value, …
func (s section) with(pairs ...string) section {
	all := make(section, len(s)+len(pairs)/2)
	for k, v := range s {
		all[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// minimal is the smallest section.
var minimal = section{"brokers": "kafka:9092"}

// bundled is what the librdkafka in the Go client's module has.
const bundled = "gzip,snappy,ssl,sasl,regex,lz4,sasl_plain,sasl_scram,plugins,zstd,sasl_oauthbearer,http,oidc"

// refusal is a reason in librdkafka's words, which are not written as Go's errors are.
type refusal string

func (r refusal) Error() string { return string(r) }

// library stands for librdkafka: it refuses the values that it lists, and knows no
// names but those of rdkafka_names.txt and its own.
type library struct {
	features string
	refuse   map[string]string // "name=value" to the reason
	hidden   []string
	files    map[string]string // what is wrong with a path
}

func (l library) Features() string { return l.features }

func (l library) CheckFile(_, path string) error {
	if reason, ok := l.files[path]; ok {
		return refusal(reason)
	}
	return nil
}

func (l library) CheckProperty(name, value string) error {
	if reason, ok := l.refuse[name+"="+value]; ok {
		return refusal(reason)
	}
	if _, ok := propertyByName[name]; ok {
		return nil
	}
	for _, h := range l.hidden {
		if h == name {
			return nil
		}
	}
	return refusal(`No such configuration property: "` + name + `"`)
}

// mustDecode decodes a section that has no faults.
func mustDecode(t *testing.T, s section) *Config {
	t.Helper()
	c, err := Decode(s, library{features: bundled})
	if err != nil {
		t.Fatalf("Decode(%v):\n%v", s, err)
	}
	return c
}

// property finds the value that is handed over for a name.
func property(c *Config, name string) (value string, ok bool) {
	for _, p := range c.Properties() {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// sameLines compares two lists of lines and shows both when they differ.
func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

package config

import (
	"slices"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/config/configtest"
)

// Sections as people have them for the built-in output start, apart from what this one can't
// do; what is warned of and what librdkafka gets beyond our own defaults is in their heads.
// The test of the root package shows that librdkafka takes it.
func TestDecode_SectionsInTheWild(t *testing.T) {
	sections, err := configtest.Read("testdata/wild")
	if err != nil {
		t.Fatal(err)
	}
	plain := mustDecode(t, minimal)
	for _, s := range sections {
		t.Run(s.Name, func(t *testing.T) {
			if s.Plugin != "kafka" {
				t.Errorf("is for %q, not for the built-in output", s.Plugin)
			}
			c, err := Decode(s, library{features: bundled})
			if err != nil {
				sameLines(t, "faults", strings.Split(err.Error(), "\n"), prefixedLines("config: ", s.Refused))
				return
			}
			sameLines(t, "faults", nil, s.Refused)
			sameLines(t, "warnings", c.Warnings, s.Warnings)
			sameLines(t, "properties", beyond(c, plain, s), slices.Sorted(slices.Values(s.Properties)))
		})
	}
}

// prefixedLines puts a text in front of each line.
func prefixedLines(prefix string, lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, prefix+line)
	}
	return all
}

// beyond lists the properties that a section has and a plain one has not, but for those brokers
// that are in their own key.
func beyond(c, plain *Config, s *configtest.Section) []string {
	var lines []string
	for _, p := range c.Properties() {
		v, ok := property(plain, p.Name)
		if ok && v == p.Value || p.Name == "bootstrap.servers" && s.Get("rdkafka.bootstrap.servers") == "" {
			continue
		}
		lines = append(lines, p.Name+"="+p.Value)
	}
	slices.Sort(lines)
	return lines
}

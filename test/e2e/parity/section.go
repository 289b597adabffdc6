package parity

import (
	"fmt"
	"strings"
)

// A Section is the configuration that both outputs run with.
type Section struct {
	// Name is that of the default topic, and what the table calls it.
	Name string
	// Corpus names the records.
	Corpus string
	// Keys are lines of the section.
	Keys []Key
	// Ours are further lines for this plugin alone: it is to do by them what the built-in output does.
	Ours []Key
}

// A Key is a line of a section.
type Key struct{ Name, Value string }

// Topics are those that the section lists; the first is the default topic.
func (s *Section) Topics() []string {
	if topics := s.key("topics"); topics != "" {
		return strings.Split(topics, ",")
	}
	return []string{s.Name}
}

// Avro tells whether it takes a Fluent Bit that was built with Avro.
func (s *Section) Avro() bool { return s.format() == "avro" }

func (s *Section) format() string {
	if format := s.key("format"); format != "" {
		return strings.ToLower(format)
	}
	return "json"
}

// key returns the value of a key of both outputs.
func (s *Section) key(name string) string {
	for _, k := range s.Keys {
		if k.Name == name {
			return k.Value
		}
	}
	return ""
}

// Config returns the keys for one of the outputs, topics among them.
func (s *Section) Config(ours bool) []Key {
	keys := s.Keys
	if topics := s.Topics(); len(topics) == 1 && topics[0] == s.Name {
		keys = append([]Key{{"topics", s.Name}}, keys...)
	}
	if ours {
		keys = append(keys[:len(keys):len(keys)], s.Ours...)
	}
	return keys
}

// Sections returns all of them.
func Sections() []Section {
	var all []Section
	add := func(name, corpus string, keys ...string) *Section {
		s := Section{Name: name, Corpus: corpus}
		for _, line := range keys {
			key, value, ok := strings.Cut(line, " ")
			if !ok {
				panic(fmt.Sprintf("parity: %q is no key and value", line))
			}
			s.Keys = append(s.Keys, Key{key, value})
		}
		all = append(all, s)
		return &all[len(all)-1]
	}
	add("json", "plain")
	add("json-escaped", "plain").Ours = []Key{{"json_escape_unicode", "on"}}
	add("json-iso8601", "plain", "timestamp_format iso8601")
	add("json-iso8601-ns", "plain", "timestamp_format iso8601_ns", "timestamp_key v")
	add("msgpack", "plain", "format msgpack")
	add("msgpack-iso8601", "plain", "format msgpack", "timestamp_format iso8601", "timestamp_key time")
	add("msgpack-iso8601-ns", "plain", "format MsgPack", "timestamp_format iso8601_ns")
	add("gelf", "logged", "format gelf", "gelf_short_message_key log")
	add("gelf-messages", "messages", "format gelf", "gelf_short_message_key log")
	add("gelf-other-names", "messages", "format gelf", "gelf_short_message_key log", "gelf_host_key node", "gelf_timestamp_key at",
		"gelf_level_key severity", "gelf_full_message_key stack")
	add("raw", "messages", "format raw", "raw_log_key log")
	add("otlp-json", "plain", "format otlp_json")
	add("otlp-json-logged", "logged", "format otlp_json", "message_key fixed")
	add("otlp-json-resources", "resources", "format otlp_json")
	add("otlp-json-by-resource", "resources", "format otlp_json", "otlp_logs_partition_by_resource on", "message_key fixed")
	add("otlp-proto", "plain", "format otlp_proto")
	add("otlp-proto-logged", "logged", "format otlp_proto")
	add("otlp-proto-resources", "resources", "format otlp_proto", "topic_key log")
	add("otlp-proto-by-resource", "resources", "format otlp_proto", "otlp_logs_partition_by_resource on")
	add("message-key", "routed", "message_key fixed")
	add("message-key-field", "routed", "message_key_field key")
	add("both-keys", "routed", "message_key fixed", "message_key_field key", "topic_key topic")
	add("topic-key", "routed", "topics listed,first,second", "topic_key topic")
	add("dynamic-topic", "dynamic", "topics dynamic-routes,dynamic-second", "topic_key topic", "dynamic_topic on", "message_key_field key")
	add("dynamic-topic-raw", "dynamic-raw", "topics raw-routes", "topic_key key", "dynamic_topic on", "format raw", "raw_log_key mark")
	add("avro", typedCorpus, "format avro", "schema_id 258", "schema_str "+typedSchema)
	return all
}

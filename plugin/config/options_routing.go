package config

import (
	"errors"
	"fmt"
	"strings"

	"out_kafka_reconnect/plugin/accessor"
)

const (
	fieldAllowed    = "the name of a top-level key, or a record accessor such as $kubernetes['namespace_name']"
	templateAllowed = "text with $TAG, $TAG[1], $key, $key['sub'][0], $METADATA['key'], %Y and other elements of the date"
)

var routingOptions = []Option{
	field(Option{
		Name: "topic_key",
		Doc:  "The field whose text picks the topic, if it is one of `topics`.",
		Note: "The value must equal one of `topics` in every letter; any other value, or none, means the default topic.",
	}, func(c *Config) *string { return &c.TopicKey }),
	yesNo(Option{
		Name: "dynamic_topic", Default: "false",
		Doc:  "Whether `topic_key` may also pick a topic that is not one of `topics`.",
		Note: "Needs `topic_key`. The cluster must allow the creation of topics, or have them already.",
	}, func(c *Config) *bool { return &c.DynamicTopic }),
	typed(Option{
		Name: "topic_template", Allowed: templateAllowed,
		Doc: "The topic of each record, made of its tag, its fields and its date, for example `logs.$TAG[1].%Y-%m`.",
		Note: "In place of `topic_key`; the topic need not be one of `topics`. A record without one of the fields goes to the" +
			" default topic, and so does one whose topic would be none that Kafka takes.",
	}, KindText, func(c *Config) *string { return &c.TopicTemplate }, parseTopicTemplate, asIs),
	number(Option{
		Name: "max_dynamic_topics", Default: "1000",
		Doc: "How many topics `dynamic_topic` or `topic_template` may add; records for further ones go to the default topic.",
		Note: "librdkafka keeps every topic until the end of the client, so a key with ever new values would fill the" +
			" memory. With a date in `topic_template`, topics that no record has named for a day or two no longer count.",
	}, 1, 100_000, func(c *Config) *int { return &c.MaxDynamicTopics }),
	messageKey(Option{
		Name: "message_key",
		Doc:  "The literal key of every message.",
		Note: "A text, not the name of a field: that is `message_key_field`. Without any of the three messages have no key.",
	}),
	field(Option{
		Name: "message_key_field",
		Doc:  "The field whose text becomes the key; without it in a record `message_key` is taken.",
	}, func(c *Config) *string { return &c.MessageKeyField }),
	typed(Option{
		Name: "message_key_template", Allowed: templateAllowed,
		Doc: "The key of each message, made of tag, fields and date, for example `$host:$app`.",
		Note: "In place of `message_key_field`; a record without one of the fields gets `message_key`, and a line in the log" +
			" tells that there are such records.",
	}, KindText, func(c *Config) *string { return &c.MessageKeyTemplate }, parseTemplate, asIs),
	field(Option{
		Name: "partition_field",
		Doc:  "The field with the number of the partition; without it in a record `partitioner` chooses.",
		Note: "A whole number, or its digits as a text. For a value that is none, and for a number that the topic does not" +
			" have, `partitioner` chooses too, and a line in the log tells of it.",
	}, func(c *Config) *string { return &c.PartitionField }),
	choice(Option{
		Name: "partitioner", Default: "consistent_random",
		Doc: "How the partition is chosen from the key.",
		Note: "`murmur2_random` puts a key where Kafka's Java clients put it; the default does not. Those that end in `_random`" +
			" spread messages without a key, `consistent`, `murmur2` and `fnv1a` put them all into one partition, and `random`" +
			" ignores keys.",
	}, partitioners, func(c *Config) *Partitioner { return &c.Partitioner }),
}

var recordOptions = []Option{
	choice(Option{
		Name: "message_timestamp", Default: "produce",
		Doc: "The timestamp of the Kafka record: when it was produced, or when the event happened.",
		Note: "`event`: in milliseconds. Brokers refuse times that a topic does not allow (`message.timestamp.after.max.ms`:" +
			" an hour ahead of their clock), and a topic with `message.timestamp.type=LogAppendTime` replaces it.",
	}, messageTimestamps, func(c *Config) *MessageTimestamp { return &c.MessageTimestamp }),
	typed(Option{
		Name: "headers", Allowed: `name=value, separated by commas; a comma inside a value is written "\,"`,
		Doc: "Headers of every message; a value is " + templateAllowed + ".",
		Note: "For example `source=fluent-bit, tag=$TAG, ns=$kubernetes['namespace_name']`. A header is left out where the" +
			" record lacks a field of it. `$$` and `%%` stand for the signs themselves.",
	}, KindList, func(c *Config) *[]Header { return &c.Headers }, parseHeaders, formatHeaders),
	field(Option{
		Name: "headers_key",
		Doc:  "The field with a map whose entries become headers, behind those of `headers`.",
		Note: "`$METADATA` makes headers of the metadata. Texts are taken as they are, null is a null header, and other values" +
			" are written as JSON.",
	}, func(c *Config) *string { return &c.HeadersKey }),
}

var ownFieldOptions = []Option{
	text(Option{
		Name: "tag_key",
		Doc:  "The key under which the tag is put into the value, behind the time; not at all unless set.",
		Note: "With `format json` and `msgpack`. A record that has the key keeps its own value; in MessagePack it has both, its" +
			" own behind.",
	}, func(c *Config) *string { return &c.TagKey }),
	text(Option{
		Name: "metadata_key",
		Doc:  "The key under which the record's metadata is put into the value, behind the tag; not at all unless set.",
		Note: "As with `tag_key`; a record without metadata has no such key.",
	}, func(c *Config) *string { return &c.MetadataKey }),
}

// messageKey makes the row of message_key, which sets two fields.
func messageKey(o Option) Option {
	o = text(o, func(c *Config) *string { return &c.MessageKey })
	plain := o.set
	o.set = func(c *Config, value string) error {
		c.MessageKeySet = true
		return plain(c, value)
	}
	return o
}

// field makes a row that names a field of the record.
func field(o Option, at func(*Config) *string) Option {
	o.Allowed = fieldAllowed
	check := func(s string) (string, error) {
		if _, err := accessor.ParseField(s); err != nil {
			return "", err
		}
		return s, nil
	}
	return typed(o, KindText, at, check, asIs)
}

// parseTemplate checks a template and keeps its text.
func parseTemplate(text string) (string, error) {
	_, err := accessor.ParseTemplate(text)
	return text, err
}

// parseTopicTemplate checks also what can be known of a topic before there is a record.
func parseTopicTemplate(text string) (string, error) {
	text = strings.TrimSpace(text)
	t, err := accessor.ParseTemplate(text)
	if err != nil {
		return "", err
	}
	if t.Constant() {
		return "", errors.New("has nothing that differs from record to record; for a fixed topic use topics")
	}
	for _, p := range t {
		if p.Kind != accessor.Literal || p.Text == "." || p.Text == ".." {
			continue
		}
		if err := CheckTopic(p.Text); err != nil {
			return "", fmt.Errorf("holds %s, which no topic can (%w)", shown(p.Text), err)
		}
	}
	return text, nil
}

// Header is a header of every message. The value is a template.
type Header struct{ Name, Value string }

func parseHeaders(text string) ([]Header, error) {
	var headers []Header
	for i, item := range splitItems(text) {
		if item == "" {
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		h := Header{strings.TrimSpace(name), strings.TrimSpace(value)}
		if !ok || h.Name == "" {
			return nil, fmt.Errorf(`has an item %d that is not name=value; a comma inside a value is written "\,"`, i+1)
		}
		if _, err := accessor.ParseTemplate(h.Value); err != nil {
			return nil, fmt.Errorf("has a value for %s that %w", quote(h.Name), err)
		}
		headers = append(headers, h)
	}
	if len(headers) == 0 {
		return nil, errors.New("names no header")
	}
	return headers, nil
}

var escapeItem = strings.NewReplacer(`\`, `\\`, ",", `\,`)

// formatHeaders writes headers as parseHeaders reads them.
func formatHeaders(headers []Header) string {
	items := make([]string, len(headers))
	for i, h := range headers {
		items[i] = escapeItem.Replace(h.Name + "=" + h.Value)
	}
	return strings.Join(items, ",")
}

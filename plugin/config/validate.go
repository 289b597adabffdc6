package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fluentBitMaxWait is the longest that Fluent Bit waits before a retry, unless
// scheduler.cap says less.
const fluentBitMaxWait = 2000 * time.Second

// validate compares options with each other.
func (d *decoder) validate() {
	d.validateBrokers()
	d.validateSupervisor()
	d.validateFormat()
	d.validateRouting()
	d.validateDeadLetters()
	d.validateLogin()
	d.validateProtocol()
	d.validateFiles()
}

// validateBrokers makes sure that there is one, from either key.
func (d *decoder) validateBrokers() {
	c := d.cfg
	key := d.label("brokers")
	if p, ok := d.find("bootstrap.servers"); ok {
		if d.set("brokers") {
			d.warn(fmt.Sprintf("%s is not applied: %s replaces it", key, p.key))
		}
		c.Brokers, key = p.value, p.key
	} else if d.bad["brokers"] {
		return
	}
	if c.Brokers == "" {
		d.fault("brokers", "is not set; write host:port of at least one broker, for example kafka-1:9092")
		return
	}
	_, err := parseBrokers(c.Brokers)
	if err == nil {
		err = checkBrokers(c.Brokers, d.protocol())
	}
	if err != nil {
		d.fault(key, told(c.Brokers, false, err))
	}
}

// validateSupervisor looks at the times.
func (d *decoder) validateSupervisor() {
	c := d.cfg
	if c.ReconnectBackoffMin > c.ReconnectBackoffMax {
		d.conflict("reconnect_backoff_min", "is above", "reconnect_backoff_max")
	}
	if c.DeliveryWaitEngine > c.DeliveryWait {
		d.conflict("delivery_wait_engine", "is above", "delivery_wait")
	}
	if c.IdlePolicy == IdleKeepalive && c.KeepaliveTimeout >= c.KeepaliveInterval {
		d.conflict("keepalive_timeout", "is not below", "keepalive_interval")
	}
	if c.StallTimeout <= c.DeliveryWait && (d.set("stall_timeout") || d.set("delivery_wait")) {
		d.warn(fmt.Sprintf("%s %s is not above %s %s: a connection can be shut while a flush still waits for it",
			d.label("stall_timeout"), formatDuration(c.StallTimeout),
			d.label("delivery_wait"), formatDuration(c.DeliveryWait)))
	}
	if c.ReceiptTTL < fluentBitMaxWait {
		d.warn(fmt.Sprintf("%s %s is below the 2000s that Fluent Bit may wait before a retry"+
			" (scheduler.cap): a chunk that comes back later is written twice",
			d.label("receipt_ttl"), formatDuration(c.ReceiptTTL)))
	}
	d.onlyWith("idle_timeout", IdleClose)
	d.onlyWith("keepalive_interval", IdleKeepalive)
	d.onlyWith("keepalive_timeout", IdleKeepalive)
}

// conflict notes that two options contradict each other. One that the section does not
// set stands there with its default, which the message says.
func (d *decoder) conflict(a, relation, b string) {
	if d.bad[a] || d.bad[b] {
		return
	}
	value := func(name string) string {
		i := slices.IndexFunc(Options(), func(o Option) bool { return o.Name == name })
		v := Options()[i].get(d.cfg)
		if !d.set(name) {
			v += " (the default)"
		}
		return v
	}
	if !d.set(a) {
		// Blame the key that is in the section.
		d.fault(d.label(b), fmt.Sprintf("%s contradicts %s %s, which %s it", shown(d.text[b]), a, value(a), relation))
		return
	}
	d.fault(d.label(a), fmt.Sprintf("%s %s %s %s", shown(d.text[a]), relation, d.label(b), value(b)))
}

// onlyWith warns of an option that its idle policy would need.
func (d *decoder) onlyWith(name string, policy IdlePolicy) {
	if d.set(name) && d.cfg.IdlePolicy != policy && !d.bad["idle_policy"] {
		d.warn(fmt.Sprintf("%s has no effect with idle_policy %s", d.label(name), d.cfg.IdlePolicy))
	}
}

// validateFormat makes sure that the format has what it needs, and warns of what it does
// not look at.
func (d *decoder) validateFormat() {
	c := d.cfg
	if d.bad["format"] {
		return
	}
	for _, n := range needs {
		if slices.Contains(n.formats, c.Format) {
			continue
		}
		// Whoever sets an option of other formats than the default one means one of those.
		note := d.oversight
		if slices.Contains(n.formats, FormatJSON) {
			note = d.hint
		}
		for _, name := range n.names {
			if d.set(name) && !d.bad[name] {
				note(d.label(name), "has no effect with format "+c.Format.String())
			}
		}
	}
	if c.Format == FormatJSON || c.Format == FormatMsgPack {
		d.validateOwnFields()
	}
	if c.OTLPPartitionByResource && c.Format.Bundles() && d.set("message_key") {
		d.warn(d.label("message_key") + " has no effect with otlp_logs_partition_by_resource")
	}
	switch c.Format {
	case FormatRaw:
		if c.RawLogKey == "" {
			d.fault("raw_log_key", "is not set, and format raw needs it")
		}
	case FormatAvro:
		d.validateSchema()
	default: // the other formats need nothing
	}
}

// validateOwnFields looks at the keys of the fields that the value has besides the record's.
func (d *decoder) validateOwnFields() {
	names := []string{"tag_key", "metadata_key"}
	if d.cfg.AddTimestamp {
		names = append([]string{"timestamp_key"}, names...)
	} else {
		for _, name := range []string{"timestamp_key", "timestamp_format"} {
			if d.set(name) {
				d.warn(d.label(name) + " has no effect with add_timestamp false")
			}
		}
	}
	d.distinctKeys(names...)
}

// validateSchema makes sure that there is a schema, or a way to get it.
func (d *decoder) validateSchema() {
	c := d.cfg
	if d.bad["schema_id"] || d.bad["schema_registry_url"] {
		return
	}
	switch {
	case c.SchemaText != "" && c.SchemaID > 0:
		return
	case c.RegistryURLs == nil && c.SchemaText != "":
		d.fault("schema_id", "is not set, and schema_str needs it; or set schema_registry_url to fetch the schema")
		return
	case c.RegistryURLs == nil:
		d.fault(d.label("format"), shown(d.text["format"])+" needs schema_str and schema_id, or schema_registry_url")
		return
	case c.SchemaSubject == "" && c.SchemaID == 0:
		d.fault(d.label("schema_registry_url"), "needs schema_registry_subject or schema_id, to know which schema to fetch")
		return
	case c.SchemaText != "":
		d.oversight(d.label("schema_str"), "has no effect without schema_id: the schema is fetched")
	}
	if c.SchemaSubject == "" && d.set("schema_registry_version") {
		d.oversight(d.label("schema_registry_version"), "has no effect without schema_registry_subject")
	}
	if c.RegistryUser == "" && d.set("schema_registry_http_passwd") {
		d.oversight(d.label("schema_registry_http_passwd"), "has no effect without schema_registry_http_user")
	}
	if c.RegistryUser != "" && d.set("schema_registry_bearer_token") {
		d.oversight(d.label("schema_registry_bearer_token"), "has no effect beside schema_registry_http_user")
	}
}

// validateRouting looks for routing that can't happen, and for keys that exclude each other.
func (d *decoder) validateRouting() {
	c := d.cfg
	d.warnOfSlash()
	d.exclusive("topic_template", "topic_key")
	d.exclusive("message_key_template", "message_key_field")
	if p, ok := d.find("partitioner"); ok && d.set("partitioner") {
		d.warn(fmt.Sprintf("%s is not applied: %s replaces it", d.label("partitioner"), p.key))
	}
	switch {
	case d.set("topic_template"):
		if c.DynamicTopic {
			d.warn(d.label("dynamic_topic") + " has no effect with topic_template, which may name any topic")
		}
		return
	case c.TopicKey != "" || d.bad["topic_key"]:
		return
	}
	if c.DynamicTopic && !c.Format.Bundles() {
		d.oversight(d.label("dynamic_topic"), "has no effect without topic_key")
	}
	if len(c.Topics) > 1 {
		d.warn(fmt.Sprintf("%s names %d topics, but without topic_key all records go to the first, %s",
			d.label("topics"), len(c.Topics), shown(c.Topics[0])))
	}
}

// warnOfSlash warns of a topic that Apache Kafka would refuse.
func (d *decoder) warnOfSlash() {
	topics := d.cfg.Topics
	i := slices.IndexFunc(topics, func(t string) bool { return strings.Contains(t, foreignSlash) })
	if i < 0 {
		return
	}
	d.warn(fmt.Sprintf("%s has %s: Apache Kafka itself refuses a slash in the name of a topic, other brokers may take it",
		d.label("topics"), shown(topics[i])))
}

// exclusive notes that two options that mean the same thing are both set.
func (d *decoder) exclusive(a, b string) {
	if d.set(a) && d.set(b) {
		d.fault(a, shown(d.text[a])+" contradicts "+d.label(b)+"; keep one of them")
	}
}

// distinctKeys notes that two keys of the value are the same.
func (d *decoder) distinctKeys(names ...string) {
	first := make(map[string]string, len(names))
	for _, name := range names {
		key := d.text[name]
		if name == "timestamp_key" {
			key = d.cfg.TimestampKey
		}
		if key == "" {
			continue
		}
		if other, ok := first[key]; ok {
			d.fault(d.label(name), shown(key)+" is also the "+other+"; a key can stand for one thing only")
			continue
		}
		first[key] = name
	}
}

// validateDeadLetters looks for letters without a place to go, and for settings of places
// that are not there.
func (d *decoder) validateDeadLetters() {
	c := d.cfg
	if c.DeadLetterTopic != "" && slices.Contains(c.Topics, c.DeadLetterTopic) {
		// In its own topic a letter would be read as a record, and what is wrong with the topic
		// would be wrong with its letters.
		d.fault(d.label("dead_letter_topic"), fmt.Sprintf("%s is one of %s; dead letters need a topic of their own",
			shown(c.DeadLetterTopic), d.label("topics")))
	}
	target := c.DeadLetterTopic != "" || c.DeadLetterFile != "" || d.bad["dead_letter_topic"]
	if c.OnTopicError == TopicErrorDeadLetter && !target {
		d.fault(d.label("on_topic_error"), shown(d.text["on_topic_error"])+" needs dead_letter_topic or dead_letter_file")
	}
	for _, name := range []string{"dead_letter_file_limit", "dead_letter_file_keep"} {
		if d.set(name) && c.DeadLetterFile == "" {
			d.warn(d.label(name) + " has no effect without dead_letter_file")
		}
	}
	if d.set("unknown_topic_wait") && c.OnTopicError == TopicErrorRetry && !d.bad["on_topic_error"] {
		d.warn(d.label("unknown_topic_wait") + " has no effect with on_topic_error retry")
	}
}

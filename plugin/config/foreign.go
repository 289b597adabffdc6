package config

// ForeignKey is a key of the built-in kafka output that has no effect here. It is asked for so that
// a section that is moved here does not lose it in silence.
type ForeignKey struct {
	Name string
	// Note says what the key is about.
	Note string
}

// Foreign lists those keys.
var Foreign = []ForeignKey{
	{"group_id", "consumer groups, which an output has none of"},
}

// Misnamed are properties of other Kafka clients, the Java client above all, that get into
// sections and that librdkafka does not know under these names.
var Misnamed = []Rule{
	{"buffer.memory", "it is for Java clients", "queue_limit"},
	{"key.serializer", "it is for Java clients, and a key is written as it is", ""},
	{"max.block.ms", "it is for Java clients", "delivery_wait"},
	{"max.request.size", "it is for Java clients", "rdkafka.message.max.bytes"},
	{"partitioner.class", "it is for Java clients", "rdkafka.partitioner"},
	{"sasl.client.callback.handler.class", "it is for Java clients", "rdkafka.sasl.oauthbearer.method"},
	{"sasl.jaas.config", "it is for Java clients", "rdkafka.sasl.username and rdkafka.sasl.password"},
	{"sasl.login.callback.handler.class", "it is for Java clients", "rdkafka.sasl.oauthbearer.method"},
	{"ssl.keystore.type", "it is for Java clients, and a key store is always of PKCS#12 here", ""},
	{"ssl.truststore.location", "it is for Java clients", "rdkafka.ssl.ca.location, a file in PEM"},
	{"ssl.truststore.password", "it is for Java clients, and a file in PEM needs none", ""},
	{"ssl.truststore.type", "it is for Java clients", "rdkafka.ssl.ca.location, a file in PEM"},
	{"value.serializer", "it is for Java clients", "format"},
}

// readMisnamed asks for the names of Misnamed, and prints no value: some are secrets.
func (d *decoder) readMisnamed(g Getter) {
	for _, r := range Misnamed {
		key := rdkafkaPrefix + r.Name
		if g.Get(key) == "" {
			continue
		}
		text := "is no property of librdkafka: " + r.Why
		if r.Use != "" {
			text += "; use " + r.Use
		}
		d.oversight(key, text)
	}
}

// readForeign asks for the keys of Foreign.
func (d *decoder) readForeign(g Getter) {
	for _, k := range Foreign {
		if g.Get(k.Name) != "" {
			d.warn(k.Name + " has no effect: it is about " + k.Note)
		}
	}
}

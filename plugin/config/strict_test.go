package config

import (
	"strings"
	"testing"
)

// oversights are what the built-in output ignores without a word. What is wanted is the text
// of the faults; without the colon behind the key it is that of the warnings.
var oversights = []faultCase{
	{"option of another format", section{"gelf_level_key": "l", "schema_id": "7", "raw_log_key": "log"}, []string{
		"raw_log_key: has no effect with format json",
		"gelf_level_key: has no effect with format json",
		"schema_id: has no effect with format json",
	}},
	{"option of another format than gelf", section{"format": "gelf", "Raw_Log_Key": "log"}, []string{
		"raw_log_key: has no effect with format gelf",
	}},
	{"dynamic topics without a key", section{"dynamic_topic": "on"}, []string{
		"dynamic_topic: has no effect without topic_key",
	}},
	{"logins that exclude each other", section{
		"format": "avro", "schema_registry_url": "https://r", "schema_id": "7",
		"schema_registry_http_user": "u", "schema_registry_bearer_token": "geheim",
	}, []string{"schema_registry_bearer_token: has no effect beside schema_registry_http_user"}},
	{"login without a user", section{
		"format": "avro", "schema_registry_url": "https://r", "schema_id": "7", "schema_registry_http_passwd": "geheim",
	}, []string{"schema_registry_http_passwd: has no effect without schema_registry_http_user"}},
	{"misspelt properties", section{"rdkafka.request_required_acks": "1", "rdkafka.sasl.pasword": "geheim"}, []string{
		"rdkafka.sasl.pasword: is unknown; rdkafka.sasl.password is probably meant",
		"rdkafka.request_required_acks: is unknown; rdkafka.request.required.acks is probably meant",
	}},
	{"authorities without TLS", section{"rdkafka.ssl.ca.location": "/ca"}, []string{
		"rdkafka.ssl.ca.location: has no effect with security.protocol plaintext, so that the records go in clear text;" +
			" set rdkafka.security.protocol to ssl",
	}},
	{"client certificate without TLS", section{
		"rdkafka.security.protocol": "plaintext", "rdkafka.ssl.certificate.location": "/c", "rdkafka.ssl.key.location": "/k",
		"ssl_key_password_file": "/p",
	}, []string{
		"rdkafka.ssl.key.location: has no effect with security.protocol plaintext, so that the records go in clear text;" +
			" set rdkafka.security.protocol to ssl",
		"rdkafka.ssl.certificate.location: has no effect with security.protocol plaintext, so that the records go in clear text;" +
			" set rdkafka.security.protocol to ssl",
		"ssl_key_password_file: has no effect with security.protocol plaintext, so that the records go in clear text;" +
			" set rdkafka.security.protocol to ssl",
	}},
	{"TLS beside a login without it", section{
		"rdkafka.security.protocol": "SASL_PLAINTEXT", "rdkafka.sasl.mechanism": "PLAIN", "rdkafka.sasl.username": "u",
		"rdkafka.sasl.password": "geheim", "rdkafka.ssl.ca.location": "/ca",
	}, []string{
		"rdkafka.ssl.ca.location: has no effect with security.protocol sasl_plaintext, so that the records go in clear text;" +
			" set rdkafka.security.protocol to sasl_ssl",
	}},
	{"login without a protocol", section{"rdkafka.sasl.username": "u", "sasl_password_file": "/p"}, []string{
		"rdkafka.sasl.username: has no effect with security.protocol plaintext, so that nobody logs in;" +
			" set rdkafka.security.protocol to sasl_ssl, or to sasl_plaintext where the brokers have no TLS",
		"sasl_password_file: has no effect with security.protocol plaintext, so that nobody logs in;" +
			" set rdkafka.security.protocol to sasl_ssl, or to sasl_plaintext where the brokers have no TLS",
	}},
	{"login with TLS alone", section{
		"rdkafka.security.protocol": "SSL", "rdkafka.sasl.username": "u", "rdkafka.sasl.password": "geheim",
	}, []string{
		"rdkafka.sasl.username: has no effect with security.protocol ssl, so that nobody logs in; set rdkafka.security.protocol to sasl_ssl",
		"rdkafka.sasl.password: has no effect with security.protocol ssl, so that nobody logs in; set rdkafka.security.protocol to sasl_ssl",
	}},
	{"certificate without its key", section{"rdkafka.security.protocol": "ssl", "rdkafka.ssl.certificate.location": "/c"}, []string{
		"rdkafka.ssl.certificate.location: has no effect without its key: set rdkafka.ssl.key.location",
	}},
	{"passwords of nothing", section{
		"rdkafka.security.protocol": "ssl", "rdkafka.ssl.key.password": "geheim", "rdkafka.ssl.keystore.password": "geheim",
	}, []string{
		"rdkafka.ssl.key.password: has no effect without a key: set rdkafka.ssl.key.location",
		"rdkafka.ssl.keystore.password: has no effect without a key store: set rdkafka.ssl.keystore.location",
	}},
	{"prefix alone", section{"rdkafka.": "linger.ms 5"}, []string{
		"rdkafka.: names no property; write rdkafka.NAME, with no blank behind the dot",
	}},
	{"names of Java clients", section{
		"rdkafka.max.request.size": "1", "rdkafka.sasl.jaas.config": `... password="geheim";`, "rdkafka.ssl.truststore.type": "JKS",
	}, []string{
		"rdkafka.max.request.size: is no property of librdkafka: it is for Java clients; use rdkafka.message.max.bytes",
		"rdkafka.sasl.jaas.config: is no property of librdkafka: it is for Java clients;" +
			" use rdkafka.sasl.username and rdkafka.sasl.password",
		"rdkafka.ssl.truststore.type: is no property of librdkafka: it is for Java clients;" +
			" use rdkafka.ssl.ca.location, a file in PEM",
	}},
}

// It is a fault, and with strict off the same words are a warning.
func TestStrict_FaultOrWarning(t *testing.T) {
	for _, test := range oversights {
		t.Run(test.name, func(t *testing.T) {
			var warnings []string
			for _, w := range test.want {
				warnings = append(warnings, strings.Replace(w, ": ", " ", 1))
			}
			checkFaults(t, test.keys, strictly(test.want))
			checkWarnings(t, test.keys, warnings)
		})
	}
}

// strictly gives the faults of an oversight.
func strictly(want []string) []string {
	faults := make([]string, len(want))
	for i, w := range want {
		faults[i] = w + " (strict off: only a warning)"
	}
	return faults
}

// checkWarnings decodes the minimal section with the given keys and strict off.
func checkWarnings(t *testing.T, keys section, want []string) *Config {
	t.Helper()
	all := minimal.with("strict", "Off")
	for k, v := range keys {
		all[k] = v
	}
	c, err := Decode(all, verdicts)
	if err != nil {
		t.Fatalf("with strict off: %v", err)
	}
	sameLines(t, "warnings with strict off", c.Warnings, want)
	return c
}

// What nobody can rely on may be left over.
func TestProtocol_WarnsOnlyOfWhatIsHarmless(t *testing.T) {
	c := mustDecode(t, minimal.with("rdkafka.enable.ssl.certificate.verification", "false", "rdkafka.sasl.mechanism", "PLAIN"))
	sameLines(t, "warnings", c.Warnings, []string{
		"rdkafka.enable.ssl.certificate.verification has no effect with security.protocol plaintext",
		"rdkafka.sasl.mechanism has no effect with security.protocol plaintext",
	})
}

// Two halves in different forms are a whole.
func TestProtocol_TakesCompletePairs(t *testing.T) {
	for _, keys := range []section{
		{"rdkafka.ssl.certificate.location": "/c", "rdkafka.ssl.key.pem": "k"},
		{"rdkafka.ssl.certificate.pem": "c", "rdkafka.ssl.key.location": "/k", "ssl_key_password_file": "/p"},
		{"rdkafka.ssl.keystore.location": "/s", "rdkafka.ssl.keystore.password": "p"},
		{"rdkafka.ssl.engine.location": "/e", "rdkafka.ssl.certificate.location": "/c"},
	} {
		if c := mustDecode(t, minimal.with("rdkafka.security.protocol", "ssl").with(pairs(keys)...)); c.Warnings != nil {
			t.Errorf("%v: %q", keys, c.Warnings)
		}
	}
}

// The built-in output takes a format that it does not know for json.
func TestStrict_Off_TakesTheDefaultForAnUnknownWord(t *testing.T) {
	c := checkWarnings(t, section{"format": "jsno", "Timestamp_Format": "rfc3339"}, []string{
		`format "jsno" is unknown; allowed: ` + strings.Join(formats, ", ") + "; it is taken for json, as in the built-in output",
		`timestamp_format "rfc3339" is unknown; allowed: double, iso8601, iso8601_ns; it is taken for double, as in the built-in output`,
	})
	if c.Format != FormatJSON || c.TimestampFormat != TimestampDouble {
		t.Errorf("got %s, %s", c.Format, c.TimestampFormat)
	}
}

// The built-in output logs what librdkafka refuses, and starts without it.
func TestStrict_Off_LeavesRefusedPropertiesOut(t *testing.T) {
	c := checkWarnings(t, section{"rdkafka.linger.ms": "abc", "rdkafka.batch.size": "1MB", "rdkafka_options": "linger.msec=5"}, []string{
		`rdkafka.linger.ms "abc" is refused by librdkafka:` +
			` Invalid value for configuration property "queue.buffering.max.ms"; it is not applied`,
		`rdkafka.batch.size "1MB" is not a whole number; librdkafka takes no units and would drop what follows the digits;` +
			` it is not applied`,
		`rdkafka_options: "linger.msec" *** is refused by librdkafka: No such configuration property: "linger.msec"; it is not applied`,
	})
	for name, want := range map[string]string{"queue.buffering.max.ms": "1", "batch.size": "", "linger.msec": ""} {
		if v, _ := property(c, name); v != want {
			t.Errorf("%s=%s is applied, want the default %q", name, v, want)
		}
	}
}

// strict off gives up no promise, and leaves nothing open that was to be secured.
func TestStrict_Off_StillRefuses(t *testing.T) {
	for _, test := range []faultCase{
		{"transactions", section{"rdkafka.transactional.id": "t"}, []string{
			`rdkafka.transactional.id: "t" is refused: transactions are not supported`,
		}},
		{"unit tests", section{"rdkafka_options": "UT_handle_ProduceResponse=x"}, []string{
			`rdkafka_options: "UT_handle_ProduceResponse": *** is refused: it is for librdkafka's own unit tests`,
		}},
		{"security", section{"rdkafka.security.protocol": "tls", "rdkafka_options": "ssl.ca.locations=/x"}, []string{
			`rdkafka.security.protocol: "tls" is refused by librdkafka: Invalid value "tls" for configuration property "security.protocol"`,
			`rdkafka_options: "ssl.ca.locations": *** is refused by librdkafka: No such configuration property: "ssl.ca.locations"`,
		}},
		{"own options", section{"idle_policy": "sleep", "reconnect_backoff_min": "5"}, []string{
			`reconnect_backoff_min: "5" has no unit; write 5ms or 5s`,
			`idle_policy: "sleep" is unknown; allowed: keepalive, close, keep`,
		}},
		{"strict itself", section{"strict": "lax"}, []string{
			`strict: "lax" is neither true nor false; allowed: true, on, yes, false, off, no`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkFaults(t, section{"strict": "off"}.with(pairs(test.keys)...), test.want)
		})
	}
}

// pairs lists the keys of a section as section.with takes them.
func pairs(s section) []string {
	var list []string
	for k, v := range s {
		list = append(list, k, v)
	}
	return list
}

// A file that nobody reads may be missing.
func TestFiles_OfWhatIsSwitchedOff(t *testing.T) {
	checkWarnings(t, section{"rdkafka.ssl.ca.location": "/etc/kafka/ca.pem"}, []string{
		"rdkafka.ssl.ca.location has no effect with security.protocol plaintext, so that the records go in clear text;" +
			" set rdkafka.security.protocol to ssl",
	})
}

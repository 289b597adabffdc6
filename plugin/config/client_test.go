package config

import (
	"fmt"
	"reflect"
	"testing"
)

func TestProperties_Defaults(t *testing.T) {
	want := []Property{
		{Name: "bootstrap.servers", Value: "kafka:9092"},
		{Name: "client.id", Value: "fluent-bit"},
		{Name: "partitioner", Value: "consistent_random"},
		{Name: "enable.idempotence", Value: "true"},
		{Name: "queue.buffering.max.ms", Value: "1"},
		{Name: "message.timeout.ms", Value: "0"},
		{Name: "socket.timeout.ms", Value: "300000"},
		{Name: "socket.connection.setup.timeout.ms", Value: "5000"},
		{Name: "topic.metadata.propagation.max.ms", Value: "10000"},
		{Name: "socket.keepalive.enable", Value: "true"},
		{Name: "reconnect.backoff.ms", Value: "100"},
		{Name: "reconnect.backoff.max.ms", Value: "250"},
		{Name: "broker.address.ttl", Value: "0"},
		{Name: "queue.buffering.max.messages", Value: "0"},
		{Name: "queue.buffering.max.kbytes", Value: "2147483647"},
		{Name: "enable.metrics.push", Value: "false"},
		{Name: "connections.max.idle.ms", Value: "0"},
		{Name: "log_level", Value: "6"},
	}
	if got := mustDecode(t, minimal).Properties(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestProperties_OfTheSection(t *testing.T) {
	c := mustDecode(t, minimal.with(
		"client_id", "mine",
		"probe_timeout", "1500us1s",
		"rdkafka.client.id", "theirs",
		"rdkafka.delivery.timeout.ms", "60000",
		"rdkafka.linger.ms", "50",
		"rdkafka.security.protocol", "sasl_ssl",
		"rdkafka.sasl.mechanism", "PLAIN",
		"rdkafka.sasl.username", "$ConnectionString",
		"rdkafka.sasl.password", `Endpoint=sb://x/;Key="a,b\`,
		"RDKAFKA.Acks", "ALL",
		"rdkafka_options", `sasl.password=Endpoint=sb://x/;Key="a\,b\\, client.software.name = me , debug=broker\,msg`,
		"rdkafka.reconnect.backoff.max.ms", "10000",
	))
	got := c.Properties()
	if first := got[0].Name; first != "bootstrap.servers" {
		t.Errorf("the first property is %s", first)
	}
	values := make(map[string]string)
	for _, p := range got {
		if _, twice := values[p.Name]; twice {
			t.Errorf("%s is there twice", p.Name)
		}
		values[p.Name] = p.Value
		if p.Secret != (p.Name == "sasl.password") {
			t.Errorf("%s: Secret is %t", p.Name, p.Secret)
		}
	}
	for name, want := range map[string]string{
		"client.id":                          "theirs",
		"message.timeout.ms":                 "60000",
		"queue.buffering.max.ms":             "50",
		"sasl.username":                      "$ConnectionString",
		"sasl.password":                      `Endpoint=sb://x/;Key="a,b\`,
		"acks":                               "ALL",
		"client.software.name":               "me",
		"debug":                              "broker,msg",
		"reconnect.backoff.max.ms":           "250",
		"socket.connection.setup.timeout.ms": "1002",
		"enable.idempotence":                 "true",
	} {
		if values[name] != want {
			t.Errorf("%s = %q, want %q", name, values[name], want)
		}
	}
	got[0].Value = "changed"
	if c.Properties()[0].Value == "changed" {
		t.Error("the caller can change the list")
	}
}

func TestProperties_EveryAliasIsOneProperty(t *testing.T) {
	for _, n := range propertyNames {
		if n.alias == "" || n.scope == scopeConsumer {
			continue
		}
		value := "1"
		if canonical(n.name) == "sasl.mechanisms" {
			value = "PLAIN"
		}
		c := mustDecode(t, minimal.with("strict", "off", "rdkafka."+n.name, value, "rdkafka."+n.alias, value))
		var found []string
		for _, p := range c.Properties() {
			if p.Name == n.name || p.Name == n.alias {
				found = append(found, p.Name)
			}
		}
		if len(found) != 1 {
			t.Errorf("%s and %s are handed over as %v", n.name, n.alias, found)
		}
	}
}

func TestProperties_Idempotence(t *testing.T) {
	const after = ": a connection that breaks can double what was in flight"
	for _, test := range []struct {
		key, value string
		want       string
		warning    string
	}{
		{"rdkafka.acks", "all", "true", ""},
		{"rdkafka.acks", "-1", "true", ""},
		{"rdkafka.acks", "1", "false", `rdkafka.acks "1" switches idempotence off, which needs acks all` + after},
		{"rdkafka.max.in.flight", "5", "true", ""},
		{"rdkafka.max.in.flight", "6", "false", `rdkafka.max.in.flight "6" switches idempotence off, which needs at most 5` + after},
		{"rdkafka.retries", "1", "true", ""},
		{"rdkafka.retries", "0x0", "false", `rdkafka.retries "0x0" switches idempotence off, which needs at least 1` + after},
		{
			"rdkafka.queue.buffering.backpressure.threshold", "2", "false",
			`rdkafka.queue.buffering.backpressure.threshold "2" switches idempotence off, which needs 1` + after,
		},
		{"rdkafka.queuing.strategy", "FIFO", "true", ""},
		{"rdkafka.queuing.strategy", "Lifo", "false", `rdkafka.queuing.strategy "Lifo" switches idempotence off, which needs fifo` + after},
		{"rdkafka.enable.idempotence", "F", "F", "rdkafka.enable.idempotence false" + after},
		{"rdkafka.enable.idempotence", "1", "1", ""},
	} {
		t.Run(test.key+" "+test.value, func(t *testing.T) {
			c := mustDecode(t, minimal.with(test.key, test.value))
			if got, _ := property(c, "enable.idempotence"); got != test.want {
				t.Errorf("enable.idempotence = %s, want %s", got, test.want)
			}
			var want []string
			if test.warning != "" {
				want = []string{test.warning}
			}
			sameLines(t, "warnings", c.Warnings, want)
		})
	}
}

// A user's value for what the supervisor owns never reaches librdkafka, and is named.
func TestProperties_Owned(t *testing.T) {
	for _, rule := range Owned {
		c := mustDecode(t, minimal.with("rdkafka."+rule.Name, "4711"))
		if got, _ := property(c, rule.Name); got == "4711" {
			t.Errorf("%s is applied", rule.Name)
		}
		if len(c.Warnings) != 1 {
			t.Errorf("%s: warnings %q, want one", rule.Name, c.Warnings)
		}
	}
}

func TestProperties_RefusedOnlyWhenOn(t *testing.T) {
	c := mustDecode(t, minimal.with("rdkafka.delivery.report.only.error", "false", "rdkafka.enable.gapless.guarantee", "0"))
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

func TestCheckNumber_Integer(t *testing.T) {
	for value, want := range map[string]bool{
		"0": true, "-1": true, "+5": true, " 7 ": true, "0x1f": true, "017": true, "all": true, "": true,
		"2147483647": true, "-2147483648": true,
		"2147483648": false, "-2147483649": false, "5s": false, "1_000": false, "0b1": false, "0o7": false, "08": false,
		"1.5": false, "1e3": false, "-": false, "5,": false, "9999999999999999999999": false,
	} {
		if got := checkNumber(kindInteger, value) == nil; got != want {
			t.Errorf("checkNumber(integer, %q) is nil: %t, want %t", value, got, want)
		}
	}
}

func TestSplitItems(t *testing.T) {
	for text, want := range map[string][]string{
		"":               {""},
		"a=1":            {"a=1"},
		"a=1, b=2":       {"a=1", "b=2"},
		`a=1\,2,b=3`:     {"a=1,2", "b=3"},
		`a=\\,b=1`:       {`a=\`, "b=1"},
		`a=\\\,b=1`:      {`a=\,b=1`},
		`a=c:\temp,b=\n`: {`a=c:\temp`, `b=\n`},
		`a=x\`:           {`a=x\`},
		"a=1;b=2,,":      {"a=1;b=2", "", ""},
	} {
		if got := splitItems(text); !reflect.DeepEqual(got, want) {
			t.Errorf("splitItems(%q) = %q, want %q", text, got, want)
		}
	}
}

// C reads a number from the front of any text. Every kind of number is looked at, and no kind is
// new without a look at this.
func TestCheckNumber(t *testing.T) {
	for _, n := range propertyNames {
		switch n.kind {
		case kindInteger, kindFloat, kindBoolean, "string", "enum", "flags", "patterns", "api", "hidden":
		default:
			t.Errorf("%s is of the kind %q, which nobody has looked at", n.name, n.kind)
		}
	}
	for _, kind := range []string{kindInteger, kindFloat} {
		for _, value := range []string{"30s", "1s", "0,5", "2 seconds", "1 000", "1_000", "-1x", "+", "-", "0x", "5%", "1,000", "1e3s"} {
			if checkNumber(kind, value) == nil {
				t.Errorf("%s: %q is taken", kind, value)
			}
		}
		for _, value := range []string{"0", "-1", "+5", " 7 ", "0x10", "all", ""} {
			if err := checkNumber(kind, value); err != nil {
				t.Errorf("%s: %q %v", kind, value, err)
			}
		}
	}
	for value, want := range map[string]bool{
		"0.5": true, ".5": true, "5.": true, "1e3": true, "abc": true,
		"nan": false, "NaN": false, "inf": false, "-Infinity": false, "nano": false, "1.2.3": false, "1e999": false,
	} {
		if got := checkNumber(kindFloat, value) == nil; got != want {
			t.Errorf("float: %q is taken: %t, want %t", value, got, want)
		}
	}
	if checkNumber("string", "30s") != nil {
		t.Error("a text is looked at")
	}
}

func ExampleConfig_Summary() {
	c, err := Decode(GetterFunc(func(name string) string {
		return map[string]string{
			"brokers": "kafka-1:9092", "reconnect_backoff_max": "30s", "rdkafka.sasl.mechanism": "PLAIN",
			"rdkafka.security.protocol": "sasl_ssl", "rdkafka.sasl.username": "me", "rdkafka.sasl.password": "geheim",
		}[name]
	}), nil)
	fmt.Println(c.Summary(), err)
	// Output: brokers=kafka-1:9092 reconnect_backoff_max=30s rdkafka.security.protocol=sasl_ssl rdkafka.sasl.mechanism=PLAIN rdkafka.sasl.username=me rdkafka.sasl.password=*** <nil>
}

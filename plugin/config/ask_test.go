package config

import (
	"slices"
	"strings"
	"testing"
)

// recorder is a Getter that notes what it is asked.
type recorder struct {
	section
	asked map[string]int
}

func (r recorder) Get(name string) string {
	r.asked[name]++
	return r.section.Get(name)
}

// Fluent Bit has no list of the keys of a section: a key that is not asked for does not
// exist. So every name of the tables must be asked for, and each once.
func TestDecode_AsksForEveryNameOnce(t *testing.T) {
	want := make(map[string]bool)
	add := func(names ...string) {
		for _, n := range names {
			if want[strings.ToLower(n)] {
				t.Errorf("%s stands in the tables twice", n)
			}
			want[strings.ToLower(n)] = true
		}
	}
	for _, o := range Options() {
		add(o.Name)
		add(o.Aliases...)
	}
	for _, k := range Foreign {
		add(k.Name)
	}
	for _, n := range propertyNames {
		add("rdkafka." + n.name)
	}
	for _, r := range Misnamed {
		add("rdkafka." + r.Name) // twice in the tables if librdkafka knows it after all
	}

	add(rdkafkaPrefix) // without a name

	asSlip := make(map[string]bool)
	for s := range slips() {
		asSlip[s.wrong] = true
	}

	for what, keys := range map[string]section{
		"an empty section":       {},
		"a good section":         minimal.with("topics", "a", "rdkafka.linger.ms", "5"),
		"a section with faults":  {"brokers": ",", "format": "gelf", "rdkafka.acks": "5s"},
		"a section with aliases": {"bootstrap.servers": "a", "reconnect.idle_policy": "keep"},
	} {
		r := recorder{keys, make(map[string]int)}
		_, _ = Decode(r, library{features: bundled}) // only the questions matter
		for name := range want {
			if r.asked[name] != 1 {
				t.Errorf("%s: %s was asked for %d times", what, name, r.asked[name])
			}
		}
		for name := range r.asked {
			if !want[name] && !asSlip[name] {
				t.Errorf("%s: %s was asked for and is in no table", what, name)
			}
		}
	}
}

// The names that users of the built-in output know, from its documentation and source.
func TestTables_CoverTheBuiltInOutput(t *testing.T) {
	asked := recorder{minimal, make(map[string]int)}
	if _, err := Decode(asked, nil); err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(`
		brokers topics topic_key dynamic_topic format message_key message_key_field timestamp_key timestamp_format
		queue_full_retries raw_log_key gelf_short_message_key gelf_full_message_key gelf_level_key gelf_timestamp_key
		gelf_host_key client_id group_id aws_msk_iam aws_msk_iam_cluster_arn schema_str schema_id schema_registry_url
		schema.registry.url schema_registry_subject schema.registry.subject schema_registry_version schema.registry.version
		schema_registry_http_user schema.registry.http.user schema_registry_http_passwd schema.registry.http.password
		schema_registry_bearer_token schema.registry.bearer.token schema_registry_framing serializer.framing
		otlp_logs_partition_by_resource rdkafka.bootstrap.servers rdkafka.request.required.acks rdkafka.acks
		rdkafka.enable.sparse.connections rdkafka.compression.type rdkafka.ssl.ca.location`) {
		if asked.asked[name] != 1 {
			t.Errorf("%s is not asked for", name)
		}
	}
}

func TestTables_Options(t *testing.T) {
	for _, o := range Options() {
		if o.Name == "" || o.Kind == "" || o.Doc == "" || o.set == nil || o.get == nil {
			t.Errorf("the row of %q is not complete", o.Name)
		}
		for _, s := range []string{o.Doc, o.Note} {
			if s != "" && !strings.HasSuffix(s, ".") {
				t.Errorf("%s: %q is no sentence", o.Name, s)
			}
		}
		if strings.Contains(strings.TrimSuffix(o.Doc, "."), ". ") {
			t.Errorf("%s: Doc has more than one sentence", o.Name)
		}
		if o.Default == "" {
			continue
		}
		var c, again Config
		if err := o.set(&c, o.Default); err != nil {
			t.Errorf("%s: the default %q %v", o.Name, o.Default, err)
		}
		if err := o.set(&again, o.get(&c)); err != nil || o.get(&again) != o.get(&c) {
			t.Errorf("%s: %q does not read back: %v", o.Name, o.get(&c), err)
		}
	}
}

// Rules are looked up by canonical name; another spelling would never be found.
func TestTables_NamesAreCanonicalAndKnown(t *testing.T) {
	check := func(table, name string) {
		if canonical(name) != name {
			t.Errorf("%s: %s is canonically %s", table, name, canonical(name))
		}
		if _, ok := propertyByName[name]; !ok {
			t.Errorf("%s: librdkafka does not know %s", table, name)
		}
	}
	for _, s := range Settings {
		check("Settings", s.Name)
	}
	for _, r := range Owned {
		check("Owned", r.Name)
	}
	for _, r := range Refused {
		check("Refused", r.Name)
	}
	for _, name := range Secrets {
		check("Secrets", name)
	}
	for _, r := range idempotenceRules {
		check("idempotenceRules", r.name)
	}
	if !slices.IsSorted(Secrets) {
		t.Error("Secrets is not sorted")
	}
}

// A new librdkafka may bring new secrets. Each name that sounds like one must either be
// in Secrets or here, where somebody has looked at it.
func TestTables_NoSecretIsOverlooked(t *testing.T) {
	harmless := []string{
		"sasl.kerberos.keytab", "sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.token.endpoint.url",
		"sasl.oauthbearer.client.credentials.client.id", "ssl.key.location", "ssl.keystore.location",
		"oauthbearer_token_refresh_cb",
	}
	for _, n := range propertyNames {
		if soundsSecret(n.name) && !isSecret(n.name, "") && !slices.Contains(harmless, n.name) && n.kind != "boolean" {
			t.Errorf("%s sounds like a secret", n.name)
		}
	}
}

func TestParseNames(t *testing.T) {
	if errNames != nil || len(propertyNames) < 190 {
		t.Fatalf("rdkafka_names.txt: %d names, %v", len(propertyNames), errNames)
	}
	for _, n := range propertyNames {
		if n.name != strings.ToLower(n.name) {
			t.Errorf("%s has capitals; readCatchAll takes names to have none", n.name)
		}
		if _, ok := propertyByName[n.alias]; n.alias != "" && !ok {
			t.Errorf("%s is an alias for %s, which is not known", n.name, n.alias)
		}
	}
	if _, err := parseNames("# head\nlinger.ms P global\n"); err == nil {
		t.Error("a short line is accepted")
	}
}

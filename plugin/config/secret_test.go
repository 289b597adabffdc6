package config

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// letters occur in no message, so a run of them can only come from a secret.
const letters = "QZXJ7"

var run = regexp.MustCompile(`[` + letters + `]{4}`)

// parrot refuses some values, and its reason repeats them in one of the ways in which a
// C library might.
type parrot struct {
	rand *rand.Rand
	tame bool
}

func (p parrot) Features() string { return bundled }

func (p parrot) CheckFile(_, path string) error {
	if p.tame || p.rand.IntN(2) == 0 || path == "/ca" {
		return nil
	}
	return refusal("can't be read: no such file or directory")
}

func (p parrot) CheckProperty(name, value string) error {
	if p.tame {
		return nil
	}
	cut := value[:p.rand.IntN(len(value)+1)]
	switch p.rand.IntN(6) {
	case 0:
		return refusal(fmt.Sprintf("Invalid value %q for %s", value, name))
	case 1:
		return refusal(name + ": " + cut + "… too long")
	case 2:
		return refusal(strings.Join(strings.Fields(value), " ") + "\n")
	case 3:
		return refusal("No such configuration property: " + name + "=" + strings.TrimSpace(value))
	}
	return nil
}

// randomSecret has runs of letters, and between them what may confuse a parser.
func randomSecret(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(5) {
		for range 4 + r.IntN(20) {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		b.WriteString([]string{"", ",", "=", ", ", `\`, `\,`, "@", ":", " ", "\n", `"`, ";"}[r.IntN(12)])
	}
	return b.String()
}

// secretKeys are all keys whose value is a secret.
func secretKeys() []string {
	var keys []string
	for _, n := range propertyNames {
		if slices.Contains(Secrets, canonical(n.name)) {
			keys = append(keys, "rdkafka."+n.name)
		}
	}
	for _, f := range secretFiles {
		keys = append(keys, f.option)
	}
	return append(keys, "schema_registry_http_passwd", "schema.registry.bearer.token")
}

// randomSection holds secrets in some of the places where they may be; one that is not
// tame has faults in some others.
func randomSection(r *rand.Rand, tame bool) section {
	s := section{"brokers": "kafka:9092"}
	secret := randomSecret(r) // one for all, so that two names of a property agree
	for _, key := range secretKeys() {
		if r.IntN(4) == 0 && (!tame || strings.HasPrefix(key, "rdkafka.")) {
			s[key] = secret
		}
	}
	if r.IntN(3) == 0 && !tame {
		s["brokers"] = "me:" + randomSecret(r) + "@kafka:9092"
	}
	if r.IntN(3) == 0 {
		s["client_id"] = "https://me:" + randomSecret(r) + "@host"
	}
	for key, front := range map[string]string{
		"rdkafka.sasl.oauthbearer.token.endpoint.url": "https://me:", "schema_registry_url": "http://r/?token=",
		"topic_template": "$a_$b-password=", "dead_letter_topic": "token:",
	} {
		if r.IntN(6) == 0 && !tame {
			s[key] = front + randomSecret(r) + "@host/token"
		}
	}
	for key, front := range map[string]string{
		"headers": "Authorization=Bearer ", "message_key": "secret=", "rdkafka.client.rack": "http://x/?code=",
		"rdkafka.sasl.username": "Endpoint=sb://x;SharedAccessKey=",
	} {
		if r.IntN(6) == 0 {
			s[key] = front + randomSecret(r)
		}
	}
	name := []string{"sasl.password", "SSL.key.password", "rdkafka.ssl.key.pem", "some.new.secret"}[r.IntN(4)]
	secret = strings.TrimSpace(secret)
	switch n := r.IntN(3); {
	case n == 0:
		escaped := strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(secret)
		s["rdkafka_options"] = "linger.ms=5, " + name + "=" + escaped + ",debug=msg"
	case n == 1 && !tame: // the user did not know of the comma
		s["rdkafka_options"] = "linger.ms=5, " + name + "=" + secret + ",debug=msg"
	}
	if tame {
		s["strict"] = "off"
		return s
	}
	for key, value := range map[string]string{
		"format": "xml", "reconnect_backoff_min": "5", "rdkafka.linger.ms": "x", "rdkafka.security.protocol": "sasl_ssl",
		"idle_policy": "close", "rdkafka.ssl.ca.location": "/ca",
	} {
		if r.IntN(3) == 0 {
			s[key] = value
		}
	}
	return s
}

func TestSecrets_AreNeverPrinted(t *testing.T) {
	accepted, refused := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		tame := seed%2 == 0
		s := randomSection(r, tame)
		c, err := Decode(GetterFunc(func(name string) string { return s[name] }), parrot{r, tame})
		var printed string
		if err != nil {
			refused++
			printed = err.Error()
			all, _ := errors.AsType[faults](err)
			for _, one := range all { // the message may be cut
				printed += "\n" + one.Error()
			}
		} else {
			accepted++
			printed = c.Summary() + "\n" + strings.Join(c.Warnings, "\n")
		}
		if found := run.FindString(printed); found != "" {
			t.Fatalf("seed %d: %q of a secret is in:\n%s\nsection: %q", seed, found, printed, map[string]string(s))
		}
	}
	if accepted < 50 || refused < 50 {
		t.Errorf("%d sections were accepted and %d refused; the test is lopsided", accepted, refused)
	}
}

// What is handed over must be the secret itself.
func TestSecrets_AreHandedOver(t *testing.T) {
	for _, key := range secretKeys() {
		name, ok := strings.CutPrefix(key, "rdkafka.")
		if !ok || name == "ssl_key" {
			continue
		}
		c := mustDecode(t, minimal.with("strict", "off", key, " geheim "))
		i := slices.Index(c.Properties(), Property{Name: canonical(name), Value: " geheim ", Secret: true})
		if i < 0 {
			t.Errorf("%s: not among %v", name, c.Properties())
		}
	}
}

// librdkafka's text stays whole where it does not depend on the secret, and where it does only
// what is around the place is told.
func TestCommon(t *testing.T) {
	for _, test := range []struct{ text, other, want string }{
		{"see librdkafka/wiki", "see librdkafka/wiki", "see librdkafka/wiki"},
		{`bad "geheim"!`, `bad "` + otherText + `"!`, `bad "***"!`},
		{"gehe and geheim: no", otherText + " and " + otherText + ": no", "***: no"},
		{"value geh", "value " + otherText, "value ***"},
		{"too long: geheim", "unknown", "***"},
		{"aa", "a", "a***"},
		{"", "x", "***"},
	} {
		if got := common(test.text, test.other); got != test.want {
			t.Errorf("common(%q, %q) = %q, want %q", test.text, test.other, got, test.want)
		}
	}
}

// A value is hidden for what is in it, whatever key it has.
func TestShown(t *testing.T) {
	for _, value := range []string{
		"https://me:geheim@host", "http://registry:8081/?token=geheim", "https://login/token?code=geheim",
		"u; sasl.password=geheim", "Authorization=Bearer geheim", "source=a,X-Api-Key=geheim", "Bearer geheim", "Basic Z2VoZWlt",
		"Endpoint=sb://x/;SharedAccessKeyName=send;SharedAccessKey=geheim=", `{"password": "geheim"}`, "PWD: geheim",
		"client_secret=geheim", "-----BEGIN RSA PRIVATE KEY-----geheim", "eyJhbGciOiJub25lIn0.geheim.", "x-functions-key=geheim",
		"cookie=geheim", "sig=geheim", `username="u" password="geheim";`, "auth: geheim",
	} {
		if got := shown(value); got != hidden {
			t.Errorf("shown(%q) = %s", value, got)
		}
	}
	for _, value := range []string{
		"kafka-1:9092", "http://registry:8081", "logs-$kubernetes['namespace_name']", "tokens", "source=fluent-bit,author=me",
		"key=$key", "/run/secrets/password", `{"type":"record","fields":[{"name":"password","type":"string"}]}`, "a basicblock", "design=x",
		"-----BEGIN CERTIFICATE-----", "$ConnectionString", "partition_key=a",
	} {
		if got := shown(value); got != quote(value) {
			t.Errorf("shown(%q) = %s", value, got)
		}
	}
}

// What is hidden in one place of a message is not quoted in another.
func TestTold(t *testing.T) {
	err := errors.New(`has the name "geheim", which ends in "_"; "x,y" is no part of it, nor "other"`)
	want := `*** has the name ***, which ends in "_"; "x,y" is no part of it, nor "other"`
	for _, test := range []struct {
		value  string
		secret bool
	}{{"password=geheim", false}, {"geheim", true}} {
		if got := told(test.value, test.secret, err); got != want {
			t.Errorf("told(%q) = %s, want %s", test.value, got, want)
		}
	}
	if got := told("geheim", false, errors.New("is bad")); got != `"geheim" is bad` {
		t.Errorf("got %s", got)
	}
}

// Values that librdkafka may print are listed, and short ones would garble its lines.
func TestConcealed(t *testing.T) {
	c := mustDecode(t, minimal.with("strict", "off", "rdkafka.client.id", "https://me:geheim@host", "rdkafka.ssl.key.password", "kafka",
		"rdkafka.sasl.password", "geheimnis", "rdkafka.client.rack", "rack-number-one", "ssl_key_password_file", ""))
	got := c.Concealed()
	slices.Sort(got)
	sameLines(t, "concealed", got, []string{"geheimnis", "https://me:geheim@host"})
}

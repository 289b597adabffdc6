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
	if r.IntN(3) == 0 && !tame {
		s["rdkafka.sasl.oauthbearer.token.endpoint.url"] = "https://me:" + randomSecret(r) + "@host/token"
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

func TestScrub(t *testing.T) {
	for _, test := range []struct{ text, secret, want string }{
		{"no secret here", "geheim", "no secret here"},
		{`bad "geheim"!`, "geheim", `bad "***"!`},
		{"gehe and heim and ehei", "geheim", "*** and *** and ***"},
		{"geh", "geheim", "geh"},
		{"geheimgeheim", "geheim", "******"},
		{"a b c", "b", "a *** c"},
		{"text", "", "text"},
		{"", "geheim", ""},
	} {
		if got := scrub(test.text, test.secret); got != test.want {
			t.Errorf("scrub(%q, %q) = %q, want %q", test.text, test.secret, got, test.want)
		}
	}
}

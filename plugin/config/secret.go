package config

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hidden stands for every secret.
const hidden = "***"

// Secrets are the properties whose value is never printed. The kinit command is one
// because people put passwords into it.
var Secrets = []string{
	"sasl.kerberos.kinit.cmd",
	"sasl.oauthbearer.assertion.private.key.passphrase",
	"sasl.oauthbearer.assertion.private.key.pem",
	"sasl.oauthbearer.client.secret",
	"sasl.oauthbearer.config",
	"sasl.password",
	"ssl.key.password",
	"ssl.key.pem",
	"ssl.keystore.password",
	"ssl_key",
}

// isSecret tells whether the value of a property must not be printed.
func isSecret(name, value string) bool {
	return slices.Contains(Secrets, canonical(name)) || holdsSecret(value)
}

// shown is a value as messages print it: this is where it is decided what may be printed of
// the value of a key that is no secret itself. A value that holds one is hidden as a whole, as
// nobody knows where in it a secret ends.
func shown(value string) string {
	if holdsSecret(value) {
		return hidden
	}
	return quote(value)
}

// holdsSecret tells whether a value looks as if it had a secret in it, whatever it is for.
func holdsSecret(value string) bool {
	return holdsPassword(value) || holdsQuery(value) || secretInside.MatchString(value)
}

// holdsPassword tells whether a value looks like an address with a user and a password
// in it.
func holdsPassword(value string) bool {
	user, _, ok := strings.Cut(value, "@")
	return ok && strings.Contains(user, ":")
}

// holdsQuery tells whether a value holds an address with a query, where tokens and keys are
// often found, and under names that tell nothing.
func holdsQuery(value string) bool {
	_, rest, ok := strings.Cut(value, "://")
	return ok && strings.Contains(rest, "?")
}

// secretInside finds what is assigned to a name that sounds secret (password=, "token":,
// SharedAccessKey=), what an Authorization header holds, private keys and signed tokens.
var secretInside = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`(?:pass|pwd|secret|token|cred|cookie|jwt|jaas|signature|\bsig|apikey|(?:api|access|account|private|shared|subscription)[-_.]?key|x-[\w-]*key)` +
		`[\w.-]*["']?\s*[=:]`,
	`auth(?:orization|entication)?["']?\s*[=:]`,
	`\b(?:bearer|basic)\s+\S`,
	`-----BEGIN [A-Z ]*PRIVATE KEY`,
	`\beyJ[\w-]{8,}\.`,
}, "|"))

// soundsSecret guesses from the name of a property that this version does not know whether its
// value is a secret.
func soundsSecret(name string) bool {
	return slices.ContainsFunc([]string{"pass", "secret", "token", "key", "cred"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}

// innocent are the parameters with which an address of tokens may be printed; librdkafka prints
// it whenever a token can't be had.
var innocent = []string{"api-version", "audience", "client_id", "grant_type", "realm", "resource", "scope", "tenant", "version"}

// queryIsInnocent tells whether the query of an address may be printed.
func queryIsInnocent(address string) bool {
	_, query, ok := strings.Cut(address, "?")
	if !ok {
		return true
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return false
	}
	for name := range values {
		if !slices.Contains(innocent, strings.ToLower(name)) {
			return false
		}
	}
	return true
}

// told is a value and what is wrong with it.
func told(value string, secret bool, err error) string {
	if secret || holdsSecret(value) {
		return hidden + " " + withoutPieces(err.Error(), value)
	}
	return quote(value) + " " + err.Error()
}

// quoted finds a quoted piece of a message.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// withoutPieces hides what a message quotes of a value that is hidden.
func withoutPieces(message, value string) string {
	const tiny = 2 // signs that the message speaks of
	return quoted.ReplaceAllStringFunc(message, func(q string) string {
		piece, err := strconv.Unquote(q)
		piece = strings.TrimSuffix(piece, "…")
		if err == nil && (len(piece) <= tiny || !strings.Contains(value, piece)) {
			return q
		}
		return hidden
	})
}

// otherText takes the place of a name or a value that librdkafka must not quote; no user has one
// like it.
const otherText = "\x01"

// common keeps what two texts of librdkafka about the same thing have in common, which can't come
// from what differs between them. It is all that may be printed of a text that may quote a
// secret, whole, cut off or changed.
func common(text, other string) string {
	if text == other {
		return text
	}
	front := 0
	for front < len(text) && front < len(other) && text[front] == other[front] {
		front++
	}
	back := 0
	for back < len(text)-front && back < len(other)-front && text[len(text)-1-back] == other[len(other)-1-back] {
		back++
	}
	return text[:front] + hidden + text[len(text)-back:]
}

// Concealed lists the values of properties that must not be printed, in case librdkafka prints
// them: it knows only of some that they are secrets. What is as short as a word is not listed, as
// its place in an innocent line would tell more than it hides.
func (c *Config) Concealed() []string {
	const word = 8
	var values []string
	for _, p := range c.properties {
		if p.Secret && len(p.Value) >= word {
			values = append(values, p.Value)
		}
	}
	return values
}

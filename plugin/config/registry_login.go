package config

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	// maxForeign is how much of a text of a registry is looked at.
	maxForeign = 4096
	// maxTold is how much of it is told: several registries may have one each.
	maxTold = 600
)

// HideRegistryLogin makes a text that a schema registry had a part in fit for a log: without the
// password or token in any of the forms in which an answer may repeat them, on one line and
// bounded.
func (c *Config) HideRegistryLogin(text string) string {
	text = cut(text, maxForeign)
	for _, secret := range c.registrySecrets() {
		text = scrub(text, secret)
	}
	return cut(strings.Join(strings.Fields(text), " "), maxTold)
}

// registrySecrets are the secrets in each of their forms, the longest first: one may be a part of
// another.
func (c *Config) registrySecrets() (all []string) {
	for _, s := range []string{c.RegistryPassword, c.RegistryToken} {
		if s == "" {
			continue
		}
		quoted, _ := json.Marshal(s) // works with every text
		inURL := strings.TrimPrefix(url.UserPassword("", s).String(), ":")
		all = append(all, s, url.QueryEscape(s), url.PathEscape(s), inURL, strings.Trim(string(quoted), `"`))
		for _, plain := range []string{s, c.RegistryUser + ":" + s} {
			all = append(all, base64.StdEncoding.EncodeToString([]byte(plain)), base64.URLEncoding.EncodeToString([]byte(plain)))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// scrub removes a secret from a text that may quote it whole, cut off or trimmed: no
// run of four bytes of the secret survives. A shorter secret goes where it appears.
func scrub(text, secret string) string {
	const window = 4
	if len(secret) < window {
		if secret == "" {
			return text
		}
		return strings.ReplaceAll(text, secret, hidden)
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		n := 0 // length of the longest piece of the secret that starts at i
		for i+n < len(text) && strings.Contains(secret, text[i:i+n+1]) {
			n++
		}
		if n < window {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(hidden)
		i += n
	}
	return b.String()
}

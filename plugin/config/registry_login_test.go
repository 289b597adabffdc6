package config

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// An answer of a registry may repeat what it was asked with.
func TestConfig_HideRegistryLogin(t *testing.T) {
	const user, secret = "registry", `QZXJ 7/é"QZ+X=:J7QZ@&XJ7`
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	header := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))
	password, token := &Config{RegistryUser: user, RegistryPassword: secret}, &Config{RegistryToken: secret}
	for _, c := range []*Config{password, token} {
		for _, echo := range []string{
			secret, user + ":" + secret, string(quoted), url.QueryEscape(secret), url.PathEscape(secret),
			url.UserPassword(user, secret).String(), base64.StdEncoding.EncodeToString([]byte(secret)), "cut off: " + secret[:9],
			fmt.Sprintf("%q", secret), strings.Repeat("x", maxForeign-10) + secret,
		} {
			got := c.HideRegistryLogin("http://registry:8081 answers 401: " + echo + " is no login")
			if run.MatchString(got) || strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(secret))[:4]) {
				t.Errorf("%q is told as %q", echo, got)
			}
			if !strings.HasPrefix(got, "http://registry:8081 answers 401: ") || len(got) > maxTold+len("…") {
				t.Errorf("%q is told as %q", echo, got)
			}
		}
	}
	if got := password.HideRegistryLogin("bad credentials Basic " + header + "\n\tfor you"); got != "bad credentials Basic *** for you" {
		t.Errorf("%q", got)
	}
	if got := (&Config{}).HideRegistryLogin("nothing to hide"); got != "nothing to hide" {
		t.Errorf("%q", got)
	}
}

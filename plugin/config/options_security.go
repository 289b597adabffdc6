package config

import (
	"errors"
	"path/filepath"
	"strings"
)

var securityOptions = []Option{
	secretFile(Option{
		Name: "sasl_password_file",
		Doc:  "A file with the password, in place of `rdkafka.sasl.password`.",
		Note: "A line break at its end is left out. When the file changes, a new client with the new password takes over.",
	}, func(c *Config) *string { return &c.SASLPasswordFile }),
	secretFile(Option{
		Name: "sasl_oauthbearer_client_secret_file",
		Doc:  "The same for `rdkafka.sasl.oauthbearer.client.secret`.",
	}, func(c *Config) *string { return &c.OAuthSecretFile }),
	secretFile(Option{
		Name: "ssl_key_password_file",
		Doc:  "The same for `rdkafka.ssl.key.password`.",
	}, func(c *Config) *string { return &c.KeyPasswordFile }),
	yesNo(Option{
		Name: "aws_msk_iam", Default: "false",
		Doc: "Whether to log in at Amazon MSK with an identity of AWS.",
		Note: "Needs `aws_msk_iam_cluster_arn`. `rdkafka.security.protocol` is `sasl_ssl` then and `rdkafka.sasl.mechanism`" +
			" `OAUTHBEARER`. The credentials come from the default chain of AWS: environment, shared files, web identity," +
			" container, instance.",
	}, func(c *Config) *bool { return &c.MSKIAM }),
	typed(Option{
		Name: "aws_msk_iam_cluster_arn", Allowed: "arn:aws:kafka:REGION:ACCOUNT:cluster/…",
		Doc: "The ARN of the cluster; the region of the login is taken from it.",
	}, KindText, func(c *Config) *string { return &c.MSKClusterARN }, parseARN, asIs),
}

// secretFile makes a row that names a file with a secret. It is a secret itself: whoever takes it for the key of the password
// writes that here.
func secretFile(o Option, at func(*Config) *string) Option {
	o.Allowed, o.Secret = "the absolute path of a file", true
	return typed(o, KindText, at, func(path string) (string, error) {
		if !filepath.IsAbs(path) {
			return "", errors.New("is no absolute path of a file")
		}
		return path, nil
	}, asIs)
}

// secretFiles are the options that name a file with the value of a property.
var secretFiles = []struct {
	option, property string
	at               func(*Config) string
}{
	{"sasl_password_file", "sasl.password", func(c *Config) string { return c.SASLPasswordFile }},
	{"sasl_oauthbearer_client_secret_file", "sasl.oauthbearer.client.secret", func(c *Config) string { return c.OAuthSecretFile }},
	{"ssl_key_password_file", "ssl.key.password", func(c *Config) string { return c.KeyPasswordFile }},
}

// The parts of arn:PARTITION:kafka:REGION:ACCOUNT:RESOURCE.
const (
	arnService = 2
	arnRegion  = 3
	arnParts   = 6
)

// parseARN reads the ARN of a cluster.
func parseARN(text string) (string, error) {
	s := strings.TrimSpace(text)
	parts := strings.SplitN(s, ":", arnParts)
	if len(parts) < arnParts || parts[0] != "arn" || parts[arnService] != "kafka" || parts[arnRegion] == "" {
		return "", errors.New("is no ARN of a cluster; allowed: arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/UUID")
	}
	return s, nil
}

// MSKRegion is the region in which MSKIAM logs in.
func (c *Config) MSKRegion() string { return strings.Split(c.MSKClusterARN, ":")[arnRegion] }

package config

import (
	"errors"
	"strings"
)

var securityOptions = []Option{
	text(Option{
		Name: "sasl_password_file", Allowed: "the path of a file",
		Doc:  "A file with the password, in place of `rdkafka.sasl.password`.",
		Note: "A line break at its end is left out. When the file changes, a new client with the new password takes over.",
	}, func(c *Config) *string { return &c.SASLPasswordFile }),
	text(Option{
		Name: "sasl_oauthbearer_client_secret_file", Allowed: "the path of a file",
		Doc: "The same for `rdkafka.sasl.oauthbearer.client.secret`.",
	}, func(c *Config) *string { return &c.OAuthSecretFile }),
	text(Option{
		Name: "ssl_key_password_file", Allowed: "the path of a file",
		Doc: "The same for `rdkafka.ssl.key.password`.",
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

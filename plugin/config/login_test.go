package config

import (
	"slices"
	"strings"
	"testing"
)

const arn = "arn:aws-cn:kafka:cn-north-1:123456789012:cluster/logs/00000000-0000-0000-0000-000000000000-2"

// What the built-in output implies by aws_msk_iam, and the region that it takes from the ARN.
func TestDecode_IAM(t *testing.T) {
	c := mustDecode(t, minimal.with("aws_msk_iam", "true", "aws_msk_iam_cluster_arn", arn))
	for name, want := range map[string]string{"security.protocol": "sasl_ssl", "sasl.mechanisms": "OAUTHBEARER"} {
		if got, _ := property(c, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if c.MSKRegion() != "cn-north-1" {
		t.Errorf("the region is %q", c.MSKRegion())
	}
	own := mustDecode(t, minimal.with("aws_msk_iam", "true", "aws_msk_iam_cluster_arn", arn, "rdkafka.security.protocol", "SASL_SSL"))
	if got, _ := property(own, "security.protocol"); got != "SASL_SSL" {
		t.Errorf("security.protocol is %q, not the section's", got)
	}
}

// A file stands for the property, also where a login needs it, and the property is known by the file.
func TestDecode_SecretFiles(t *testing.T) {
	for _, f := range secretFiles {
		c := mustDecode(t, minimal.with("strict", "off", f.option, "/run/secrets/it"))
		if want := (Property{Name: f.property, File: "/run/secrets/it", Secret: true}); !slices.Contains(c.Properties(), want) {
			t.Errorf("%s: %v is not among %v", f.option, want, c.Properties())
		}
		if s := c.Summary(); !strings.Contains(s, f.option+"=***") || strings.Contains(s, f.property) {
			t.Errorf("%s: the summary is %s", f.option, s)
		}
	}
	mustDecode(t, minimal.with("rdkafka.security.protocol", "sasl_ssl", "rdkafka.sasl.mechanism", "PLAIN",
		"rdkafka.sasl.username", "me", "sasl_password_file", "/run/secrets/it"))
}

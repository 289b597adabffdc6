package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/config/configtest"
	"out_kafka_reconnect/reconnect/rdkafka"
)

// The sections of docs/security.md start, without a warning. Their files are ours.
func TestSecurityDocument_SectionsStart(t *testing.T) {
	text, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	cert, key := identity(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := strings.NewReplacer(
		"/etc/kafka/ca.pem", cert, "/etc/kafka/client.pem", cert, "/etc/kafka/client.key", key,
		"/run/secrets/kafka/password", secret, "/run/secrets/kafka/client_secret", secret,
	)
	_, rest, _ := strings.Cut(string(text), "\n## ")
	sections := 0
	for chapter := range strings.SplitSeq(rest, "\n## ") {
		title, body, _ := strings.Cut(chapter, "\n")
		for _, block := range strings.Split(body, "\n    [OUTPUT]\n")[1:] {
			block, _, _ = strings.Cut(block, "\n\n")
			sections++
			t.Run(title, func(t *testing.T) {
				s, err := configtest.Parse(title, ".conf", "\n[OUTPUT]\n"+files.Replace(block))
				if err != nil {
					t.Fatal(err)
				}
				cfg, err := config.Decode(s, librdkafka{})
				if err != nil {
					t.Fatal(err)
				}
				if len(cfg.Warnings) > 0 {
					t.Errorf("warnings: %q", cfg.Warnings)
				}
				client := clientOptions(cfg)
				if err := rdkafka.CheckAll(client.Properties, client.Files); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if sections != 6 {
		t.Errorf("the document has %d sections, want 6", sections)
	}
}

package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/plugin"
	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/config/configtest"
	"out_kafka_reconnect/reconnect/rdkafka"
	"out_kafka_reconnect/test/e2e/pki"
)

// elsewhere is librdkafka on the machine that a section is from: its files are there.
type elsewhere struct{ librdkafka }

func (elsewhere) CheckFile(string, string) error { return nil }

// librdkafka makes a client of every section in the wild that package config accepts. Which
// those are, and with which properties, is tested there.
func TestSectionsInTheWild_MakeAClient(t *testing.T) {
	sections, err := configtest.Read("plugin/config/testdata/wild")
	if err != nil {
		t.Fatal(err)
	}
	cert, key := identity(t)
	files := map[string]string{
		"ssl.ca.location": cert, "ssl.certificate.location": cert, "ssl.key.location": key,
	}
	for _, s := range sections {
		t.Run(s.Name, func(t *testing.T) {
			cfg, err := config.Decode(s, elsewhere{})
			if err != nil {
				if got, want := strings.Count(err.Error(), "\n")+1, len(s.Refused); got != want {
					t.Errorf("%d faults, want %d: %v", got, want, err)
				}
				return
			}
			props := clientOptions(cfg).Properties
			for i := range props {
				if path, ok := files[props[i].Name]; ok {
					props[i].Value = path
				}
			}
			if err := rdkafka.CheckAll(props, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every section in the wild that is accepted delivers, and says nothing but what its file
// expects. The brokers are ours, so addresses and logins are left out, and the Avro section for
// want of a registry.
func TestSectionsInTheWild_Deliver(t *testing.T) {
	sections, err := configtest.Read("plugin/config/testdata/wild")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	brokers := strings.Join(cluster.ListenAddrs(), ",")
	for _, s := range sections {
		if s.Refused != nil || s.Get("format") == "avro" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Decode(config.GetterFunc(func(name string) string {
				switch {
				case name == "brokers":
					return brokers
				case name == "rdkafka.bootstrap.servers", name == "rdkafka.security.protocol",
					name == "aws_msk_iam", name == "aws_msk_iam_cluster_arn",
					strings.HasPrefix(name, "rdkafka.sasl."), strings.HasPrefix(name, "rdkafka.ssl."):
					return ""
				}
				return s.Get(name)
			}), librdkafka{})
			if err != nil {
				t.Fatal(err)
			}
			host := &listener{t: t}
			relay := flblog.NewRelay(host, s.Name)
			client := clientOptions(cfg)
			client.Logger = relay.Logger()
			in, err := plugin.New(plugin.Options{
				Config: cfg,
				Open:   rdkafka.Opener(client),
				Relay:  relay, Name: s.Name,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			for range 2 {
				if got := in.Flush(record(), "kube.app", true); got != plugin.OK {
					t.Errorf("the flush is answered with %d, want OK", got)
				}
			}
		})
	}
}

// listener is a host that takes no complaint for right.
type listener struct{ t *testing.T }

func (listener) Enabled(level slog.Level) bool { return level >= slog.LevelWarn }

func (l listener) Print(_ slog.Level, line string) { l.t.Errorf("logged: %s", line) }

// record is a chunk of one record with the fields that the sections name.
func record() []byte {
	b := chunktest.Head(nil, 1_700_000_000, 0)
	fields := []string{"log", "GET /", "topic", "default-logs", "stream", "metrics", "pod_name", "web-1", "hostname", "node-1"}
	b = chunktest.Map(b, len(fields)/2)
	for _, text := range fields {
		b = chunktest.Str(b, text)
	}
	return b
}

// identity writes a certificate and its key, for the files that sections name.
func identity(t *testing.T) (cert, key string) {
	t.Helper()
	authority, err := pki.New("authority")
	if err != nil {
		t.Fatal(err)
	}
	made, err := authority.Issue("client")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := made.Write(cert, key); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

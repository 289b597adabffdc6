package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/config/configtest"
	"out_kafka_reconnect/reconnect/rdkafka"
)

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
			cfg, err := config.Decode(s, librdkafka{})
			if err != nil {
				if got, want := strings.Count(err.Error(), "\n")+1, len(s.Refused); got != want {
					t.Errorf("%d faults, want %d: %v", got, want, err)
				}
				return
			}
			props := clientProperties(cfg)
			for i := range props {
				if path, ok := files[props[i].Name]; ok {
					props[i].Value = path
				}
			}
			if err := rdkafka.CheckAll(props); err != nil {
				t.Error(err)
			}
		})
	}
}

// identity writes a certificate and its key, for the files that sections name.
func identity(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", pkcs8)
}

package rdkafka

import (
	"crypto/tls"
	"path/filepath"
	"testing"

	"out_kafka_reconnect/test/e2e/pki"
)

// identity is a certificate for 127.0.0.1, in a file together with its authority, which is its own.
type identity struct {
	cert, key string // paths
	pair      tls.Certificate
}

func newIdentity(t *testing.T, dir string) identity {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	authority, err := pki.New("authority")
	check(err)
	made, err := authority.Issue("test", "127.0.0.1")
	check(err)
	id := identity{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	check(made.Write(id.cert, id.key))
	id.pair, err = made.TLS()
	check(err)
	return id
}

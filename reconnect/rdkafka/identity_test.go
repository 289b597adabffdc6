package rdkafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// identity is a certificate for 127.0.0.1 that is its own authority.
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	check(err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(err)
	secret, err := x509.MarshalECPrivateKey(key)
	check(err)
	id := identity{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	check(os.WriteFile(id.cert, certPEM, 0o600))
	check(os.WriteFile(id.key, keyPEM, 0o600))
	id.pair, err = tls.X509KeyPair(certPEM, keyPEM)
	check(err)
	return id
}

// Package pki makes certificates for tests: authorities, and what they sign.
package pki

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
	"time"
)

// An Authority signs certificates. They are good for a day.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority.
func New(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := template(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	cert, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert, key}, nil
}

// Write writes the authority's certificate into a file, for whoever is to trust it.
func (a *Authority) Write(path string) error {
	return os.WriteFile(path, block("CERTIFICATE", a.cert.Raw), 0o600)
}

// Issue signs a certificate for a server or client of that name at these hosts, names or addresses.
func (a *Authority) Issue(name string, hosts ...string) (*Identity, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := template(name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	cert, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	chain := append(block("CERTIFICATE", cert.Raw), block("CERTIFICATE", a.cert.Raw)...)
	return &Identity{cert: chain, key: block("PRIVATE KEY", keyDER)}, nil
}

// An Identity is a key and its certificate.
type Identity struct{ cert, key []byte }

// Write writes the certificate and the key into two files.
func (i *Identity) Write(cert, key string) error {
	if err := os.WriteFile(cert, i.cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(key, i.key, 0o600)
}

// WriteStore writes both into one file, as Kafka wants it.
func (i *Identity) WriteStore(path string) error {
	return os.WriteFile(path, append(append([]byte{}, i.key...), i.cert...), 0o600)
}

// TLS is the identity for a server in Go.
func (i *Identity) TLS() (tls.Certificate, error) { return tls.X509KeyPair(i.cert, i.key) }

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

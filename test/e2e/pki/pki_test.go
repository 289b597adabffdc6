package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

// An identity is trusted by those who trust its authority, for its own hosts.
func TestIdentity_IsGoodForItsHosts(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	authority, err := New("ours")
	if err != nil {
		t.Fatal(err)
	}
	identity, err := authority.Issue("server", "127.0.0.1", "kafka.test")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		authority.Write(path("ca")), identity.Write(path("cert"), path("key")), identity.WriteStore(path("store")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	if ca, err := os.ReadFile(path("ca")); err != nil || !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority can't be read:", err)
	}
	store, err := tls.LoadX509KeyPair(path("store"), path("store"))
	if err != nil {
		t.Error("the store:", err)
	}
	pair, err := tls.LoadX509KeyPair(path("cert"), path("key"))
	if err != nil {
		t.Fatal(err)
	}
	if !pair.Leaf.Equal(store.Leaf) {
		t.Error("the store holds another certificate")
	}
	for host, good := range map[string]bool{"127.0.0.1": true, "kafka.test": true, "127.0.0.2": false, "other.test": false} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
	}
}

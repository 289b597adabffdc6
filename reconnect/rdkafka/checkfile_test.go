package rdkafka

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// block makes a PEM block; nobody looks into it.
func block(kind string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte{0x30, 0}}))
}

func TestCheckFile(t *testing.T) {
	dir := t.TempDir()
	file := func(content string) string {
		f, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(content); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	certificate, key := file("a comment\n"+block("CERTIFICATE")), file(block("EC PARAMETERS")+block("EC PRIVATE KEY"))
	for _, test := range []struct{ name, path, want string }{
		{"ssl.ca.location", certificate, ""},
		{"ssl.ca.location", file(block("TRUSTED CERTIFICATE")), ""},
		{"ssl.ca.location", dir, ""},
		{"ssl.ca.location", "probe", ""},
		{"https.ca.location", certificate, ""},
		{"ssl.certificate.location", file(block("PRIVATE KEY") + block("CERTIFICATE")), ""},
		{"ssl.key.location", key, ""},
		{"ssl.key.location", file(block("ENCRYPTED PRIVATE KEY")), ""},
		{"ssl.crl.location", file(block("X509 CRL")), ""},
		{"ssl.keystore.location", file("0\x82binary"), ""},
		{"sasl.password", file("geheim\n"), ""},
		{"ssl.ca.location", "/dev/null", ""},

		{"ssl.ca.location", filepath.Join(dir, "none"), "can't be read: no such file or directory"},
		{"ssl.ca.location", filepath.Join(certificate, "none"), "can't be read: not a directory"},
		{"ssl.ca.location", file("junk"), "holds no certificate in PEM"},
		{"ssl.ca.location", file(strings.TrimSuffix(block("CERTIFICATE"), "-----END CERTIFICATE-----\n")), "holds no certificate in PEM"},
		{"ssl.ca.location", file("0\x82\x01\x02"), "holds no certificate in PEM: it is in DER"},
		{"ssl.ca.location", file("\xfe\xed\xfe\xed\x00"), "holds no certificate in PEM: it is a key store of Java"},
		{"ssl.certificate.location", key, "holds no certificate in PEM"},
		{"ssl.certificate.location", dir, "is a folder, and a file is needed"},
		{"ssl.key.location", certificate, "holds no private key in PEM"},
		{"ssl.key.location", file(" \n"), "is empty"},
		{"ssl.crl.location", certificate, "holds no list of revoked certificates in PEM"},
		{"ssl.keystore.location", certificate, "is in PEM, and a key store of PKCS#12 is needed"},
		{"sasl.password", file("\n"), "is empty"},
	} {
		got := ""
		if err := CheckFile(test.name, test.path); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	for name := range fileForms {
		if !slices.Contains(fileProperties, name) {
			t.Errorf("%s is not watched", name)
		}
	}
}

func TestCheckFile_Unreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(block("PRIVATE KEY")), 0); err != nil {
		t.Fatal(err)
	}
	if err := CheckFile("ssl.key.location", path); err == nil || err.Error() != "can't be read: permission denied" {
		t.Errorf("got %v", err)
	}
}

// What only librdkafka finds out has the path too.
func TestCheckAll_NamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte(block("CERTIFICATE")), 0o600); err != nil {
		t.Fatal(err)
	}
	err := CheckAll([]Property{{"security.protocol", "ssl"}, {"ssl.ca.location", path}}, nil)
	if err == nil || !strings.Contains(err.Error(), `(ssl.ca.location is "`+path+`")`) {
		t.Errorf("got %v", err)
	}
}

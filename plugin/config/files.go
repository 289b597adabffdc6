package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tlsFiles and loginFiles are the properties that name a file or a folder which librdkafka reads
// when a client is opened.
var (
	tlsFiles = []string{
		"ssl.ca.location", "ssl.certificate.location", "ssl.crl.location", "ssl.key.location", "ssl.keystore.location",
	}
	loginFiles = []string{
		"https.ca.location", "sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.assertion.jwt.template.file",
	}
)

// validateFiles looks at the files that the client will read. Only at the start: what becomes
// of them later is noticed where they are read again.
func (d *decoder) validateFiles() {
	if d.checker == nil || d.bad[rdkafkaPrefix+propertyProtocol] {
		return
	}
	tls, login := d.secured()
	for _, p := range d.client {
		switch {
		case p.file != "" && (tls && forTLS(p.name) || login && forLogin(p.name)):
			d.checkFile(p.key, p.name, p.file, true)
		case tls && slices.Contains(tlsFiles, p.name), login && slices.Contains(loginFiles, p.name):
			d.checkFile(p.key, p.name, p.value, p.secret)
		}
	}
	if path := d.cfg.RegistryCAFile; path != "" && d.cfg.Format == FormatAvro {
		d.checkFile(d.label("schema_registry_ca_file"), "ssl.certificate.location", path, false) // the same form
	}
}

// checkFile notes what is wrong with a file. Whoever takes the key of a password's file for that
// of the password writes the password there, so such a path is shown only where there may be a file.
func (d *decoder) checkFile(key, property, path string, secret bool) {
	err := d.checker.CheckFile(property, path)
	if err == nil {
		return
	}
	if secret && !mayBeFile(path) {
		d.fault(key, hidden+" "+err.Error())
		return
	}
	d.fault(key, shown(path)+" "+err.Error())
}

// mayBeFile tells whether there is a folder for the path, other than the root.
func mayBeFile(path string) bool {
	folder := filepath.Dir(path)
	st, err := os.Stat(folder)
	return err == nil && st.IsDir() && strings.Trim(folder, "/.") != ""
}

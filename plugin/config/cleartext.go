package config

import (
	"slices"
	"strings"
)

// The values of security.protocol: two questions, four answers.
const (
	protocolPlain    = "plaintext"
	protocolTLS      = "ssl"
	protocolLogin    = "sasl_plaintext"
	protocolLoginTLS = "sasl_ssl"
)

// harmless are the properties of TLS and of logins that hold nothing that somebody could rely
// on: with another protocol they are left over, which is worth a warning and no more.
var harmless = []string{
	"enable.ssl.certificate.verification",
	"ssl.endpoint.identification.algorithm",
	"enable.sasl.oauthbearer.unsecure.jwt",
	propertyMechanism,
	propertyMethod,
}

// forTLS tells whether a property is about TLS to the brokers.
func forTLS(name string) bool {
	return strings.HasPrefix(name, "ssl") || strings.HasPrefix(name, "enable.ssl.")
}

// forLogin tells whether a property is about the login at the brokers.
func forLogin(name string) bool {
	return strings.HasPrefix(name, "sasl.") || strings.HasPrefix(name, "enable.sasl.")
}

// validateProtocol looks for TLS and logins that security.protocol does not switch on: the
// built-in output, and librdkafka, then send everything in clear text without a word.
func (d *decoder) validateProtocol() {
	if d.bad[rdkafkaPrefix+propertyProtocol] {
		return // what was meant is not known
	}
	tls, login := d.secured()
	wanted := d.wantedProtocol(tls, login)
	for _, p := range d.client {
		var lost string
		switch {
		case forTLS(p.name) && !tls:
			lost = "so that the records go in clear text"
		case forLogin(p.name) && !login:
			lost = "so that nobody logs in"
		default:
			continue
		}
		text := "has no effect with security.protocol " + d.protocol()
		if slices.Contains(harmless, p.name) {
			d.hint(p.key, text)
			continue
		}
		d.oversight(p.key, text+", "+lost+"; set rdkafka.security.protocol to "+wanted)
	}
	if tls {
		d.validatePairs()
	}
}

// secured tells what security.protocol switches on.
func (d *decoder) secured() (tls, login bool) {
	p := d.protocol()
	return p == protocolTLS || p == protocolLoginTLS, p == protocolLogin || p == protocolLoginTLS
}

// wantedProtocol guesses the protocol from what the section sets.
func (d *decoder) wantedProtocol(tls, login bool) string {
	for _, p := range d.client {
		if slices.Contains(harmless, p.name) {
			continue
		}
		tls = tls || forTLS(p.name)
		login = login || forLogin(p.name)
	}
	switch {
	case tls && login:
		return protocolLoginTLS
	case tls:
		return protocolTLS
	}
	return protocolLoginTLS + ", or to " + protocolLogin + " where the brokers have no TLS"
}

// tlsPairs are properties of TLS that do nothing without one of some others.
var tlsPairs = []struct {
	names  []string // of which the first that is set is told
	needs  []string
	advice string
}{
	{tlsCertificate, tlsKey, "its key: set rdkafka.ssl.key.location"},
	{tlsKey, tlsCertificate, "its certificate: set rdkafka.ssl.certificate.location"},
	{[]string{"ssl.key.password"}, tlsKey, "a key: set rdkafka.ssl.key.location"},
	{[]string{"ssl.keystore.password"}, []string{"ssl.keystore.location"}, "a key store: set rdkafka.ssl.keystore.location"},
}

// The two halves of a client certificate.
var (
	tlsCertificate = []string{"ssl.certificate.location", "ssl.certificate.pem"}
	tlsKey         = []string{"ssl.key.location", "ssl.key.pem"}
)

// validatePairs looks for one half of a client certificate: librdkafka shows none then.
func (d *decoder) validatePairs() {
	if _, ok := d.find("ssl.engine.location"); ok { // which has both
		return
	}
	for _, pair := range tlsPairs {
		p, ok := d.first(pair.names)
		if _, complete := d.first(pair.needs); ok && !complete {
			d.oversight(p.key, "has no effect without "+pair.advice)
		}
	}
}

// first finds the first of some properties that the section sets.
func (d *decoder) first(names []string) (clientProperty, bool) {
	for _, name := range names {
		if p, ok := d.find(name); ok {
			return p, true
		}
	}
	return clientProperty{}, false
}

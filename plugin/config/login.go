package config

import (
	"slices"
	"strings"
)

// The properties that decide about the login.
const (
	propertyProtocol  = "security.protocol"
	propertyMechanism = "sasl.mechanisms"
	propertyMethod    = "sasl.oauthbearer.method"
	propertyEndpoint  = "sasl.oauthbearer.token.endpoint.url"
	propertyUnsecured = "enable.sasl.oauthbearer.unsecure.jwt"

	mechanismOAuth = "OAUTHBEARER"
)

// readSecretFiles notes the properties whose value is in a file.
func (d *decoder) readSecretFiles() {
	for _, f := range secretFiles {
		path := f.at(d.cfg)
		if path == "" {
			continue
		}
		if p, ok := d.find(f.property); ok {
			d.fault(d.label(f.option), "contradicts "+p.key+"; keep one of them")
			continue
		}
		d.client = append(d.client, clientProperty{
			key: d.label(f.option), written: f.property, name: f.property, file: path, secret: true,
		})
	}
}

// impliedByIAM sets what aws_msk_iam implies, unless the section sets it.
func (d *decoder) impliedByIAM() {
	if !d.cfg.MSKIAM {
		return
	}
	for _, p := range []clientProperty{
		{name: propertyProtocol, value: protocolLoginTLS},
		{name: propertyMechanism, value: mechanismOAuth},
	} {
		if _, ok := d.find(p.name); !ok {
			p.key, p.written = d.label("aws_msk_iam"), p.name
			d.client = append(d.client, p)
		}
	}
}

// validateIAM makes sure that a login with AWS IAM happens if it is asked for.
func (d *decoder) validateIAM() {
	switch {
	case !d.cfg.MSKIAM && d.set("aws_msk_iam_cluster_arn"):
		d.warn(d.label("aws_msk_iam_cluster_arn") + " has no effect without aws_msk_iam true")
		return
	case !d.cfg.MSKIAM:
		return
	case !d.set("aws_msk_iam_cluster_arn"):
		// Never only a warning: the built-in output then connects without any login.
		d.fault(d.label("aws_msk_iam"), shown(d.text["aws_msk_iam"])+" needs aws_msk_iam_cluster_arn, to know the region")
	}
	for _, rule := range []struct {
		property, needs string
		right           func(value string) bool
	}{
		{propertyProtocol, protocolLoginTLS, func(string) bool { return d.protocol() == protocolLoginTLS }},
		{propertyMechanism, mechanismOAuth, func(v string) bool { return strings.TrimSpace(v) == mechanismOAuth }},
		{propertyMethod, "the method default", func(v string) bool { return v == "default" }},
		{propertyUnsecured, "it to be false", isFalse},
	} {
		if p, ok := d.find(rule.property); ok && !rule.right(p.value) {
			d.fault(p.key, p.shown()+" contradicts "+d.label("aws_msk_iam")+", which needs "+rule.needs)
		}
	}
}

// protocol is security.protocol in lower case.
func (d *decoder) protocol() string {
	if p, ok := d.find(propertyProtocol); ok {
		return strings.ToLower(strings.TrimSpace(p.value))
	}
	return protocolPlain
}

// mechanisms are the SASL mechanisms that librdkafka can have, with the feature that
// tells whether a build has it.
var mechanisms = []struct{ name, feature string }{
	{"PLAIN", "sasl_plain"},
	{"SCRAM-SHA-256", "sasl_scram"},
	{"SCRAM-SHA-512", "sasl_scram"},
	{mechanismOAuth, "sasl_oauthbearer"},
	{"GSSAPI", "sasl_gssapi"},
}

// validateLogin finds logins that can't work before librdkafka refuses to make a
// client: this way the message comes with all others and names what to do.
func (d *decoder) validateLogin() {
	d.validateIAM()
	d.validateEndpoint()
	p, ok := d.find(propertyMechanism)
	sasl := strings.HasPrefix(d.protocol(), "sasl_")
	if !ok && !sasl {
		return
	}
	mechanism := strings.TrimLeft(p.value, " \t") // as librdkafka does
	if !ok {
		mechanism = "GSSAPI" // librdkafka's default
		p.key = "rdkafka.sasl.mechanism"
	}
	if features := d.features(); features != "" {
		has := strings.Split(features, ",")
		var allowed []string
		for _, m := range mechanisms {
			if slices.Contains(has, m.feature) {
				allowed = append(allowed, m.name)
			}
		}
		if !slices.Contains(allowed, mechanism) {
			d.fault(p.key, refusedMechanism(p, ok)+strings.Join(allowed, ", "))
			return
		}
	}
	switch {
	case !sasl:
	case mechanism == "PLAIN" || strings.HasPrefix(mechanism, "SCRAM-"):
		d.needCredential("sasl.username")
		d.needCredential("sasl.password")
	case mechanism == mechanismOAuth:
		d.needTokens(p)
	}
}

// validateEndpoint keeps secrets out of the address of the tokens: whatever fails there,
// librdkafka tells with the whole address.
func (d *decoder) validateEndpoint() {
	p, ok := d.find(propertyEndpoint)
	if !ok {
		return
	}
	const own = "; a secret belongs into rdkafka.sasl.oauthbearer.client.id and rdkafka.sasl.oauthbearer.client.secret"
	switch {
	case holdsPassword(p.value):
		d.fault(p.key, p.shown()+" names a user"+own)
	case !queryIsInnocent(p.value):
		d.fault(p.key, p.shown()+" has a query that may hold a secret, and librdkafka prints the address in its errors"+own+
			"; allowed in the query: "+strings.Join(innocent, ", "))
	}
}

// needTokens makes sure that somebody makes tokens: librdkafka would wait for one without a word.
func (d *decoder) needTokens(mechanism clientProperty) {
	method, _ := d.find(propertyMethod)
	unsecured, _ := d.find(propertyUnsecured)
	if d.cfg.MSKIAM || strings.EqualFold(method.value, "oidc") || isTrue(unsecured.value) {
		return
	}
	d.fault(mechanism.key, mechanism.shown()+" needs a source of tokens: set rdkafka."+propertyMethod+" to oidc with the keys of"+
		" the server, or aws_msk_iam; for tests only there is rdkafka."+propertyUnsecured)
}

// features is empty if they are not known.
func (d *decoder) features() string {
	if d.checker == nil {
		return ""
	}
	return d.checker.Features()
}

// refusedMechanism begins the sentence that ends with the list of allowed mechanisms.
func refusedMechanism(p clientProperty, set bool) string {
	switch {
	case !set:
		return "is not set and means GSSAPI then, which needs a librdkafka with Kerberos and this one has none;" +
			" set it to one of: "
	case p.value == "GSSAPI":
		return p.shown() + " needs a librdkafka with Kerberos, and this one has none; use another login, or the" +
			" built-in kafka output; allowed: "
	}
	return p.shown() + " is unknown; allowed, in capitals: "
}

func (d *decoder) needCredential(name string) {
	if _, ok := d.find(name); !ok {
		d.fault("rdkafka."+name, "is not set, and the login needs it; an environment variable that is not set gives none")
	}
}

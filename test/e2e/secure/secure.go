// Package secure makes a Kafka that has a listener for each kind of TLS and login, with the certificates, users and servers
// that belong to them, all made on the spot.
//
//	TLS        a certificate for this host
//	MUTUAL     the same, and clients need one too
//	ELSEWHERE  a certificate for another host
//	LOGIN      TLS, and SASL with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
//	UNSECURED  OAUTHBEARER with tokens that nobody has signed
//	OIDC       OAUTHBEARER with the tokens of a server
//	IAM        OAUTHBEARER with the tokens of AWS IAM
package secure

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"out_kafka_reconnect/test/e2e/kafka"
	"out_kafka_reconnect/test/e2e/pki"
)

// Who may log in.
const (
	User         = "agent"
	Password     = "correct-horse-and-battery"
	ClientID     = "fluent-bit"
	ClientSecret = "staple-of-the-client"
	AccessKey    = "AKIDEXAMPLE"
	SecretKey    = "wJalrXUtnFEMI-of-the-account"
)

// Secrets are what must stand in no log, whichever scenario it is of.
var Secrets = []string{
	Password, ClientSecret, SecretKey,
	encode([]byte(`{"alg":"none"}`)),                               // tokens that nobody has signed
	encode([]byte("https://kafka.eu-west-1.amazonaws.com/?"))[:50], // tokens of AWS IAM
	"X-Amz-Signature",
	base64.StdEncoding.EncodeToString([]byte(ClientID + ":" + ClientSecret)), // the login at the server of tokens
	"PRIVATE KEY-----",
}

//go:embed IamValidator.java
var iamValidator []byte

// A Kafka is the surroundings of one cluster.
type Kafka struct {
	dir    string
	tokens *tokenServer
}

// New makes the files in a folder, and the server of tokens.
func New(dir string) (*Kafka, error) {
	k := &Kafka{dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	authority, err := k.identities()
	if err != nil {
		return nil, fmt.Errorf("making certificates: %w", err)
	}
	for name, text := range map[string]string{
		"password":        Password + "\n",
		"client_secret":   ClientSecret + "\n",
		"aws_credentials": "[default]\naws_access_key_id = " + AccessKey + "\naws_secret_access_key = " + SecretKey + "\n",
		"wrong":           "not-it\n",
	} {
		if err := os.WriteFile(k.path(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	k.tokens, err = newTokenServer(authority)
	return k, err
}

func (k *Kafka) path(name string) string { return filepath.Join(k.dir, name) }

// identities writes two authorities, ca.pem and stranger.pem, the identities of the brokers, and a client of each authority:
// client and intruder, both .pem and .key.
func (k *Kafka) identities() (*pki.Authority, error) {
	stranger, err := pki.New("stranger")
	if err != nil {
		return nil, err
	}
	if err := stranger.Write(k.path("stranger.pem")); err != nil {
		return nil, err
	}
	if err := k.client(stranger, "intruder"); err != nil {
		return nil, err
	}
	authority, err := pki.New("authority")
	if err != nil {
		return nil, err
	}
	if err := authority.Write(k.path("ca.pem")); err != nil {
		return nil, err
	}
	for name, host := range map[string]string{"broker": "127.0.0.1", "elsewhere": "kafka.elsewhere.test"} {
		identity, err := authority.Issue(name, host)
		if err != nil {
			return nil, err
		}
		if err := identity.WriteStore(k.path(name + ".pem")); err != nil {
			return nil, err
		}
	}
	return authority, k.client(authority, "client")
}

// client writes the identity of a client.
func (k *Kafka) client(authority *pki.Authority, name string) error {
	identity, err := authority.Issue(name)
	if err != nil {
		return err
	}
	return identity.Write(k.path(name+".pem"), k.path(name+".key"))
}

const oauth = "org.apache.kafka.common.security.oauthbearer."

// Options adds the listeners to the options of a cluster.
func (k *Kafka) Options(ctx context.Context, dist *kafka.Distribution, o *kafka.Options) error {
	classes := k.path("classes")
	if err := dist.Compile(ctx, classes, "IamValidator.java", iamValidator); err != nil {
		return err
	}
	o.ClassPath = append(o.ClassPath, classes)
	o.SystemProperties = map[string]string{
		"iam.key": AccessKey,
		"org.apache.kafka.sasl.oauthbearer.allowed.urls": k.tokens.keys.URL,
	}
	store := func(name string, more ...string) map[string]string {
		settings := map[string]string{"ssl.keystore.type": "PEM", "ssl.keystore.location": k.path(name + ".pem"), "ssl.client.auth": "none"}
		for i := 0; i < len(more); i += 2 {
			settings[more[i]] = more[i+1]
		}
		return settings
	}
	login := func(module string, more ...string) map[string]string {
		return store("broker", append([]string{
			"sasl.enabled.mechanisms", "OAUTHBEARER", "oauthbearer.sasl.jaas.config", oauth + "OAuthBearerLoginModule required" + module + ";",
		}, more...)...)
	}
	o.Secured = map[string]kafka.Security{
		"TLS":       {Protocol: "SSL", Settings: store("broker")},
		"ELSEWHERE": {Protocol: "SSL", Settings: store("elsewhere")},
		"MUTUAL": {Protocol: "SSL", Settings: store("broker", "ssl.client.auth", "required",
			"ssl.truststore.type", "PEM", "ssl.truststore.location", k.path("ca.pem"))},
		"LOGIN": {Protocol: "SASL_SSL", Settings: store("broker", "sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
			"plain.sasl.jaas.config", fmt.Sprintf("org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=%q;", User, Password),
			"scram-sha-256.sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required;",
			"scram-sha-512.sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required;")},
		"UNSECURED": {Protocol: "SASL_SSL", Settings: login(` unsecuredLoginStringClaim_sub="broker"`)},
		"OIDC": {Protocol: "SASL_SSL", Settings: login("",
			"oauthbearer.sasl.server.callback.handler.class", oauth+"OAuthBearerValidatorCallbackHandler",
			"sasl.oauthbearer.jwks.endpoint.url", k.tokens.keys.URL,
			"sasl.oauthbearer.expected.audience", audience, "sasl.oauthbearer.expected.issuer", issuer)},
		"IAM": {Protocol: "SASL_SSL", Settings: login("",
			"oauthbearer.sasl.server.callback.handler.class", "IamValidator",
			"oauthbearer.connections.max.reauth.ms", "60000")},
	}
	return nil
}

// Prepare makes the users of a cluster that is up.
func (k *Kafka) Prepare(ctx context.Context, cluster *kafka.Cluster) error {
	admin, err := cluster.Admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} { // one request takes a user once
		done, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{
			{User: User, Mechanism: mechanism, Iterations: 4096, Password: Password},
		})
		if err := errors.Join(err, done.Error()); err != nil {
			return err
		}
	}
	return nil
}

// Vars are what stands for the surroundings in a host's configuration: ${SECURE} for the folder of the files, ${TOKENS} for
// the server of tokens, ${BROKERS_TLS} and so on for the listeners.
func (k *Kafka) Vars(cluster *kafka.Cluster) map[string]string {
	vars := map[string]string{"SECURE": k.dir, "TOKENS": k.tokens.issuer.URL}
	for _, name := range []string{"TLS", "MUTUAL", "ELSEWHERE", "LOGIN", "UNSECURED", "OIDC", "IAM"} {
		vars["BROKERS_"+name] = strings.Join(cluster.SecuredAddrs(name), ",")
	}
	return vars
}

// Secrets are those that came up in the life of this one.
func (k *Kafka) Secrets() []string { return k.tokens.parts() }

// Close ends the server of tokens.
func (k *Kafka) Close() { k.tokens.close() }

package outage

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A pki holds the files of a secure cluster: an authority that the plugin trusts, a certificate of it for the broker, and
// one of a stranger.
type pki struct {
	authority, right, wrong string // paths
}

const (
	user          = "agent"
	rightPassword = "correct-horse"
	wrongPassword = "battery-staple"
)

// newPKI makes the files in a folder.
func newPKI(dir string) (*pki, error) {
	p := &pki{
		authority: filepath.Join(dir, "authority.pem"),
		right:     filepath.Join(dir, "right.pem"),
		wrong:     filepath.Join(dir, "wrong.pem"),
	}
	ours, err := p.issue("ours", p.right)
	if err != nil {
		return nil, err
	}
	if _, err := p.issue("stranger", p.wrong); err != nil {
		return nil, err
	}
	return p, os.WriteFile(p.authority, ours, 0o600)
}

// issue makes an authority and writes the broker's key and its certificate by that authority into one file, as Kafka wants
// it. It returns the certificate of the authority.
func (p *pki) issue(name, path string) ([]byte, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of " + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "broker"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	text := append(block("PRIVATE KEY", keyDER), block("CERTIFICATE", leafDER)...)
	text = append(text, block("CERTIFICATE", caDER)...)
	return block("CERTIFICATE", caDER), os.WriteFile(path, text, 0o600)
}

// keystoreLocation is the setting of the broker that names its certificate.
const keystoreLocation = "listener.name.proxy.ssl.keystore.location"

// properties make the broker's port for the plugin one with TLS, SCRAM and ACLs.
func (p *pki) properties() map[string]string {
	return map[string]string{
		"listener.security.protocol.map":                     "CLIENT:PLAINTEXT,RIG:PLAINTEXT,PROXY:SASL_SSL,CONTROLLER:PLAINTEXT",
		"listener.name.proxy.ssl.keystore.type":              "PEM",
		keystoreLocation:                                     p.right,
		"listener.name.proxy.ssl.client.auth":                "none",
		"listener.name.proxy.sasl.enabled.mechanisms":        "SCRAM-SHA-256",
		"listener.name.proxy.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"authorizer.class.name":                              "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                                        "User:ANONYMOUS", // everyone on the other ports: the node itself and the rig
		"allow.everyone.if.no.acl.found":                     "false",
	}
}

// section are the plugin's settings.
func (p *pki) section() string {
	return "rdkafka.security.protocol sasl_ssl\nrdkafka.ssl.ca.location " + p.authority +
		"\nrdkafka.sasl.mechanism SCRAM-SHA-256\nrdkafka.sasl.username " + user + "\nrdkafka.sasl.password " + rightPassword + "\n"
}

// setPassword changes the password that the broker knows.
func (a *arena) setPassword(ctx context.Context, password string) error {
	return a.admin(ctx, func(ctx context.Context, client *kadm.Client) error {
		done, err := client.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{
			{User: user, Mechanism: kadm.ScramSha256, Iterations: 4096, Password: password},
		})
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			return fmt.Errorf("changing the password: %w", err)
		}
		return nil
	})
}

func password(password string) Step {
	return func(ctx context.Context, w *world) error { return w.arena.setPassword(ctx, password) }
}

// rightCertificate and wrongCertificate change what the broker shows to new connections.
func rightCertificate(ctx context.Context, w *world) error {
	return w.arena.show(ctx, w.arena.pki.right)
}

func wrongCertificate(ctx context.Context, w *world) error {
	return w.arena.show(ctx, w.arena.pki.wrong)
}

// show returns when new connections see the certificate: the broker takes a change over a moment after it has answered.
func (a *arena) show(ctx context.Context, keystore string) error {
	want, err := tls.LoadX509KeyPair(keystore, keystore)
	if err != nil {
		return fmt.Errorf("changing the certificate: %w", err)
	}
	if err := a.setKeystore(ctx, keystore); err != nil {
		return err
	}
	for {
		shown, err := shownBy(ctx, a.cluster.ProxyTargets()[0])
		if err == nil && shown.Equal(want.Leaf) {
			return nil
		}
		if pause(ctx, askEvery) != nil {
			return fmt.Errorf("changing the certificate: the broker still shows another one: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// askEvery is how often the broker's certificate is looked at while it is being changed.
const askEvery = 50 * time.Millisecond

// shownBy returns the certificate that is shown at an address, whoever has signed it.
func shownBy(ctx context.Context, addr string) (*x509.Certificate, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

func (a *arena) setKeystore(ctx context.Context, keystore string) error {
	return a.admin(ctx, func(ctx context.Context, client *kadm.Client) error {
		done, err := client.AlterBrokerConfigs(ctx, []kadm.AlterConfig{
			{Op: kadm.SetConfig, Name: keystoreLocation, Value: &keystore},
		}, 1)
		for _, one := range done {
			err = errors.Join(err, one.Err)
		}
		if err != nil {
			return fmt.Errorf("changing the certificate: %w", err)
		}
		return nil
	})
}

// acl describes the right to write to the topic.
func (w *world) acl() *kadm.ACLBuilder {
	return kadm.NewACLs().Topics(w.topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpWrite, kadm.OpDescribe).Allow("User:" + user).AllowHosts("*")
}

// grant gives the right to write to the topic, deny takes it.
func grant(ctx context.Context, w *world) error {
	return w.arena.admin(ctx, func(ctx context.Context, client *kadm.Client) error {
		done, err := client.CreateACLs(ctx, w.acl())
		for _, one := range done {
			err = errors.Join(err, one.Err)
		}
		return err
	})
}

func deny(ctx context.Context, w *world) error {
	return w.arena.admin(ctx, func(ctx context.Context, client *kadm.Client) error {
		done, err := client.DeleteACLs(ctx, w.acl())
		for _, one := range done {
			err = errors.Join(err, one.Err)
		}
		return err
	})
}

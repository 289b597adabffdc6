package outage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"out_kafka_reconnect/test/e2e/kafka"
	"out_kafka_reconnect/test/e2e/pki"
	"out_kafka_reconnect/test/e2e/rig"
)

// identities are the files of a secure cluster: an authority that the plugin trusts, a certificate of it for the broker,
// and one of a stranger.
type identities struct {
	authority, right, wrong string // paths
}

const (
	user          = "agent"
	rightPassword = "correct-horse"
	wrongPassword = "battery-staple"
)

// newIdentities makes the files in a folder.
func newIdentities(dir string) (*identities, error) {
	p := &identities{
		authority: filepath.Join(dir, "authority.pem"),
		right:     filepath.Join(dir, "right.pem"),
		wrong:     filepath.Join(dir, "wrong.pem"),
	}
	ours, err := issue("ours", p.right)
	if err != nil {
		return nil, err
	}
	if _, err := issue("stranger", p.wrong); err != nil {
		return nil, err
	}
	return p, ours.Write(p.authority)
}

// issue makes an authority and writes a broker's identity by it.
func issue(name, path string) (*pki.Authority, error) {
	authority, err := pki.New("authority of " + name)
	if err != nil {
		return nil, err
	}
	broker, err := authority.Issue("broker", "127.0.0.1", "localhost")
	if err != nil {
		return nil, err
	}
	return authority, broker.WriteStore(path)
}

// keystoreLocation is the setting of the broker that names its certificate.
var keystoreLocation = kafka.ListenerPrefix("PROXY") + "ssl.keystore.location"

// secure makes the broker's port for the plugin one with TLS, SCRAM and ACLs.
func (p *identities) secure(o *kafka.Options) {
	o.ProxySecurity = kafka.Security{
		Protocol: "SASL_SSL",
		Settings: map[string]string{
			"ssl.keystore.type":              "PEM",
			"ssl.keystore.location":          p.right,
			"ssl.client.auth":                "none",
			"sasl.enabled.mechanisms":        "SCRAM-SHA-256",
			"scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		},
	}
	o.Properties = map[string]string{
		"authorizer.class.name":          "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                    "User:ANONYMOUS", // everyone on the other ports: the node itself and the rig
		"allow.everyone.if.no.acl.found": "false",
	}
}

// section are the plugin's settings.
func (p *identities) section() string {
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
	return w.arena.show(ctx, w.arena.files.right)
}

func wrongCertificate(ctx context.Context, w *world) error {
	return w.arena.show(ctx, w.arena.files.wrong)
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
		if rig.Pause(ctx, askEvery) != nil {
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

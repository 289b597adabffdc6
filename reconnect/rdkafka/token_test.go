package rdkafka

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

// A loginDesk is a broker that takes any OAUTHBEARER login, and keeps what it was shown.
type loginDesk struct {
	addr  string
	mu    sync.Mutex
	shown []string
}

func newLoginDesk(t *testing.T) *loginDesk {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "alpha"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	d := &loginDesk{addr: cluster.ListenAddrs()[0]}
	cluster.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		answer := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
		answer.SupportedMechanisms = []string{"OAUTHBEARER"}
		return answer, nil, true
	})
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.shown = append(d.shown, string(r.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes))
		return r.ResponseKind(), nil, true
	})
	return d
}

func (d *loginDesk) last() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.shown) == 0 {
		return ""
	}
	return d.shown[len(d.shown)-1]
}

// openWithTokens makes a client that logs in with the tokens of a source.
func openWithTokens(t *testing.T, addr string, source reconnect.TokenSource) *rig {
	t.Helper()
	r := &rig{t: t}
	c, err := Open(Options{
		Properties: []Property{
			{"bootstrap.servers", addr},
			{"security.protocol", "sasl_plaintext"},
			{"sasl.mechanism", "OAUTHBEARER"},
			{"reconnect.backoff.max.ms", "250"},
		},
		Tokens: source, TokenTimeout: time.Second, TokenBackoffMin: 10 * time.Millisecond, TokenBackoffMax: 20 * time.Millisecond,
	}, 1, r.take)
	if err != nil {
		t.Fatal(err)
	}
	r.Client = c
	t.Cleanup(func() { _ = c.Close(2 * time.Second) })
	return r
}

func TestClient_LogsInWithTheTokenOfItsSource(t *testing.T) {
	desk := newLoginDesk(t)
	r := openWithTokens(t, desk.addr, func(context.Context) (reconnect.Token, error) {
		return reconnect.Token{Value: "the-token", Principal: "me", Expires: time.Now().Add(time.Hour)}, nil
	})
	d := r.Produce(numbered("alpha", 0, 1))
	wait(t, d, 10*time.Second)
	if f := d.Failures(); len(f) > 0 {
		t.Errorf("%+v", f)
	}
	if got, want := desk.last(), "n,,\x01auth=Bearer the-token\x01\x01"; got != want {
		t.Errorf("the broker was shown %q, want %q", got, want)
	}
}

// A source that fails is the reason why there is no connection, of class authentication, and is asked again soon: the
// client alone would wait for ten seconds.
func TestClient_TellsThatThereIsNoToken(t *testing.T) {
	desk := newLoginDesk(t)
	var mu sync.Mutex
	asked := 0
	r := openWithTokens(t, desk.addr, func(context.Context) (reconnect.Token, error) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked < 4 {
			return reconnect.Token{}, errors.New("the source is dry")
		}
		return reconnect.Token{Value: "late", Principal: "me", Expires: time.Now().Add(time.Hour)}, nil
	})
	d := r.Produce(numbered("alpha", 0, 1))
	wait(t, d, 10*time.Second)
	if !strings.Contains(desk.last(), "Bearer late\x01") {
		t.Errorf("the broker was shown %q", desk.last())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	told := 0
	for _, n := range r.notices {
		if n.Kind == reconnect.NoticeError && n.Class == fsm.ClassAuthentication && strings.Contains(n.Text, "the source is dry") {
			told++
		}
	}
	if told != 3 {
		t.Errorf("the failure was told %d times, want 3: %+v", told, r.notices)
	}
}

// The client asks for the next token before the one it has expires.
func TestClient_AsksForATokenBeforeTheOldOneExpires(t *testing.T) {
	desk := newLoginDesk(t)
	var mu sync.Mutex
	var asked []time.Time
	const life = 3 * time.Second
	r := openWithTokens(t, desk.addr, func(context.Context) (reconnect.Token, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, time.Now())
		return reconnect.Token{Value: "short", Principal: "me", Expires: time.Now().Add(life)}, nil
	})
	r.until(10*time.Second, "a second token", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(asked) > 1
	})
	mu.Lock()
	defer mu.Unlock()
	if gap := asked[1].Sub(asked[0]); gap < life/2 || gap > life+time.Second {
		t.Errorf("the second token was asked for after %s of a life of %s", gap, life)
	}
}

// An outage for want of a token has its reason, though no connection is tried, and ends when there is one.
func TestLife_NoToken(t *testing.T) {
	t.Parallel()
	desk := newLoginDesk(t)
	var good atomic.Bool
	l := superviseWith(t, Options{
		Tokens: func(context.Context) (reconnect.Token, error) {
			if !good.Load() {
				return reconnect.Token{}, errors.New("the source is dry")
			}
			return reconnect.Token{Value: "late", Principal: "me", Expires: time.Now().Add(time.Hour)}, nil
		},
		TokenTimeout: time.Second, TokenBackoffMin: 100 * time.Millisecond, TokenBackoffMax: 500 * time.Millisecond,
	}, desk.addr, fsm.Config{ConnectTimeout: time.Second}, Property{"security.protocol", "sasl_plaintext"}, Property{"sasl.mechanism", "OAUTHBEARER"})
	if _, err := l.Produce(numbered("alpha", 0, 1)); err != nil {
		t.Fatal(err)
	}
	l.until(10*time.Second, "an outage", func() bool { return l.Status().State == fsm.AllDown })
	if st := l.Status(); st.Reason != fsm.ClassAuthentication || !strings.Contains(l.text(), "the source is dry") {
		t.Errorf("the reason is %s; the log:\n%s", st.Reason, l.text())
	}
	good.Store(true)
	l.deliver(10*time.Second, numbered("alpha", 1, 1))
}

// A source that hangs ends with the client.
func TestClient_CloseEndsTheSource(t *testing.T) {
	desk := newLoginDesk(t)
	asked := make(chan struct{}, 100)
	r := openWithTokens(t, desk.addr, func(ctx context.Context) (reconnect.Token, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return reconnect.Token{}, ctx.Err()
	})
	<-asked
	began := time.Now()
	if err := r.Close(2 * time.Second); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 900*time.Millisecond {
		t.Errorf("the close took %s, as if it had waited for the source", took)
	}
}

// A server of tokens that hangs does not hold up the check of a configuration, and with it the start of the host.
func TestCheckAll_SparesTheTokenServer(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0") // connections wait for an accept
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	oidc := []Property{
		{"bootstrap.servers", "127.0.0.1:1"},
		{"security.protocol", "sasl_plaintext"},
		{"sasl.mechanism", "OAUTHBEARER"},
		{"sasl.oauthbearer.method", "OIDC"},
		{"sasl.oauthbearer.token.endpoint.url", "http://" + server.Addr().String()},
		{"sasl.oauthbearer.client.secret", "geheim"},
	}
	began := time.Now()
	if err := CheckAll(append(oidc, Property{"sasl.oauthbearer.client.id", "me"}), nil); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the check took %s", took)
	}
	if err := CheckAll(oidc, nil); err == nil || !strings.Contains(err.Error(), "client.id") {
		t.Errorf("without a client.id: %v", err)
	}
}

// tokenTable is a client that takes tokens down.
type tokenTable struct {
	tokens, failures []string
	refuse           error
}

func (c *tokenTable) setToken(t reconnect.Token) error {
	c.tokens = append(c.tokens, t.Value)
	return c.refuse
}

func (c *tokenTable) tokenFailed(reason string) { c.failures = append(c.failures, reason) }

func TestTokenKeeper_Pace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, began := &tokenTable{}, time.Now()
		var asked []time.Duration
		k := startTokens(Options{
			Tokens: func(ctx context.Context) (reconnect.Token, error) {
				asked = append(asked, time.Since(began))
				<-ctx.Done()
				return reconnect.Token{}, ctx.Err()
			},
			Logger: slog.New(slog.DiscardHandler), TokenTimeout: 4 * time.Second, TokenBackoffMin: time.Second, TokenBackoffMax: 2 * time.Second,
		}, table)
		k.want()
		k.want()
		time.Sleep(30 * time.Second)
		k.close()
		if len(asked) < 5 || len(asked) > 7 {
			t.Errorf("the source was asked after %s", asked)
		}
		for _, reason := range table.failures {
			if reason != "there is no token for the login: none after 4s: context deadline exceeded" {
				t.Errorf("the reason is %q", reason)
			}
		}
	})
}

func TestTokenKeeper_TriesUntilThereIsAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &tokenTable{}
		fails := 2
		k := startTokens(Options{
			Tokens: func(context.Context) (reconnect.Token, error) {
				if fails--; fails >= 0 {
					return reconnect.Token{}, errors.New("not yet")
				}
				return reconnect.Token{Value: "one"}, nil
			},
			Logger: slog.New(slog.DiscardHandler), TokenTimeout: time.Second, TokenBackoffMin: time.Second, TokenBackoffMax: time.Second,
		}, table)
		k.want()
		time.Sleep(10 * time.Second)
		k.close()
		if len(table.tokens) != 1 || len(table.failures) != 2 {
			t.Errorf("%d tokens and %d failures for one wish, want 1 and 2", len(table.tokens), len(table.failures))
		}
	})
}

func TestTokenKeeper_AClientThatRefusesIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &tokenTable{refuse: errors.New("the client refuses the token: why")}
		k := startTokens(Options{
			Tokens: func(context.Context) (reconnect.Token, error) { return reconnect.Token{Value: "bad"}, nil },
			Logger: slog.New(slog.DiscardHandler), TokenTimeout: time.Second, TokenBackoffMin: time.Minute, TokenBackoffMax: time.Minute,
		}, table)
		k.want()
		synctest.Wait()
		k.close()
		if len(table.failures) != 1 || table.failures[0] != "there is no token for the login: the client refuses the token: why" {
			t.Errorf("the failures are %q", table.failures)
		}
	})
}

// Librdkafka's own lines hold no secret, whatever it is told to say.
func TestClient_NoSecretInItsLines(t *testing.T) {
	const secret = "correct-horse"
	desk := newLoginDesk(t)
	b := newBroker(t, broker.Options{Kfake: []kfake.Opt{
		kfake.EnableSASL(), kfake.Superuser("PLAIN", "agent", secret), kfake.Superuser("SCRAM-SHA-256", "agent", secret), kfake.Superuser("SCRAM-SHA-512", "agent", secret),
	}})
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"} {
		t.Run(mechanism, func(t *testing.T) {
			log := &lines{}
			o := Options{
				Properties: []Property{
					{"bootstrap.servers", b.Addrs()[0]},
					{"security.protocol", "sasl_plaintext"},
					{"sasl.mechanism", mechanism},
					{"sasl.username", "agent"},
					{"sasl.password", secret},
					{"sasl.oauthbearer.client.secret", secret},
					{"ssl.key.password", secret},
					{"debug", "all"},
					{"log_level", "7"},
				},
				Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			if mechanism == "OAUTHBEARER" {
				o.Properties[0].Value = desk.addr
				o.TokenTimeout, o.TokenBackoffMin, o.TokenBackoffMax = time.Second, time.Second, time.Second
				o.Tokens = func(context.Context) (reconnect.Token, error) {
					return reconnect.Token{Value: secret, Principal: "me", Expires: time.Now().Add(time.Hour)}, nil
				}
			}
			r := &rig{t: t}
			c, err := Open(o, 1, r.take)
			if err != nil {
				t.Fatal(err)
			}
			r.Client = c
			t.Cleanup(func() { _ = c.Close(2 * time.Second) })
			wait(t, r.Produce(numbered("alpha", 0, 1)), 10*time.Second)
			text := log.text()
			if strings.Contains(text, secret) {
				t.Error("the secret is in the lines")
			}
			if !strings.Contains(text, "mechanism "+mechanism) {
				t.Errorf("the lines are not those of a login:\n%s", text)
			}
		})
	}
}

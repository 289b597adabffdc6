package secure

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"out_kafka_reconnect/test/e2e/pki"
)

// A tokenServer issues JSON web tokens to the client that knows the secret, and publishes the key to check them.
type tokenServer struct {
	key    *rsa.PrivateKey
	issuer *httptest.Server // with TLS, for the client
	keys   *httptest.Server // for the broker

	mu     sync.Mutex
	issued []string // guarded by mu
}

const (
	audience = "kafka"
	issuer   = "test"
	keyID    = "test"
	keyBits  = 2048
	// tokenLife is so short that a test sees a token being replaced.
	tokenLife = 10 * time.Second
)

func newTokenServer(authority *pki.Authority) (*tokenServer, error) {
	identity, err := authority.Issue("tokens", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	cert, err := identity.TLS()
	if err != nil {
		return nil, err
	}
	s := &tokenServer{}
	if s.key, err = rsa.GenerateKey(rand.Reader, keyBits); err != nil {
		return nil, err
	}
	s.issuer = httptest.NewUnstartedServer(http.HandlerFunc(s.issue))
	s.issuer.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.issuer.StartTLS()
	s.keys = httptest.NewServer(http.HandlerFunc(s.publish))
	return s, nil
}

func (s *tokenServer) close() {
	s.issuer.Close()
	s.keys.Close()
}

// parts are the secret parts of all tokens so far: the signatures.
func (s *tokenServer) parts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, token := range s.issued {
		all = append(all, token[strings.LastIndex(token, ".")+1:])
	}
	return all
}

// issue answers a request of the grant client_credentials.
func (s *tokenServer) issue(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	if id != ClientID || secret != ClientSecret || r.FormValue("grant_type") != "client_credentials" {
		w.WriteHeader(http.StatusUnauthorized)
		answer(w, map[string]any{"error": "invalid_client"})
		return
	}
	now := time.Now()
	claims := map[string]any{"iss": issuer, "sub": id, "aud": audience, "iat": now.Unix(), "exp": now.Add(tokenLife).Unix()}
	if scope := r.FormValue("scope"); scope != "" { // Kafka takes no empty one
		claims["scope"] = scope
	}
	token, err := s.sign(claims)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	s.issued = append(s.issued, token)
	s.mu.Unlock()
	answer(w, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(tokenLife.Seconds())})
}

// publish answers with the public key as a JSON web key set.
func (s *tokenServer) publish(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{"keys": []map[string]any{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": keyID,
		"n": encode(s.key.N.Bytes()), "e": encode(big.NewInt(int64(s.key.E)).Bytes()),
	}}})
}

func (s *tokenServer) sign(claims map[string]any) (string, error) {
	head, err := json.Marshal(map[string]any{"alg": "RS256", "typ": "JWT", "kid": keyID})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := encode(head) + "." + encode(body)
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, hash[:])
	return text + "." + encode(signature), err
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func answer(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // a client that is gone
}

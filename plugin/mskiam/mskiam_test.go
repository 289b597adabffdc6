package mskiam

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"go.uber.org/goleak"
)

// The SDK finishes a request whose caller does not wait any longer.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/aws/aws-sdk-go-v2/internal/sync/singleflight.(*Group).doCall"))
}

const (
	region     = "eu-west-1"
	accessKey  = "AKIDEXAMPLE"
	secretKey  = "wJalrXUtnFEMI-secret"
	sessionKey = "session/token+with=signs"
)

// alone leaves only the given variables of AWS in the environment, and files that are not there.
func alone(t *testing.T, env map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true") // an instance would be asked over the network
	for name, value := range env {
		t.Setenv(name, value)
	}
}

// presigned reads a token as the brokers do.
func presigned(t *testing.T, token string) *url.URL {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatalf("the token is no base64 for URLs without padding: %v", err)
	}
	u, err := url.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func sum(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// signature is Signature Version 4 of a presigned URL, from AWS's documentation: of a GET of /, with the host as the only
// header and an empty body.
func signature(u *url.URL, secret string) string {
	signed := u.Query()
	signed.Del("X-Amz-Signature")
	signed.Del("User-Agent") // added behind the signature
	query := strings.ReplaceAll(signed.Encode(), "+", "%20")
	hash := func(text string) string { s := sha256.Sum256([]byte(text)); return hex.EncodeToString(s[:]) }
	canonical := strings.Join([]string{"GET", "/", query, "host:" + u.Host, "", "host", hash("")}, "\n")
	date := signed.Get("X-Amz-Date")
	scope := date[:8] + "/" + region + "/kafka-cluster/aws4_request"
	key := []byte("AWS4" + secret)
	for _, part := range strings.Split(scope, "/") {
		key = sum(key, part)
	}
	return hex.EncodeToString(sum(key, strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, hash(canonical)}, "\n")))
}

// The form is that of the documentation of aws-msk-iam-sasl-signer-go and of AWS's Signature Version 4.
func TestSource_TokenHasTheDocumentedForm(t *testing.T) {
	alone(t, map[string]string{
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": sessionKey,
	})
	before := time.Now().UTC().Truncate(time.Second)
	token, err := Source(region)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u := presigned(t, token.Value)
	if u.Scheme != "https" || u.Host != "kafka.eu-west-1.amazonaws.com" || u.Path != "/" {
		t.Errorf("the URL is %s://%s%s", u.Scheme, u.Host, u.Path)
	}
	q := u.Query()
	signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	if err != nil || signed.Before(before) || signed.After(time.Now()) {
		t.Errorf("it was signed at %q, %v", q.Get("X-Amz-Date"), err)
	}
	for name, want := range map[string]string{
		"Action":               "kafka-cluster:Connect",
		"X-Amz-Algorithm":      "AWS4-HMAC-SHA256",
		"X-Amz-Credential":     accessKey + "/" + signed.Format("20060102") + "/eu-west-1/kafka-cluster/aws4_request",
		"X-Amz-Expires":        "900",
		"X-Amz-Security-Token": sessionKey,
		"X-Amz-SignedHeaders":  "host",
		"X-Amz-Signature":      signature(u, secretKey),
	} {
		if got := q.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(q.Get("User-Agent"), "aws-msk-iam-sasl-signer-go/") || len(q) != 9 {
		t.Errorf("the parameters are %v", q)
	}
	if want := signed.Add(15 * time.Minute); !token.Expires.Equal(want) {
		t.Errorf("it expires at %s, want %s", token.Expires, want)
	}
	if token.Principal != accessKey {
		t.Errorf("the principal is %q", token.Principal)
	}
}

// A token is no good any more when the credentials that have signed it are not.
func TestSign_ExpiresWithTheCredentials(t *testing.T) {
	soon := time.Now().Add(5 * time.Minute)
	c := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey, CanExpire: true, Expires: soon}
	token, err := sign(t.Context(), region, c)
	if err != nil || !token.Expires.Equal(soon) {
		t.Errorf("it expires at %s, want %s; %v", token.Expires, soon, err)
	}
	c.Expires = time.Now().Add(time.Hour)
	if token, err = sign(t.Context(), region, c); err != nil || token.Expires.After(time.Now().Add(15*time.Minute)) {
		t.Errorf("it expires at %s; %v", token.Expires, err)
	}
}

// Each token is made of the credentials as they are: a file that was changed is read anew.
func TestSource_FileOfCredentialsChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials")
	alone(t, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": path})
	source := Source(region)
	for _, key := range []string{"FIRST", "SECOND"} {
		text := "[default]\naws_access_key_id = " + key + "\naws_secret_access_key = " + secretKey + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		token, err := source(t.Context())
		if err != nil || token.Principal != key {
			t.Errorf("the token is of %q, want %q; %v", token.Principal, key, err)
		}
	}
}

// What goes wrong is told without the secrets.
func TestSource_Failures(t *testing.T) {
	dir := t.TempDir()
	half := filepath.Join(dir, "half")
	if err := os.WriteFile(half, []byte("[default]\naws_secret_access_key = "+secretKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]map[string]string{
		"none":            {},
		"half":            {"AWS_SHARED_CREDENTIALS_FILE": half},
		"unknown profile": {"AWS_PROFILE": "nobody", "AWS_SECRET_ACCESS_KEY": secretKey},
		"no identity":     {"AWS_WEB_IDENTITY_TOKEN_FILE": filepath.Join(dir, "gone"), "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, env)
			token, err := Source(region)(t.Context())
			if err == nil {
				t.Fatalf("there is a token of %q", token.Principal)
			}
			if strings.Contains(err.Error(), secretKey) || !strings.HasPrefix(err.Error(), "mskiam: ") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("ended", func(t *testing.T) {
		alone(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if _, err := Source(region)(ctx); err == nil || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

package schema

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const avroText = `{"type":"record","name":"r","fields":[{"name":"f","type":"int"}]}`

// registry is a schema registry: paths to answers, and what they were asked with.
type registry struct {
	*httptest.Server
	answers map[string]string
	asked   atomic.Pointer[http.Request]
	count   atomic.Int64
	// refuse is how many requests are answered with an error first.
	refuse int64
}

func newRegistry(t *testing.T, answers map[string]string, start func(*httptest.Server)) *registry {
	r := &registry{answers: answers}
	r.Server = httptest.NewUnstartedServer(r)
	start(r.Server)
	t.Cleanup(r.Close)
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.asked.Store(req)
	answer, ok := r.answers[req.URL.EscapedPath()]
	switch n := r.count.Add(1); {
	case n <= r.refuse:
		w.WriteHeader(http.StatusServiceUnavailable)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error_code":40401,"message":"Subject not found"}`)
	default:
		fmt.Fprint(w, answer)
	}
}

// answer is what a registry says of a schema.
func answer(fields map[string]any) string {
	text, _ := json.Marshal(fields)
	return string(text)
}

// fetched starts a source in a bubble and returns what it says: a schema's number, or the
// errors of the first attempts, and when each came.
func fetched(t *testing.T, o Options, attempts int) (id int, failures []string, at []time.Duration) {
	t.Helper()
	o.Timeout, o.BackoffMin, o.BackoffMax = 5*time.Second, 100*time.Millisecond, time.Second
	synctest.Test(t, func(t *testing.T) {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		begin := time.Now()
		s.Start(func(string, int) {
			id = s.Schema().ID()
			at = append(at, time.Since(begin))
			close(done)
		}, func(err error) {
			failures = append(failures, err.Error())
			at = append(at, time.Since(begin))
			if len(failures) == attempts {
				close(done)
			}
		})
		<-done
		s.Close()
		s.Close() // is allowed
	})
	return id, failures, at
}

func TestSource_Requests(t *testing.T) {
	r := newRegistry(t, map[string]string{
		"/base/schemas/ids/7":                   answer(map[string]any{"schema": avroText}),
		"/base/subjects/a%2Fb/versions/latest":  answer(map[string]any{"subject": "a/b", "version": 4, "id": 8, "schema": avroText}),
		"/base/subjects/logs-value/versions/3":  answer(map[string]any{"id": 9, "schema": avroText, "schemaType": "AVRO"}),
		"/base/subjects/json/versions/latest":   answer(map[string]any{"id": 9, "schema": "{}", "schemaType": "JSON"}),
		"/base/subjects/broken/versions/latest": answer(map[string]any{"id": 9, "schema": "{"}),
		"/base/subjects/noid/versions/latest":   answer(map[string]any{"schema": avroText}),
		"/base/subjects/refs/versions/latest": answer(map[string]any{
			"id": 9, "schema": avroText, "references": []any{map[string]any{"name": "n", "subject": "s", "version": 1}},
		}),
		"/base/subjects/page/versions/latest": "<html>",
	}, (*httptest.Server).Start)
	base := []string{r.URL + "/base/"}
	tests := []struct {
		name    string
		o       Options
		id      int
		failure string // a part of it
		login   string // the header
	}{
		{"by number", Options{ID: 7}, 7, "", ""},
		{"latest", Options{Subject: "a/b", Version: Latest, ID: 7}, 8, "", ""},
		{"version", Options{Subject: "logs-value", Version: 3}, 9, "", ""},
		{"basic login", Options{ID: 7, User: "me", Password: "geheim", Token: "t"}, 7, "", "Basic bWU6Z2VoZWlt"},
		{"bearer login", Options{ID: 7, Token: "geheim"}, 7, "", "Bearer geheim"},
		{"unknown", Options{ID: 1}, 0, "/base/schemas/ids/1 answers 404: Subject not found", ""},
		{"another type", Options{Subject: "json", Version: Latest}, 0, "the schema is of type JSON; wanted AVRO", ""},
		{"no schema", Options{Subject: "broken", Version: Latest}, 0, "schema 9: ", ""},
		{"no number", Options{Subject: "noid", Version: Latest}, 0, "the answer has no schema id", ""},
		{"references", Options{Subject: "refs", Version: Latest}, 0, "the schema refers to other subjects", ""},
		{"no registry", Options{Subject: "page", Version: Latest}, 0, "unable to decode", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.URLs = base
			id, failures, _ := fetched(t, tt.o, 1)
			all := strings.Join(failures, "\n")
			if id != tt.id || !strings.Contains(all, tt.failure) || tt.failure == "" && all != "" {
				t.Errorf("schema %d, %q; want %d, %q", id, all, tt.id, tt.failure)
			}
			if strings.Contains(all, "geheim") {
				t.Errorf("a secret is in %q", all)
			}
			if got := r.asked.Load().Header.Get("Authorization"); got != tt.login {
				t.Errorf("asked with %q; want %q", got, tt.login)
			}
			if got := r.asked.Load().Header.Get("Accept"); got != "application/vnd.schemaregistry.v1+json" {
				t.Errorf("asked for %q", got)
			}
		})
	}
}

// A schema in the section needs no registry.
func TestSource_AtHand(t *testing.T) {
	s, err := New(Options{Text: avroText, ID: 5})
	if err != nil {
		t.Fatal(err)
	}
	s.Start(nil, nil) // calls neither
	if s.Schema() == nil || s.Schema().ID() != 5 {
		t.Errorf("schema %+v", s.Schema())
	}
	s.Close()
	if s := Known(s.Schema()); s.Schema().ID() != 5 {
		t.Errorf("schema %+v", s.Schema())
	}
	if _, err := New(Options{Text: "{", ID: 5}); err == nil {
		t.Error("a broken schema is taken")
	}
	var none *Source
	none.Start(nil, nil)
	none.Close()
	if none.Schema() != nil {
		t.Error("no source has a schema")
	}
}

// Failed attempts are repeated, with a wait that doubles up to its bound.
func TestSource_Backoff(t *testing.T) {
	r := newRegistry(t, map[string]string{"/schemas/ids/7": answer(map[string]any{"schema": avroText})}, (*httptest.Server).Start)
	r.refuse = 7
	id, failures, at := fetched(t, Options{ID: 7, URLs: []string{r.URL}}, 10)
	if id != 7 || len(failures) != 7 || !strings.HasSuffix(failures[0], "/schemas/ids/7 answers 503: no response") {
		t.Fatalf("schema %d after %q", id, failures)
	}
	step := 100 * time.Millisecond
	for i := 1; i < len(at); i++ {
		if wait := at[i] - at[i-1]; wait < step*3/4 || wait > step {
			t.Errorf("wait %d is %v; want %v, less a quarter at most", i, wait, step)
		}
		step = min(2*step, time.Second)
	}
}

// After a failure the next address is asked, at once.
func TestSource_NextAddress(t *testing.T) {
	empty := newRegistry(t, nil, (*httptest.Server).Start)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	r := newRegistry(t, map[string]string{"/schemas/ids/7": answer(map[string]any{"schema": avroText})}, (*httptest.Server).Start)
	id, failures, at := fetched(t, Options{ID: 7, URLs: []string{gone.URL, empty.URL, r.URL}}, 1)
	if id != 7 || len(failures) != 0 || at[0] != 0 || empty.count.Load() != 1 {
		t.Errorf("schema %d after %v, %q", id, at, failures)
	}
}

// A registry that does not answer is given up after the timeout, and at a close at once.
func TestSource_Silence(t *testing.T) {
	entered := make(chan struct{}, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	}))
	defer silent.Close()
	s, err := New(Options{ID: 7, URLs: []string{silent.URL}, Timeout: time.Minute, BackoffMin: time.Second, BackoffMax: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.Start(func(string, int) { t.Error("there is no schema") }, func(err error) { t.Errorf("failed: %v", err) })
	<-entered
	s.Close()
	if s.Schema() != nil {
		t.Error("there is a schema")
	}

	s, err = New(Options{ID: 7, URLs: []string{silent.URL}, Timeout: 10 * time.Millisecond, BackoffMin: time.Hour, BackoffMax: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	s.Start(func(string, int) { t.Error("there is no schema") }, func(err error) { failed <- err })
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("failed: %v; want a timeout", err)
	}
	s.Close()
}

// The login follows to the same host, and never in clear after TLS.
func TestSource_Redirects(t *testing.T) {
	const path = "/schemas/ids/7"
	target := newRegistry(t, map[string]string{path: answer(map[string]any{"schema": avroText})}, (*httptest.Server).Start)
	targetTLS := newRegistry(t, target.answers, (*httptest.Server).StartTLS)
	_, port, _ := strings.Cut(target.Listener.Addr().String(), ":")
	var to string
	forward := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to+r.URL.Path, http.StatusFound) })
	plain, overTLS := httptest.NewServer(forward), httptest.NewTLSServer(forward)
	defer plain.Close()
	defer overTLS.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem") // all of them have the same certificate
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: overTLS.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	const login = "Bearer geheim"
	tests := []struct {
		name, from, to string
		at             *registry
		login, failure string
	}{
		{"same host", plain.URL, target.URL, target, login, ""},
		{"same host, to TLS", plain.URL, targetTLS.URL, targetTLS, login, ""},
		{"same host, TLS", overTLS.URL, targetTLS.URL, targetTLS, login, ""},
		{"same host, out of TLS", overTLS.URL, target.URL, target, "", "redirected from https to http at 127.0.0.1:" + port + ", which is not followed"},
		{"in a circle", plain.URL, plain.URL, target, "", "stopped after 10 redirects"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to = tt.to
			tt.at.asked.Store(nil)
			id, failures, _ := fetched(t, Options{ID: 7, URLs: []string{tt.from}, Token: "geheim", CAFile: ca}, 1)
			asked := tt.at.asked.Load()
			switch all := strings.Join(failures, "\n"); {
			case tt.failure != "" && (id != 0 || asked != nil || !strings.Contains(all, tt.failure)):
				t.Errorf("schema %d, asked %v, %q; want %q", id, asked != nil, all, tt.failure)
			case tt.failure == "" && (id != 7 || asked == nil || asked.Header.Get("Authorization") != tt.login):
				t.Errorf("schema %d, asked %v, %q; want the login %q", id, asked, all, tt.login)
			}
		})
	}
}

// The login goes to no other host. Names can't be looked up in a bubble.
func TestRedirect_Hosts(t *testing.T) {
	request := func(url string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, url, nil)
		r.Header.Set("Authorization", "Bearer geheim")
		return r
	}
	via := []*http.Request{request("http://registry/"), request("http://registry/a")}
	for url, kept := range map[string]bool{"http://registry:8081/b": true, "https://registry/b": true, "http://eu.registry/b": false, "https://other/b": false} {
		r := request(url)
		if err := redirect(r, via); err != nil || (r.Header.Get("Authorization") != "") != kept {
			t.Errorf("%s: %v, header %q", url, err, r.Header)
		}
	}
}

// An answer without an end is given up, whether it is one or an error.
func TestSource_BoundsAnswers(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			block := make([]byte, 1<<20)
			for range maxAnswer>>20 + 1 {
				_, _ = w.Write(block) // the client hangs up
			}
		}))
		id, failures, _ := fetched(t, Options{ID: 7, URLs: []string{s.URL}}, 1)
		s.Close()
		if id != 0 || len(failures) != 1 || !strings.HasPrefix(failures[0], "the answer is larger than 16 MB: ") {
			t.Errorf("status %d: schema %d, %q", status, id, failures)
		}
	}
}

func TestSource_TLS(t *testing.T) {
	r := newRegistry(t, map[string]string{"/schemas/ids/7": answer(map[string]any{"schema": avroText})}, (*httptest.Server).StartTLS)
	o := Options{ID: 7, URLs: []string{r.URL}}
	if id, failures, _ := fetched(t, o, 1); id != 0 || !strings.Contains(failures[0], "certificate") {
		t.Errorf("an unknown authority: schema %d, %q", id, failures)
	}
	o.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if _, err := New(o); err == nil {
		t.Error("a missing file is taken")
	}
	if err := os.WriteFile(o.CAFile, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Errorf("an empty file: %v", err)
	}
	block := &pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}
	if err := os.WriteFile(o.CAFile, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, failures, _ := fetched(t, o, 1); id != 7 {
		t.Errorf("schema %d, %q", id, failures)
	}
}

package schema

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"out_kafka_reconnect/internal/version"
	"out_kafka_reconnect/plugin/format"
)

// Options say which schema it is and where to get it.
type Options struct {
	// Text is the schema and ID its number in the registry. With both nothing is fetched.
	Text string
	ID   int
	// Subject and Version name the schema in the registry; [Latest] is the latest one. Without
	// a subject it is asked for by ID.
	Subject string
	Version int

	// URLs are the addresses of the registry; after a failure the next one is asked.
	URLs []string
	// User and Password log in; if there is no user, Token does.
	User, Password, Token string
	// CAFile holds the authorities to trust, in PEM; empty means those of the system.
	CAFile string

	// Timeout bounds one request.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the wait after all URLs have failed.
	BackoffMin, BackoffMax time.Duration
}

// Latest as Options.Version is the latest version of the subject.
const Latest = -1

// Source gives one schema, once it is known. Its methods may be called by any goroutine, and
// those of a nil Source do nothing.
type Source struct {
	o       Options
	clients []*sr.Client
	known   atomic.Pointer[format.AvroSchema]

	stop context.CancelFunc // nil unless fetching
	done sync.WaitGroup
}

// New makes a source. The error says what is wrong with the schema of the section or with the
// options; the registry is not asked before [Source.Start].
func New(o Options) (*Source, error) {
	s := &Source{o: o}
	if o.Text != "" && o.ID > 0 {
		known, err := format.ParseAvro(o.Text, o.ID)
		if err != nil {
			return nil, err
		}
		s.known.Store(known)
		return s, nil
	}
	client, err := httpClient(o)
	if err != nil {
		return nil, err
	}
	for _, url := range o.URLs {
		opts := []sr.ClientOpt{sr.URLs(url), sr.HTTPClient(client), sr.UserAgent("out_kafka_reconnect/" + version.Version)}
		switch {
		case o.User != "":
			opts = append(opts, sr.BasicAuth(o.User, o.Password))
		case o.Token != "":
			opts = append(opts, sr.BearerToken(o.Token))
		}
		c, err := sr.NewClient(opts...)
		if err != nil {
			return nil, err
		}
		s.clients = append(s.clients, c)
	}
	return s, nil
}

// Known makes a source that has its schema.
func Known(schema *format.AvroSchema) *Source {
	s := &Source{}
	s.known.Store(schema)
	return s
}

// maxAnswer is how long an answer may be: a schema and its quoting.
const maxAnswer = 16 << 20

// bounded is a transport whose answers end with an error at maxAnswer.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// maxRedirects is that of a client of net/http.
const maxRedirects = 10

// redirect keeps the login at the host it is for, and encrypted once it was. A client of net/http
// passes it on to subdomains, and in clear.
func redirect(req *http.Request, via []*http.Request) error {
	first, last := via[0].URL, via[len(via)-1].URL
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	case last.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("redirected from https to %s at %s, which is not followed", req.URL.Scheme, req.URL.Host)
	case req.URL.Hostname() != first.Hostname():
		req.Header.Del("Authorization")
	}
	return nil
}

// httpClient keeps no connection open: it is used once, if all goes well.
func httpClient(o Options) (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", o.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return &http.Client{Transport: bounded{transport}, CheckRedirect: redirect, Timeout: o.Timeout}, nil
}

// Schema is the schema, or nil as long as it is not known.
func (s *Source) Schema() *format.AvroSchema {
	if s == nil {
		return nil
	}
	return s.known.Load()
}

// Start begins to fetch the schema if it is not known. One of the functions is called on the
// source's goroutine after each attempt, and loaded is the last one.
func (s *Source) Start(loaded func(url string, id int), failed func(err error)) {
	if s == nil || s.known.Load() != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.done.Go(func() { s.fetch(ctx, loaded, failed) })
}

// Close ends the fetching. It waits for the goroutine, which a request does not keep.
func (s *Source) Close() {
	if s == nil || s.stop == nil {
		return
	}
	s.stop()
	s.done.Wait()
}

// fetch asks until there is a schema.
func (s *Source) fetch(ctx context.Context, loaded func(string, int), failed func(error)) {
	for step := s.o.BackoffMin; ; step = min(2*step, s.o.BackoffMax) {
		var errs []error
		for i, c := range s.clients {
			schema, err := s.ask(ctx, c)
			if err == nil {
				s.known.Store(schema)
				loaded(s.o.URLs[i], schema.ID())
				return
			}
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return
		}
		failed(errors.Join(errs...))
		select {
		case <-time.After(step - rand.N(step/4+1)):
		case <-ctx.Done():
			return
		}
	}
}

// ask makes one request.
func (s *Source) ask(ctx context.Context, c *sr.Client) (*format.AvroSchema, error) {
	var answer sr.SubjectSchema
	var err error
	if s.o.Subject != "" {
		answer, err = c.SchemaByVersion(ctx, s.o.Subject, s.o.Version)
	} else {
		answer.ID = s.o.ID
		answer.Schema, err = c.SchemaByID(ctx, s.o.ID)
	}
	var refused *sr.ResponseError
	var endless *http.MaxBytesError
	switch {
	case errors.As(err, &endless):
		return nil, fmt.Errorf("the answer is larger than %d MB: %w", maxAnswer>>20, err)
	case errors.As(err, &refused):
		return nil, fmt.Errorf("%s answers %d: %w", refused.URL, refused.StatusCode, err)
	case err != nil:
		return nil, err
	case answer.Type != sr.TypeAvro:
		return nil, fmt.Errorf("the schema is of type %s; wanted AVRO", answer.Type)
	case len(answer.References) > 0:
		return nil, errors.New("the schema refers to other subjects, which is not supported")
	case answer.ID <= 0:
		return nil, errors.New("the answer has no schema id")
	}
	schema, err := format.ParseAvro(answer.Schema.Schema, answer.ID)
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", answer.ID, err)
	}
	return schema, nil
}

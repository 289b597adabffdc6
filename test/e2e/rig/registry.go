package rig

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"

	"out_kafka_reconnect/test/e2e/kafka/freeport"
)

// SchemaID is the number of the one schema that a registry has.
const SchemaID = 7

// A Registry is a schema registry with one schema, which is the latest of every subject. It is made stopped, on a port that
// it keeps.
type Registry struct {
	lease  *freeport.Lease
	schema string
	server *http.Server // nil while it is stopped
}

// NewRegistry makes one with this schema.
func NewRegistry(schema string) (*Registry, error) {
	lease, err := freeport.Take(1)
	if err != nil {
		return nil, err
	}
	return &Registry{lease: lease, schema: schema}, nil
}

// Addr is its address, without the scheme.
func (r *Registry) Addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.lease.Ports()[0]))
}

// Start lets it answer.
func (r *Registry) Start() error {
	if r.server != nil {
		return nil
	}
	var l net.Listener
	if err := listening(func() (err error) {
		l, err = net.Listen("tcp", r.Addr())
		return err
	}); err != nil {
		return err
	}
	answers := http.NewServeMux()
	answer := func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"subject": q.PathValue("subject"), "version": 1, "id": SchemaID, "schema": r.schema,
		}) // a client that goes away asks again
	}
	answers.HandleFunc("GET /subjects/{subject}/versions/{version}", answer)
	answers.HandleFunc("GET /schemas/ids/{id}", answer)
	r.server = &http.Server{Handler: answers, ReadHeaderTimeout: time.Second}
	go func(s *http.Server) { _ = s.Serve(l) }(r.server) // it ends with ErrServerClosed
	return nil
}

// Stop makes it refuse connections.
func (r *Registry) Stop() error {
	if r.server == nil {
		return nil
	}
	err := r.server.Close()
	r.server = nil
	return err
}

// Close ends it.
func (r *Registry) Close() error {
	defer r.lease.Release()
	return r.Stop()
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
)

// A shape is a kind of log line.
type shape struct {
	name string
	size int // of a line, in bytes
	// fields are written in order, before a text that fills the line.
	fields string
}

// shapes are those that are measured: a plain line, and one as the Kubernetes filter makes it.
func shapes() []shape {
	kubernetes, _ := json.Marshal(map[string]any{ // of plain values
		"pod_name": "checkout-7c9d8b5f6-x2x7k", "namespace_name": "shop", "pod_id": "3b6f1c1e-0f52-4b7e-9b0a-6f6a1f0d9c11",
		"container_name": "checkout", "container_image": "registry.example/shop/checkout:4.12.0", "host": "node-17.example",
		"labels": map[string]string{
			"app.kubernetes.io/name": "checkout", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/version": "4.12.0",
			"pod-template-hash": "7c9d8b5f6", "team": "payments", "tier": "backend", "track": "stable",
		},
		"annotations": map[string]string{
			"prometheus.io/scrape": "true", "prometheus.io/port": "9102", "checksum/config": strings.Repeat("0123456789abcdef", 4),
		},
	})
	plain := `"level":"info","method":"GET","path":"/api/v1/orders","status":200,"took":0.01734,"client":"192.0.2.17","cached":false`
	return []shape{
		{"300 B", 300, plain},
		{"2 KB", 2048, plain + `,"stream":"stdout","kubernetes":` + string(kubernetes)},
	}
}

// words fill the text.
var words = strings.Fields("order accepted for customer payment shipped item warehouse \\\"quoted\\\" retry gateway Zürich answered within budget queue")

// line returns one line without its end. Its text differs from line to line.
func (s shape) line(b []byte, n int64, random *rand.Rand) []byte {
	start := len(b)
	b = fmt.Appendf(b, `{"seq":%d,%s,"message":"`, n, s.fields)
	for {
		w := words[random.IntN(len(words))]
		if len(b)-start+len(w)+1 > s.size-2 {
			break
		}
		b = append(append(b, w...), ' ')
	}
	return append(b, `"}`...)
}

// writeLines fills a file with about so many bytes of lines and returns how many there are. The same call writes the same
// lines.
func (s shape) writeLines(path string, size int) (int, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	var b []byte
	n := 0
	for written := 0; written < size; n++ {
		b = append(s.line(b[:0], int64(n), random), '\n')
		written += len(b)
		if _, err := w.Write(b); err != nil {
			_ = f.Close()
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		_ = f.Close()
		return 0, err
	}
	return n, f.Close()
}

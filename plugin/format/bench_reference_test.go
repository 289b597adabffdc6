//go:build cgo

package format

import (
	"encoding/json"
	"testing"
	"time"
	"unsafe"

	"github.com/fluent/fluent-bit-go/output"
)

// The benchmarks in this file are the measure for those in bench_test.go: the same
// chunks through the decoder of fluent-bit-go and encoding/json, as plugins in Go
// usually do it. They are left out without cgo, which that decoder needs and this
// package does not. Its garbage is collected on other processors if there are any;
// -cpu 1 shows the whole price.

func BenchmarkReference300(b *testing.B) { benchmarkReference(b, chunk300(1000), 1000) }
func BenchmarkReference2K(b *testing.B)  { benchmarkReference(b, chunk2K(1000), 1000) }

func benchmarkReference(b *testing.B, in []byte, records int) {
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		d := output.NewDecoder(unsafe.Pointer(&in[0]), len(in))
		n := 0
		for {
			ret, ts, rec := output.GetRecord(d)
			if ret != 0 {
				break
			}
			if value, err := referenceValue(ts, rec); err != nil || len(value) == 0 {
				b.Fatal(err)
			}
			n++
		}
		if n != records {
			b.Fatalf("%d records; want %d", n, records)
		}
	}
	reportRecords(b, len(in), records)
}

func referenceValue(ts any, rec map[any]any) ([]byte, error) {
	m := referenceMap(rec)
	if t, ok := ts.(output.FLBTime); ok {
		m["@timestamp"] = t.UTC().Format(time.RFC3339Nano)
	}
	return json.Marshal(m)
}

func referenceMap(rec map[any]any) map[string]any {
	m := make(map[string]any, len(rec))
	for k, v := range rec {
		if key, ok := k.(string); ok {
			m[key] = referenceAny(v)
		}
	}
	return m
}

func referenceAny(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case map[any]any:
		return referenceMap(v)
	case []any:
		for i := range v {
			v[i] = referenceAny(v[i])
		}
	}
	return v
}

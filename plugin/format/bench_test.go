package format

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
)

// chunk300 returns a chunk of n records of about 300 bytes with ten fields.
func chunk300(n int) []byte {
	var b []byte
	for i := range n {
		b = chunktest.Head(b, uint32(1700000000+i/500), uint32(i*1000003%1000000000))
		b = chunktest.Map(b, 10)
		b = text(b, "host", "web-"+strconv.Itoa(i%16)+".eu-west-1.example.net")
		b = text(b, "level", "info")
		b = text(b, "logger", "http.access")
		b = text(b, "message", "GET /api/v1/orders/"+strconv.Itoa(i)+"?expand=items \"ok\" in 12.3 ms for a customer in Reykjavik")
		b = text(b, "remote", "203.0.113."+strconv.Itoa(i%250))
		b = chunktest.Uint(chunktest.Str(b, "status"), 200)
		b = chunktest.Uint(chunktest.Str(b, "bytes"), uint64(1000+i))
		b = chunktest.Float64(chunktest.Str(b, "duration"), 0.0123+float64(i)/1e6)
		b = chunktest.Bool(chunktest.Str(b, "cached"), false)
		b = text(b, "trace_id", "4bf92f3577b34da6a3ce929d0e0e4736")
	}
	return b
}

// chunk2K returns a chunk of n records of about 2 KB as a Kubernetes node sends them:
// a JSON log line and nested metadata.
func chunk2K(n int) []byte {
	line := `{"level":"info","ts":1700000000.123,"caller":"server/handler.go:112","msg":"request done","path":"/api/v1/orders"}` + "\n"
	var b []byte
	for i := range n {
		b = chunktest.Head(b, uint32(1700000000+i/500), uint32(i*1000003%1000000000))
		b = chunktest.Map(b, 5)
		b = text(b, "stream", "stdout")
		b = text(b, "_p", "F")
		b = text(b, "log", line+strings.Repeat("the quick brown fox jumps over the lazy dog, ", 12)+strconv.Itoa(i))
		b = chunktest.Array(chunktest.Str(b, "tags"), 3)
		b = chunktest.Str(chunktest.Str(chunktest.Str(b, "prod"), "blue"), "zone-b")
		b = chunktest.Map(chunktest.Str(b, "kubernetes"), 10)
		b = text(b, "pod_name", "orders-7c5ddbdf54-x2x8p")
		b = text(b, "namespace_name", "shop")
		b = text(b, "pod_id", "0d9c5b1c-95f6-4c3d-8f1e-2f7c6b1c8a77")
		b = text(b, "host", "ip-10-12-34-56.eu-west-1.compute.internal")
		b = text(b, "container_name", "orders")
		b = text(b, "docker_id", strings.Repeat("0123456789abcdef", 4))
		b = text(b, "container_hash", "registry.example.net/shop/orders@sha256:"+strings.Repeat("fedcba9876543210", 4))
		b = text(b, "container_image", "registry.example.net/shop/orders:1.42.0")
		b = chunktest.Map(chunktest.Str(b, "labels"), 8)
		for _, l := range []string{"name", "instance", "version", "component", "part-of", "managed-by", "team", "pod-template-hash"} {
			b = text(b, "app.kubernetes.io/"+l, "orders-"+l+"-production")
		}
		b = chunktest.Map(chunktest.Str(b, "annotations"), 4)
		for _, a := range []string{"checksum/config", "prometheus.io/scrape", "cni.projectcalico.org/podIP", "kubernetes.io/psp"} {
			b = text(b, a, "10.12.34.56/32 and some more text for "+a)
		}
	}
	return b
}

func text(b []byte, key, value string) []byte { return chunktest.Str(chunktest.Str(b, key), value) }

func BenchmarkJSON300(b *testing.B) { benchmarkJSON(b, chunk300(1000), 1000, RouterConfig{}) }
func BenchmarkJSON2K(b *testing.B)  { benchmarkJSON(b, chunk2K(1000), 1000, RouterConfig{}) }

// BenchmarkJSONMixed300 is records of 300 bytes of which no two in a row have the same keys.
func BenchmarkJSONMixed300(b *testing.B) {
	w := chunk.NewWalker(chunk300(1000))
	var e chunk.Entry
	var in []byte
	for i := 0; w.Next(&e); i++ {
		in = chunktest.Head(in, uint32(e.Sec), uint32(e.Nsec))
		in = append(in, bytes.ReplaceAll(e.Body, []byte("host"), []byte("hos"+strconv.Itoa(i%7)))...)
	}
	benchmarkJSON(b, in, 1000, RouterConfig{})
}

// BenchmarkJSONQuotes is text of a kilobyte in which every seventh word is quoted and every fourteenth is not ASCII.
func BenchmarkJSONQuotes(b *testing.B) {
	words := strings.Fields(`order accepted for "customer" payment shipped item Zürich warehouse "retry" gateway within budget queue`)
	var in []byte
	for i := range 1000 {
		line := ""
		for n := i; len(line) < 1000; n += 5 {
			line += words[n%len(words)] + " "
		}
		in = chunktest.Head(in, uint32(1700000000+i/500), 0)
		in = text(chunktest.Map(in, 1), "log", line)
	}
	benchmarkJSON(b, in, 1000, RouterConfig{})
}

func BenchmarkRoute300(b *testing.B) {
	benchmarkJSON(b, chunk300(1000), 1000, RouterConfig{TopicKey: "level", DynamicTopic: true, MaxDynamicTopics: 9, MessageKeyField: "trace_id"})
}

// The other formats write the same records.

func BenchmarkMsgPack300(b *testing.B) {
	benchmarkValue(b, NewMsgPack(MsgPackConfig{TimestampKey: "@timestamp"}), chunk300(1000))
}

func BenchmarkGELF300(b *testing.B) {
	c := gelfConfig
	c.ShortMessageKey = "message"
	benchmarkValue(b, NewGELF(c), chunk300(1000))
}
func BenchmarkRaw300(b *testing.B) { benchmarkValue(b, NewRaw("message"), chunk300(1000)) }
func BenchmarkAvro300(b *testing.B) {
	benchmarkValue(b, NewAvro(AvroConfig{Schema: parseAvro(b, schema300)}), chunk300(1000))
}

func BenchmarkOTLPProto300(b *testing.B) {
	benchmarkBundles(b, NewOTLP(OTLPConfig{MaxBytes: 1e6}), chunk300(1000))
}

func BenchmarkOTLPJSON300(b *testing.B) {
	benchmarkBundles(b, NewOTLP(OTLPConfig{JSON: true, MaxBytes: 1e6}), chunk300(1000))
}

func benchmarkBundles(b *testing.B, enc Bundler, in []byte) {
	w := chunk.NewWalker(nil)
	var e chunk.Entry
	var dst []byte
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		dst, n = dst[:0], 0
		w.Reset(in)
		enc.Begin()
		for w.Next(&e) {
			if err := enc.Add(&e); err != nil {
				b.Fatal(err)
			}
			n++
		}
		for ok := true; ok; {
			dst, _, ok = enc.AppendMessage(dst)
		}
	}
	reportRecords(b, len(in), n)
}

func benchmarkValue(b *testing.B, enc Encoder, in []byte) {
	w := chunk.NewWalker(nil)
	var e chunk.Entry
	var dst []byte
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		dst, n = dst[:0], 0
		w.Reset(in)
		for w.Next(&e) {
			var err error
			if dst, err = enc.AppendValue(dst, &e); err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	reportRecords(b, len(in), n)
}

// BenchmarkEnvelope2K is what templates, headers and the rest cost on top of BenchmarkJSON2K.
func BenchmarkEnvelope2K(b *testing.B) {
	for _, bm := range []struct {
		name   string
		config EnvelopeConfig
	}{
		{"accessor", EnvelopeConfig{TopicField: "$kubernetes['namespace_name']"}},
		{"template", EnvelopeConfig{TopicTemplate: "app.$kubernetes['namespace_name'].%Y.%m.%d"}},
		{"headers", EnvelopeConfig{Headers: []HeaderConfig{{"source", "fluent-bit"}, {"tag", "$TAG"}, {"ns", "$kubernetes['namespace_name']"}}}},
		{"headers_key", EnvelopeConfig{HeadersField: "$kubernetes['labels']"}},
		{"everything", full},
	} {
		b.Run(bm.name, func(b *testing.B) { benchmarkEnvelope(b, chunk2K(1000), 1000, bm.config) })
	}
}

func benchmarkEnvelope(b *testing.B, in []byte, records int, c EnvelopeConfig) {
	router, err := NewRouter(RouterConfig{Topics: []string{"logs"}, DynamicTopic: true, MaxDynamicTopics: 9})
	if err != nil {
		b.Fatal(err)
	}
	v, err := NewEnvelope(c, router)
	if err != nil {
		b.Fatal(err)
	}
	w := chunk.NewWalker(nil)
	var e chunk.Entry
	var route Route
	var dst []byte
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		dst = dst[:0]
		w.Reset(in)
		v.Begin("kube.var.log.containers.orders", now)
		for w.Next(&e) {
			if err := router.Route(e.Body, &route); err != nil {
				b.Fatal(err)
			}
			if err := v.Read(&e); err != nil {
				b.Fatal(err)
			}
			v.Address(&route)
			v.Partition()
			dst = v.AppendHeaders(dst)
		}
	}
	reportRecords(b, len(in), records)
}

func benchmarkJSON(b *testing.B, in []byte, records int, c RouterConfig) {
	c.Topics = []string{"logs"}
	router, err := NewRouter(c)
	if err != nil {
		b.Fatal(err)
	}
	j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampISO8601NS})
	w := chunk.NewWalker(nil)
	var e chunk.Entry
	var route Route
	var dst []byte
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		dst = dst[:0]
		w.Reset(in)
		n := 0
		for {
			var more bool
			if dst, more, err = appendNext(dst, j, w, &e); err != nil {
				b.Fatal(err)
			}
			if !more {
				break
			}
			if err = router.Route(e.Body, &route); err != nil {
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

// appendNext appends the value of the next record as the plugin does, and reports whether there was one.
func appendNext(dst []byte, p Predictor, w *chunk.Walker, e *chunk.Entry) ([]byte, bool, error) {
	if p.Predicts() && w.Peek(e) {
		if out, n, ok := p.AppendPredicted(dst, e); ok {
			w.Take(e, n)
			return out, true, nil
		}
	}
	if !w.Next(e) {
		return dst, false, nil
	}
	dst, err := p.AppendValue(dst, e)
	return dst, true, err
}

// reportRecords adds the figures for one record to those for one chunk.
func reportRecords(b *testing.B, bytes, records int) {
	perRecord := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(records)
	b.ReportMetric(perRecord, "ns/record")
	b.ReportMetric(1e9/perRecord, "records/s")
	b.ReportMetric(float64(bytes)/float64(records), "B/record")
}

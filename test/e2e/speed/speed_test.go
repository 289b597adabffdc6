package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"out_kafka_reconnect/test/e2e/secure"
)

func TestParse_SaysWhatIsWrong(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", ""},
		{"-only latency -rounds 1", ""},
		{"-only speed", "allowed: throughput, memory, latency, produce"},
		{"-rounds 0", "must be 1 at least"},
		{"-match (", "-match: "},
		{"-half rust", "allowed: c, go"},
		{"more", `unexpected argument "more"`},
	} {
		var stderr bytes.Buffer
		_, err := parse(strings.Fields(test.args), &stderr)
		if got := stderr.String(); (err != nil) != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%q: got %v and %q, want %q", test.args, err, got, test.want)
		}
	}
}

func TestShapes_LinesAreJSONOfTheirSize(t *testing.T) {
	for _, s := range shapes() {
		random := rand.New(rand.NewPCG(1, 2))
		for n := range int64(100) {
			line := s.line(nil, n, random)
			var record struct {
				Seq     int64
				Message string
			}
			if err := json.Unmarshal(line, &record); err != nil || record.Seq != n || record.Message == "" {
				t.Fatalf("%s: %s: %v", s.name, line, err)
			}
			if len(line) > s.size || len(line) < s.size-20 {
				t.Fatalf("%s: a line has %d bytes", s.name, len(line))
			}
		}
	}
}

func TestWriteLines_CountsThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	n, err := shapes()[0].writeLines(path, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(data, []byte("\n")); got != n || len(data) < 10_000 || len(data) > 10_500 {
		t.Errorf("%d lines in %d bytes, it says %d", got, len(data), n)
	}
}

var rewrite = flag.Bool("rewrite", false, "rewrite docs/throughput.md and its plot from docs/throughput/results.json")

func TestDocument_IsCurrent(t *testing.T) {
	const docs = "../../../docs/"
	r, err := readReport(docs + "throughput/results.json")
	if err != nil {
		t.Fatal(err)
	}
	svg, err := r.picture()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{docs + "throughput.md": []byte(r.document()), docs + "throughput/" + pictureFile: svg} {
		if *rewrite {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its results say (%v); run: make bench-e2e-docs", path, err)
		}
	}
}

func TestReport_RatiosOfMedians(t *testing.T) {
	r := newReport("9.9.9")
	for _, round := range []float64{1, 2, 30} {
		for output, seconds := range map[string]float64{nowhere: 1, builtIn: 4, ours: 2, oursFour: 1, oursEngine: 8} {
			r.Throughput = append(r.Throughput, throughput{
				Shape: "300 B", Codec: "none", Output: output, Records: 1e6, Seconds: seconds * round, CPU: 1 + seconds*round, PeakMiB: 50,
			})
		}
	}
	r.Held = []throughput{
		{Shape: "2 KB", Codec: "none", Output: nowhere, Records: 1e6, Seconds: 1, CPU: 1, PeakMiB: 50},
		{Shape: "2 KB", Codec: "none", Output: builtIn, Records: 1e6, Seconds: 1, CPU: 5, PeakMiB: 60},
		{Shape: "2 KB", Codec: "none", Output: ours, Records: 1e6, Seconds: 1, CPU: 3, PeakMiB: 75},
	}
	r.Latency = []latency{{builtIn, 500, 1000, 1010}}
	r.Produce = []produce{
		{Shape: "2 KB", Codec: "lz4", Kind: halfC, Records: 1e6, cost: cost{2, 3}},
		{Shape: "2 KB", Codec: "lz4", Kind: halfGo, Records: 1e6, cost: cost{4, 6}},
	}
	text := r.Markdown()
	for _, want := range []string{
		"Fluent Bit 9.9.9.",
		"| 300 B, none | null (whole process: 3.00) | 500000 | | 0 | | 50 |",
		"| | kafka (built-in) | 125000 | 1.00 | 6.00 | 1.00 | 50 |",
		"| | kafka_reconnect, 1 worker | 250000 | 2.00 | 2.00 | 0.33 | 50 |",
		"| | kafka_reconnect, 1 worker | 2.00 | 0.50 | 75 | +15 |",
		"| kafka (built-in) | 500 | 1000 | 1010 |",
		"| 2 KB, lz4 | 500000 | 250000 | 0.50 | 3.00 | 6.00 | 2.00 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "NaN") {
		t.Errorf("a figure is none:\n%s", text)
	}
}

// A part that was not measured stays what it was, and is not a bar that is kept.
func TestReport_OfAPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "speed.json")
	r := newReport("")
	if err := r.complete(path); err != nil {
		t.Fatal(err)
	}
	r.Latency = []latency{{ours, 500, 1000, 1010}}
	text := r.goals()
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, " 0.00") || !strings.Contains(text, "| not measured |") {
		t.Errorf("goals of one output's latency:\n%s", text)
	}
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	next := newReport("9.9.9")
	next.Produce = []produce{{Kind: halfC}}
	if err := next.complete(path); err != nil || len(next.Latency) != 1 || len(next.Produce) != 1 || next.FluentBit != "9.9.9" {
		t.Errorf("%+v, %v", next, err)
	}
}

func TestAgent_Leak(t *testing.T) {
	a := &agent{log: bytes.NewBufferString("[info] settings=\"password=***\"\n")}
	if err := a.leak(); err != nil {
		t.Error(err)
	}
	a.log.WriteString("[debug] sasl.password = " + secure.Password + "\n")
	if err := a.leak(); err == nil || strings.Contains(err.Error(), secure.Password) {
		t.Errorf("got %v; want an error without the secret", err)
	}
}

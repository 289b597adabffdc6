package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/plugin"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/growth.md and its plots from docs/growth/results.json")

const (
	documentPath = "../../../docs/growth.md"
	folder       = "../../../docs/growth"
)

func TestDocument_IsCurrent(t *testing.T) {
	r, err := readReport(filepath.Join(folder, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := pictures(r)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{documentPath: []byte(document(r))}
	for name, svg := range files {
		want[filepath.Join(folder, name)] = svg
	}
	for path, text := range want {
		if *rewrite {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not what the results say (%v); run: make growth", path, err)
		}
	}
}

// The results have a figure for everything that the document shows.
func TestResults_AreComplete(t *testing.T) {
	r, err := readReport(filepath.Join(folder, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	for series, ss := range shapes() {
		for _, s := range ss {
			for _, path := range []string{alone, client, whole} {
				if p := r.at(series, path, s.x()); p.CPU <= 0 || p.Wall <= 0 {
					t.Errorf("%s, %s, %d is missing", path, series, s.x())
				}
			}
		}
	}
	if len(r.Backlogs) == 0 || len(r.Starts) == 0 || len(r.Idles) == 0 || len(r.Soaks) == 0 {
		t.Error("a part is missing; run: make growth")
	}
	for _, s := range r.Soaks {
		if s.Lost > 0 || s.Doubled > 0 && strings.HasPrefix(s.Output, ours) {
			t.Errorf("%s", s)
		}
	}
}

func TestParse_SaysWhatIsWrong(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", ""},
		{"-only soak -rounds 1", ""},
		{"-only speed", "allowed: series, start, idle, soak"},
		{"-records 0", "must be 1 at least"},
		{"more", `unexpected argument "more"`},
	} {
		var stderr bytes.Buffer
		_, err := parse(strings.Fields(test.args), &stderr)
		if got := stderr.String(); (err != nil) != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%q: got %v and %q, want %q", test.args, err, got, test.want)
		}
	}
}

// The client in memory delivers what the plugin hands it, and the chunks are what they say.
func TestFlushAll_DeliversEachChunkOnce(t *testing.T) {
	const callers, chunks, perChunk, topics = 3, 20, 7, 2
	for _, n := range []int{0, topics} {
		own := section{"brokers": "memory:1", "topics": topicName(0) + "," + topicName(1)}
		if n > 0 {
			own["topic_key"] = "topic"
		}
		in, err := open(own, openMemory(func(*memory) {}, false), t.Output())
		if err != nil {
			t.Fatal(err)
		}
		err = flushAll(t.Context(), []*plugin.Instance{in}, callers, chunks, makeChunk(perChunk, n))
		if m := in.Metrics(); err != nil || m.Acknowledged != chunks*perChunk || m.ChunksOK != chunks {
			t.Errorf("%d topics: %v, %+v", n, err, m)
		}
		in.Close()
	}
}

func TestBacklog_WaitsAndIsDelivered(t *testing.T) {
	b := &bench{log: t.Output()}
	for _, ordered := range []bool{false, true} {
		l, err := b.backlog(t.Context(), 5, ordered)
		if err != nil || l.Take <= 0 {
			t.Errorf("ordered %v: %v, %s", ordered, err, l)
		}
	}
}

func TestRuntimeOf_GrowsWithWork(t *testing.T) {
	before, err := runtimeOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for began := cpuOfSelf(); cpuOfSelf()-began < 20*time.Millisecond; {
	}
	after, err := runtimeOf(os.Getpid())
	if err != nil || after-before < 10*time.Millisecond {
		t.Errorf("%s after %s, %v", after, before, err)
	}
}

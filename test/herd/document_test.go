package herd

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "simulate every case and rewrite docs/scale.md, docs/herd/results.jsonl and the plots")

const (
	documentPath = "../../docs/scale.md"
	folder       = "../../docs/herd"
)

var resultsPath = filepath.Join(folder, "results.jsonl")

// results reads what the document tells of.
func results(t *testing.T) book {
	t.Helper()
	b, err := readResults(resultsPath)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDocument_IsCurrent(t *testing.T) {
	if *rewrite {
		b := book{}
		for _, c := range cases() {
			b[c.key()] = c.Run()
		}
		write(t, b)
	}
	b := results(t)
	if n := len(cases()); len(b) != n {
		t.Errorf("%d results for %d cases; run: make herd", len(b), n)
	}
	if got, err := os.ReadFile(documentPath); err != nil || string(got) != document(b) {
		t.Errorf("docs/scale.md is not what its results say (%v); run: make herd", err)
	}
	files, err := pictures(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/herd/%s is not what its results say (%v); run: make herd", name, err)
		}
	}
}

func write(t *testing.T, b book) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeResults(resultsPath, cases(), b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(documentPath, []byte(document(b)), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := pictures(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, svg := range files {
		if err := os.WriteFile(filepath.Join(folder, name), svg, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// What the code does now is what the document tells: the cases that take no time are
// simulated again, the others are only made anew by make herd.
func TestResults_AreCurrent(t *testing.T) {
	b := results(t)
	for _, c := range cases() {
		if agentTime := time.Duration(c.Agents) * c.Outage; agentTime > 100*5*time.Minute {
			continue
		}
		if got := c.Run(); !reflect.DeepEqual(got, b.of(c)) {
			t.Errorf("%s: the simulation gives another result than docs/herd/results.jsonl; run: make herd, and look at what has changed", c.key())
		}
	}
}

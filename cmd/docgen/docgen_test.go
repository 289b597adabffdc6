package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/config"
)

// root is the root of the repository, seen from here.
const root = "../.."

func TestDocuments_AreCurrent(t *testing.T) {
	for _, d := range documents() {
		changed, err := d.update(root, false)
		switch {
		case errors.Is(err, errNoLibrary):
			t.Logf("%s: not compared: %v", d.path, err)
		case err != nil:
			t.Errorf("%s: %v", d.path, err)
		case changed:
			t.Errorf("%s is stale; run: %s", d.path, remedy)
		}
	}
}

func TestDocument_Update(t *testing.T) {
	dir := t.TempDir()
	d := document{path: "doc.md", render: func() ([]byte, error) { return []byte("new\n"), nil }}
	for i, want := range []bool{true, false} { // the file is made, and then current
		if changed, err := d.update(dir, true); err != nil || changed != want {
			t.Errorf("call %d: changed %t, %v; want %t", i+1, changed, err, want)
		}
	}
	path := filepath.Join(dir, "doc.md")
	if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := d.update(dir, false); err != nil || !changed {
		t.Errorf("a stale file: changed %t, %v", changed, err)
	}
	if text, _ := os.ReadFile(path); string(text) != "old\n" {
		t.Errorf("a check wrote %q", text)
	}
	broken := document{path: "doc.md", render: func() ([]byte, error) { return nil, errNoLibrary }}
	if _, err := broken.update(dir, true); !errors.Is(err, errNoLibrary) {
		t.Errorf("got %v", err)
	}
}

func TestDocument_UpdatePart(t *testing.T) {
	dir := t.TempDir()
	d := document{path: "doc.md", part: "states", render: func() ([]byte, error) { return []byte("| a |\n"), nil }}
	if _, err := d.update(dir, true); err == nil {
		t.Error("a part of a missing file is no error")
	}
	file := "# Head\n<!-- BEGIN generated: states (make docs; do not edit) -->\nold\n<!-- END generated: states -->\ntail\n"
	path := filepath.Join(dir, "doc.md")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := d.update(dir, true); err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	got, _ := os.ReadFile(path)
	if want := strings.Replace(file, "old", "| a |", 1); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSplice_Faults(t *testing.T) {
	const begin = "<!-- BEGIN generated: x (make docs; do not edit) -->\n"
	const end = "<!-- END generated: x -->\n"
	for file, want := range map[string]string{
		"text":              "found it 0 times",
		begin:               "found it 0 times",
		begin + begin + end: "found it 2 times",
		end + begin:         "wrong order",
	} {
		if _, err := splice([]byte(file), "x", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("splice(%q): %v, want %q", file, err, want)
		}
	}
}

func TestRenderNames(t *testing.T) {
	const tables = "## Global configuration properties\n\n" +
		"Property | C/P | Range | Default | Importance | Description\n" +
		"---------|-----|-------|--------:|------------|------------\n" +
		"client.id |  *  |  | rdkafka | low | Client identifier. <br>*Type: string*\n" +
		"linger.ms |  P  | 0 .. 9 | 5 | high | Alias for `queue.buffering.max.ms`: Delay | a bar <br>*Type: float*\n\n" +
		"## Topic configuration properties\n\n" +
		"Property | C/P | Range | Default | Importance | Description\n" +
		"---------|-----|-------|--------:|------------|------------\n" +
		"client.id |  *  |  |  | low | Again. <br>*Type: string*\n" +
		"partitioner_cb |  P  |  |  | low | Custom. <br>*Type: see dedicated API*\n\n" +
		"### C/P legend: C = Consumer, P = Producer, * = both\n"
	got, err := renderNames("1.2.3", tables, []string{"client.id", "secret.knob"})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(got)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	want := "client.id * global string;linger.ms P global float queue.buffering.max.ms;" +
		"partitioner_cb P topic api;secret.knob * global hidden"
	if s := strings.Join(lines, ";"); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if !strings.Contains(string(got), "librdkafka 1.2.3") {
		t.Error("the version is missing")
	}
	if _, err := renderNames("1", "## Global\na | P | | | low | no type\n", nil); err == nil {
		t.Error("a line without a type is accepted")
	}
}

// The section that the documentation shows must work and need no warning.
func TestConfiguration_ExampleWorks(t *testing.T) {
	keys := exampleKeys(t)
	c, err := config.Decode(config.GetterFunc(func(name string) string { return keys[name] }), nil)
	if err != nil || len(c.Warnings) > 0 {
		t.Fatalf("%v: %v %v", keys, err, c)
	}
	if c.Brokers != "kafka-1:9092,kafka-2:9092" || c.Topics[0] != "logs" {
		t.Errorf("got %q %q", c.Brokers, c.Topics)
	}
}

// exampleKeys reads the first example of the documentation.
func exampleKeys(t *testing.T) map[string]string {
	t.Helper()
	_, rest, ok := strings.Cut(configurationHead, "[OUTPUT]\n")
	if !ok {
		t.Fatal("there is no example")
	}
	text, _, _ := strings.Cut(rest, "```")
	keys := make(map[string]string)
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 {
			keys[f[0]] = f[1]
		}
	}
	return keys
}

// Everything in the tables is in the document.
func TestConfiguration_IsComplete(t *testing.T) {
	text, err := renderConfiguration()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range config.Options() {
		names = append(append(names, o.Name), o.Aliases...)
	}
	for _, s := range config.Settings {
		names = append(names, s.Name)
	}
	for _, r := range append(append([]config.Rule{}, config.Owned...), config.Refused...) {
		names = append(names, r.Name)
	}
	for _, r := range config.Misnamed {
		names = append(names, "rdkafka."+r.Name)
	}
	for _, k := range config.Foreign {
		names = append(names, k.Name)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s is missing", name)
		}
	}
}

// Package configtest reads sections for tests from files, as Fluent Bit reads them: in
// classic or in YAML form. What is expected of a section stands in the head of its file.
package configtest

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Section is the [OUTPUT] section of one file.
type Section struct {
	// Name is that of the file, without its suffix.
	Name string
	// Plugin is the value of the key name.
	Plugin string
	// Warnings, Refused and Properties are what the head of the file expects: the lines behind
	// "#> warning:", "#> refused:" and "#> property:".
	Warnings, Refused, Properties []string

	// Nodes are the keys and values as they stand in a file in YAML; nil for one in classic form.
	Nodes map[string]yaml.Node

	keys map[string]string // in small letters
}

// core are the keys that Fluent Bit keeps to itself.
var core = []string{"name", "match", "match_regex", "alias", "log_level", "workers", "retry_limit", "storage.total_limit_size"}

// Get gives a key as Fluent Bit gives it to a plugin.
func (s *Section) Get(name string) string {
	name = strings.ToLower(name)
	if slices.Contains(core, name) || strings.HasPrefix(name, "net.") {
		return ""
	}
	return s.keys[name]
}

// All returns every key and its value, also those that Fluent Bit keeps to itself.
func (s *Section) All() iter.Seq2[string, string] { return maps.All(s.keys) }

// Read reads all files of a folder, at least one.
func Read(folder string) ([]*Section, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.*"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no sections in %s", folder)
	}
	sections := make([]*Section, len(paths))
	for i, path := range paths {
		if sections[i], err = read(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return sections, nil
}

func read(path string) (*Section, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	suffix := filepath.Ext(path)
	return Parse(strings.TrimSuffix(filepath.Base(path), suffix), suffix, string(text))
}

// Parse reads one section. The suffix tells the form: .conf or .yaml.
func Parse(name, suffix, text string) (*Section, error) {
	s := &Section{Name: name, keys: make(map[string]string)}
	var err error
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch kind {
		case "#> warning":
			s.Warnings = append(s.Warnings, rest)
		case "#> refused":
			s.Refused = append(s.Refused, rest)
		case "#> property":
			s.Properties = append(s.Properties, rest)
		}
	}
	switch suffix {
	case ".conf":
		err = s.readClassic(text)
	case ".yaml":
		err = s.readYAML([]byte(text))
	default:
		err = fmt.Errorf("is neither .conf nor .yaml")
	}
	s.Plugin = s.keys["name"]
	return s, err
}

// readClassic reads the lines behind [OUTPUT]: a key, blanks, and the rest of the line.
func (s *Section) readClassic(text string) error {
	_, body, ok := strings.Cut(text, "\n[OUTPUT]\n")
	if !ok {
		return fmt.Errorf("has no [OUTPUT]")
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, " ")
		if !ok {
			return fmt.Errorf("%s has no value", key)
		}
		if err := s.add(key, strings.TrimSpace(value)); err != nil {
			return err
		}
	}
	return nil
}

// readYAML reads the one item of pipeline: outputs:. The values are taken as they are written,
// on and off too.
func (s *Section) readYAML(text []byte) error {
	var file struct {
		Pipeline struct {
			Outputs []map[string]yaml.Node
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return err
	}
	if n := len(file.Pipeline.Outputs); n != 1 {
		return fmt.Errorf("has %d outputs; want 1", n)
	}
	s.Nodes = file.Pipeline.Outputs[0]
	for key, value := range s.Nodes {
		if err := s.add(key, value.Value); err != nil {
			return err
		}
	}
	return nil
}

// add keeps a key once. The environment of the tests has a value for each variable: its own
// name.
func (s *Section) add(key, value string) error {
	key = strings.ToLower(key)
	if _, twice := s.keys[key]; twice {
		return fmt.Errorf("%s is set twice", key)
	}
	s.keys[key] = strings.NewReplacer("${", "", "}", "").Replace(value)
	return nil
}

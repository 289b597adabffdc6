package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// document is one generated file, or one generated part of a hand-written file.
type document struct {
	// path is relative to the root of the repository.
	path string
	// part names the markers in the file between which the text goes; empty means that
	// the whole file is generated.
	part string
	// render makes the text.
	render func() ([]byte, error)
}

// documents lists everything that is generated, in the order of writing.
func documents() []document {
	return []document{
		{path: "plugin/config/rdkafka_names.txt", render: libraryNames},
		{path: "docs/configuration.md", render: renderConfiguration},
		{path: "docs/architecture.md", part: "states", render: renderStates},
	}
}

// update compares the file with what it should be and tells whether they differ; then
// it writes the file if it may.
func (d document) update(root string, write bool) (changed bool, err error) {
	text, err := d.render()
	if err != nil {
		return false, err
	}
	path := filepath.Join(root, d.path)
	old, err := os.ReadFile(path)
	if err != nil && (d.part != "" || !os.IsNotExist(err)) {
		return false, err
	}
	if d.part != "" {
		if text, err = splice(old, d.part, text); err != nil {
			return false, err
		}
	}
	if bytes.Equal(old, text) {
		return false, nil
	}
	if !write {
		return true, nil
	}
	return true, os.WriteFile(path, text, 0o644)
}

// splice replaces what stands between the two markers of a part.
func splice(file []byte, part string, text []byte) ([]byte, error) {
	begin := fmt.Appendf(nil, "<!-- BEGIN generated: %s (%s; do not edit) -->\n", part, remedy)
	end := fmt.Appendf(nil, "<!-- END generated: %s -->\n", part)
	for _, marker := range [][]byte{begin, end} {
		if n := bytes.Count(file, marker); n != 1 {
			return nil, fmt.Errorf("want the line %q once, found it %d times", bytes.TrimSpace(marker), n)
		}
	}
	head, rest, _ := bytes.Cut(file, begin)
	_, tail, ok := bytes.Cut(rest, end)
	if !ok {
		return nil, fmt.Errorf("the markers of %s are in the wrong order", part)
	}
	return bytes.Join([][]byte{head, begin, text, end, tail}, nil), nil
}

package outage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// resultsFile holds results, one a line, in the order of the matrix.
const resultsFile = "results.jsonl"

// mergeResults puts results into a file in place of older ones of the same run and host.
func mergeResults(path string, results []*Result) error {
	old, err := readResults(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old = slices.DeleteFunc(old, func(o *Result) bool {
		return slices.ContainsFunc(results, func(r *Result) bool { return r.Run == o.Run && r.Host == o.Host })
	})
	merged := slices.Concat(old, results)
	order := map[string]int{}
	for i, run := range Matrix() {
		order[run.Name] = i + 1
	}
	merged = slices.DeleteFunc(merged, func(r *Result) bool { return order[r.Run] == 0 }) // a run that is no more
	slices.SortStableFunc(merged, func(a, b *Result) int {
		if a.Run != b.Run {
			return order[a.Run] - order[b.Run]
		}
		return bytes.Compare([]byte(a.Host), []byte(b.Host))
	})
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, r := range merged {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// readResults reads a file that mergeResults wrote.
func readResults(path string) ([]*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	var results []*Result
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r := &Result{}
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		results = append(results, r)
	}
	return results, lines.Err()
}

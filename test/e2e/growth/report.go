package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"out_kafka_reconnect/test/e2e/rig"
)

// A report is all figures, as they lie in docs/growth/results.json.
type report struct {
	Day       string    `json:"day"`
	Machine   string    `json:"machine"`
	FluentBit string    `json:"fluent_bit"`
	Points    []point   `json:"points"`
	Backlogs  []backlog `json:"backlogs"`
	Starts    []start   `json:"starts"`
	Idles     []idle    `json:"idles"`
	Soaks     []soak    `json:"soaks"`
}

// readReport reads the results that are there; none are an empty report.
func readReport(path string) (*report, error) {
	r := &report{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r *report) write(path string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// describe notes the day and the machine.
func (r *report) describe(fluentBit string) {
	r.Day, r.FluentBit, r.Machine = time.Now().Format("2 January 2006"), fluentBit, rig.Machine()
}

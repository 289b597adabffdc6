package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
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
	r.Day, r.FluentBit = time.Now().Format("2 January 2006"), fluentBit
	r.Machine = fmt.Sprintf("%s, %d processors, Linux %s, %s, %s/%s", processor(), runtime.NumCPU(), kernel(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// processor is the model of the CPU.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // without it the model is unknown
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// kernel is the release of the kernel, as far as its numbers go.
func kernel() string {
	var u syscall.Utsname
	_ = syscall.Uname(&u) // can't fail for this argument
	var b []byte
	for _, c := range u.Release {
		if c != '.' && (c < '0' || c > '9') {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

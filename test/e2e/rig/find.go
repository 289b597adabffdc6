package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// versionWithin bounds the question for a version.
const versionWithin = 10 * time.Second

// FindFluentBit returns the Fluent Bit that FLUENT_BIT names, or the one in PATH, and its version. The path is empty when
// there is none; one that is there and can't run is an error.
func FindFluentBit(ctx context.Context) (path, version string, err error) {
	path = os.Getenv("FLUENT_BIT")
	if path == "" {
		if path, err = exec.LookPath("fluent-bit"); err != nil {
			return "", "", nil //nolint:nilerr // there is none, which is no error
		}
	}
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	answer, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("running %s --version: %w; set FLUENT_BIT to a Fluent Bit that runs, or unset it and leave it out of PATH", path, err)
	}
	first, _, _ := strings.Cut(string(answer), "\n")
	version, found := strings.CutPrefix(strings.TrimSpace(first), "Fluent Bit v")
	if !found {
		return "", "", fmt.Errorf("running %s --version: it answers %.60q, which is no Fluent Bit", path, first)
	}
	path, err = filepath.Abs(path)
	return path, version, err
}

// Built returns the absolute path of a file that make builds, or an error that says how to build it.
func Built(path, target string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w; run: make %s", path, err, target)
	}
	return path, nil
}

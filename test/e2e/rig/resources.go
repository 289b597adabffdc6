package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Resources are what a process holds, as /proc tells.
type Resources struct {
	Threads, Sockets, Files int   // files are all descriptors, sockets included
	Memory                  int64 // resident, in bytes
}

// String is for people.
func (r Resources) String() string {
	return fmt.Sprintf("%d threads, %d sockets, %d descriptors, %.1f MiB", r.Threads, r.Sockets, r.Files, float64(r.Memory)/(1<<20))
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+([0-9]+) kB$`)

// ResourcesOf asks what a process holds.
func ResourcesOf(pid int) (Resources, error) {
	var r Resources
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	threads, err := os.ReadDir(filepath.Join(proc, "task"))
	if err != nil {
		return r, fmt.Errorf("counting threads: %w", err)
	}
	r.Threads = len(threads)
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return r, fmt.Errorf("counting descriptors: %w", err)
	}
	r.Files = len(files)
	for _, f := range files {
		// An error means that it was closed in between.
		if target, err := os.Readlink(filepath.Join(proc, "fd", f.Name())); err == nil && strings.HasPrefix(target, "socket:") {
			r.Sockets++
		}
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return r, fmt.Errorf("measuring the memory: %w", err)
	}
	match := resident.FindSubmatch(status)
	if match == nil {
		return r, fmt.Errorf("measuring the memory: process %d has none", pid)
	}
	kib, err := strconv.ParseInt(string(match[1]), 10, 64)
	r.Memory = kib << 10
	return r, err
}

package rig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Resources are what a process holds and has used, as /proc tells.
type Resources struct {
	Threads, Sockets, Files int           // files are all descriptors, sockets included
	Memory, Peak            int64         // resident, now and at most so far, in bytes
	Anonymous               int64         // of Memory, what is in no file
	CPU                     time.Duration // of all its threads, to a hundredth of a second
}

// String is for people.
func (r Resources) String() string {
	return fmt.Sprintf("%d threads, %d sockets, %d descriptors, %.1f MiB", r.Threads, r.Sockets, r.Files, MiB(r.Memory))
}

// MiB is a number of bytes in mebibytes.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

var (
	resident = regexp.MustCompile(`(?m)^VmRSS:\s+([0-9]+) kB$`)
	peak     = regexp.MustCompile(`(?m)^VmHWM:\s+([0-9]+) kB$`)
	inNoFile = regexp.MustCompile(`(?m)^RssAnon:\s+([0-9]+) kB$`)
)

// ticksPerSecond is that of the times in /proc on every Linux.
const ticksPerSecond = 100

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
	for line, to := range map[*regexp.Regexp]*int64{resident: &r.Memory, peak: &r.Peak, inNoFile: &r.Anonymous} {
		if *to, err = kibibytes(line, status); err != nil {
			return r, err
		}
	}
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return r, fmt.Errorf("measuring the CPU: %w", err)
	}
	r.CPU, err = cpuIn(stat)
	return r, err
}

// kibibytes reads a line of a process's status, in bytes.
func kibibytes(line *regexp.Regexp, status []byte) (int64, error) {
	match := line.FindSubmatch(status)
	if match == nil {
		return 0, fmt.Errorf("measuring the memory: the process has no line like %s", line)
	}
	kib, err := strconv.ParseInt(string(match[1]), 10, 64)
	return kib << 10, err
}

// cpuIn adds up user and system time in the words of a process's stat. Its name stands in parentheses and may hold anything;
// the two are words 12 and 13 behind it.
func cpuIn(stat []byte) (time.Duration, error) {
	words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(words) < 13 {
		return 0, fmt.Errorf("measuring the CPU: %q is too short", stat)
	}
	var sum time.Duration
	for _, word := range words[11:13] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("measuring the CPU: %w", err)
		}
		sum += time.Duration(n) * time.Second / ticksPerSecond
	}
	return sum, nil
}

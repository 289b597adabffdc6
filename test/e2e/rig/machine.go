package rig

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes what the figures of a benchmark were measured on.
func Machine() string {
	return fmt.Sprintf("%s, %d processors, Linux %s, %s, %s/%s", processor(), runtime.NumCPU(), kernel(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
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
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease") // without it the release is unknown
	release := string(text)
	if end := strings.IndexFunc(release, func(c rune) bool { return c != '.' && (c < '0' || c > '9') }); end >= 0 {
		release = release[:end]
	}
	return cmp.Or(release, "unknown")
}

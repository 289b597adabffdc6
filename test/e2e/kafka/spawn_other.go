//go:build !linux

package kafka

import "os/exec"

// dieWithParent has no counterpart elsewhere: a test binary that is killed leaves its nodes behind.
func dieWithParent(*exec.Cmd) {}

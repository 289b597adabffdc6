//go:build !linux

package rig

import "os/exec"

// dieWithParent does nothing where the kernel has no such signal.
func dieWithParent(*exec.Cmd) {}

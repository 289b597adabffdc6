package state

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
)

// Agent stands for the agent that this process is: the same at each start with the same command line in
// the same working directory. It is a hash, as there may be a secret in a command line.
func Agent() string {
	h := sha256.New()
	if line, err := os.ReadFile("/proc/self/cmdline"); err == nil { // else all are alike, as they can't be told apart
		_, _ = h.Write(line)
	}
	if dir, err := os.Getwd(); err == nil {
		_, _ = h.Write([]byte(dir))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

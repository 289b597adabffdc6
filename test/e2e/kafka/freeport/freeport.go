// Package freeport leases TCP ports on 127.0.0.1 that stay ours while nobody listens on them.
//
// A test that stops a broker and starts it again on the same port needs more than a port that was free once.
// In between, three things can take it: another test binary that looks for a free port, the kernel when it picks
// the local port of an outgoing connection, and a client that dials the very port it was given as its own local
// port and so connects to itself. The first is held off by a lock file for each port, the other two by
// staying below the kernel's range for local ports.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken from [lowest, lowest+span). Linux picks local ports from 32768 up unless it was told otherwise.
const (
	lowest = 20000
	span   = 12000
)

// A Lease holds ports until Release or the end of the process, whichever comes first.
type Lease struct {
	ports []int
	locks []*os.File
}

// Take leases n ports that nobody listens on.
func Take(n int) (*Lease, error) { return take(n, span) }

// take looks at no more than span ports, so that a test can run out of them.
func take(n, span int) (*Lease, error) {
	dir, err := lockDir()
	if err != nil {
		return nil, err
	}
	l := &Lease{}
	for _, offset := range rand.Perm(span) {
		if len(l.ports) == n {
			break
		}
		port := lowest + offset
		lock := tryLock(filepath.Join(dir, strconv.Itoa(port)))
		if lock == nil {
			continue
		}
		if !free(port) {
			_ = lock.Close()
			continue
		}
		l.ports = append(l.ports, port)
		l.locks = append(l.locks, lock)
	}
	if len(l.ports) < n {
		l.Release()
		return nil, fmt.Errorf("taking %d free ports: fewer are free between %d and %d", n, lowest, lowest+span-1)
	}
	return l, nil
}

// Ports returns the leased ports in the order in which they were found.
func (l *Lease) Ports() []int { return append([]int(nil), l.ports...) }

// Release gives the ports back. Calling it again, or on a nil lease, does nothing.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	for _, lock := range l.locks {
		_ = lock.Close()
	}
	l.locks = nil
}

// lockDir is shared by all test binaries of one user; the user is in the name because the files belong to them.
func lockDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("out_kafka_reconnect-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of port locks: %w", err)
	}
	return dir, nil
}

// tryLock returns nil when another process, or another lease of this one, holds the port.
func tryLock(path string) *os.File {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// free asks the kernel, for programs that know nothing of our locks.
func free(port int) bool {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return ln.Close() == nil
}

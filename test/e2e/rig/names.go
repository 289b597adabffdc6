package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Names is a view of host names for one process: its own /etc/hosts and no DNS server. The process runs in a mount
// namespace in which files of ours lie over those of the machine, which stay as they are.
type Names struct {
	hosts, resolv string
}

// NewNames makes a view in which only localhost is known.
func NewNames(dir string) (*Names, error) {
	n := &Names{hosts: filepath.Join(dir, "hosts"), resolv: filepath.Join(dir, "resolv.conf")}
	if _, err := exec.LookPath("unshare"); err != nil {
		return nil, fmt.Errorf("giving the host names of its own: %w; install util-linux", err)
	}
	if err := os.WriteFile(n.hosts, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		return nil, err
	}
	// Nobody answers there, and the kernel says so at once.
	return n, os.WriteFile(n.resolv, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o644)
}

// Add makes a name stand for 127.0.0.1, for processes that run already too: the file is read at each look-up.
func (n *Names) Add(name string) error {
	f, err := os.OpenFile(n.hosts, os.O_APPEND|os.O_WRONLY, 0) // in place: the mount shows this file, not this path
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "127.0.0.1 %s\n", name)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// Point makes a name stand for one address and for no other, at the next look-up.
func (n *Names) Point(name, addr string) error {
	return os.WriteFile(n.hosts, []byte("127.0.0.1 localhost\n"+addr+" "+name+"\n"), 0o644) // in place, as in Add
}

// mounts puts the first two arguments over the machine's files and becomes the rest.
const mounts = `mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@"`

func (n *Names) wrap(cmd *exec.Cmd) *exec.Cmd {
	args := []string{"--mount", "--", "sh", "-c", mounts, "sh", n.hosts, n.resolv, cmd.Path}
	if os.Geteuid() != 0 {
		args = append([]string{"--map-root-user"}, args...)
	}
	return exec.Command("unshare", append(args, cmd.Args[1:]...)...)
}

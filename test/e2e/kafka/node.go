package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"out_kafka_reconnect/test/e2e/child"
)

// A node that was asked to end is killed after stopPatience, which is an error. One without a quorum is killed after
// orphanPatience, which is none: it would wait five minutes for a controller to agree with its end.
const (
	stopPatience   = time.Minute
	orphanPatience = 10 * time.Second
)

// A node is one broker and controller.
type node struct {
	id    int
	dir   string
	ports ports

	mu      sync.Mutex
	process *child.Process // guarded by mu; the newest that was started, nil before the first
	taken   bool           // guarded by mu; we have ended it, or are about to
}

func (n *node) data() string    { return filepath.Join(n.dir, "data") }
func (n *node) config() string  { return filepath.Join(n.dir, "server.properties") }
func (n *node) logging() string { return filepath.Join(n.dir, "log4j2.properties") }
func (n *node) log() string     { return filepath.Join(n.dir, "server.log") }
func (n *node) temp() string    { return filepath.Join(n.dir, "tmp") }

// running returns the node's process, or nil when we have not started it or have ended it.
func (n *node) running() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.taken {
		return nil
	}
	return n.process
}

// start runs the node with a command made for it. A node that runs already stays as it is.
func (n *node) start(command func(*node) *exec.Cmd) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil && !n.taken && !n.process.Ended() { // one that has ended died by itself
		return nil
	}
	if err := os.MkdirAll(n.temp(), 0o755); err != nil {
		return fmt.Errorf("starting kafka node %d: %w", n.id, err)
	}
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("starting kafka node %d: %w", n.id, err)
	}
	defer func() { _ = log.Close() }()
	cmd := command(n)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := child.Start(cmd)
	if err != nil {
		return fmt.Errorf("starting kafka node %d: %w", n.id, err)
	}
	n.process, n.taken = p, false
	return nil
}

// alive tells whether the node has a process, be it one that is being ended.
func (n *node) alive() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil && !n.process.Ended()
}

// take returns the node's process, once: whoever ends it calls this, so that its end is not taken for a crash.
func (n *node) take() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.taken {
		return nil
	}
	n.taken = true
	return n.process
}

// signal sends a signal to a node that runs.
func (n *node) signal(what string, sig syscall.Signal) error {
	p := n.running()
	if p == nil {
		return fmt.Errorf("%s kafka node %d: it is not running", what, n.id)
	}
	if err := p.Cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%s kafka node %d: %w", what, n.id, err)
	}
	return nil
}

// stop asks the process to end and waits for it. quorum tells whether enough nodes are alive to agree with its end.
func (n *node) stop(p *child.Process, quorum func() bool) error {
	err := p.Cmd.Process.Signal(syscall.SIGTERM)
	if err == nil {
		err = p.Cmd.Process.Signal(syscall.SIGCONT) // a frozen process hears of SIGTERM only when it goes on
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping kafka node %d: %w", n.id, err)
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	begin := time.Now()
	agreed := begin // when there was a quorum last
	for {
		select {
		case <-p.Done:
			return nil
		case now := <-ticker.C:
			if quorum() {
				agreed = now
			}
			if now.Sub(agreed) >= orphanPatience {
				p.Kill()
				return nil
			}
			if now.Sub(begin) >= stopPatience {
				p.Kill()
				return fmt.Errorf("stopping kafka node %d: it was still there after %s and was killed; the end of its log:\n%s",
					n.id, stopPatience, n.tail(20))
			}
		}
	}
}

// crashed returns an error when the node ended though nobody asked it to.
func (n *node) crashed() error {
	p := n.running()
	if p == nil || !p.Ended() {
		return nil
	}
	return fmt.Errorf("running kafka node %d: it ended by itself: %w; the end of its log:\n%s", n.id, p.Err, n.tail(20))
}

func (n *node) tail(lines int) string {
	data, err := os.ReadFile(n.log())
	if err != nil {
		return err.Error()
	}
	return tail(data, lines)
}

// tail returns the last lines of a text.
func tail(text []byte, lines int) string {
	all := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

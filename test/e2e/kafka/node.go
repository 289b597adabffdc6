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
	process *process // guarded by mu; nil unless it was started and not ended by us
	last    *process // guarded by mu; the newest that was started, by whomever it was ended
}

// A process is one life of a node.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // set before done is closed
}

func (n *node) data() string    { return filepath.Join(n.dir, "data") }
func (n *node) config() string  { return filepath.Join(n.dir, "server.properties") }
func (n *node) logging() string { return filepath.Join(n.dir, "log4j2.properties") }
func (n *node) log() string     { return filepath.Join(n.dir, "server.log") }
func (n *node) temp() string    { return filepath.Join(n.dir, "tmp") }

// running returns the node's process, or nil when we have not started it or have ended it.
func (n *node) running() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// start runs the node with a command made for it. A node that runs already stays as it is.
func (n *node) start(s *spawner, command func(*node) *exec.Cmd) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil && !n.process.ended() { // one that has ended died by itself
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
	p := &process{cmd: command(n), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := s.start(p.cmd); err != nil {
		return fmt.Errorf("starting kafka node %d: %w", n.id, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	n.process, n.last = p, p
	return nil
}

// alive tells whether the node has a process, be it one that is being ended.
func (n *node) alive() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last != nil && !n.last.ended()
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// take returns the node's process and forgets it: whoever ends it calls this, so that its end is not taken for a crash.
func (n *node) take() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.process
	n.process = nil
	return p
}

// signal sends a signal to a node that runs.
func (n *node) signal(what string, sig syscall.Signal) error {
	p := n.running()
	if p == nil {
		return fmt.Errorf("%s kafka node %d: it is not running", what, n.id)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%s kafka node %d: %w", what, n.id, err)
	}
	return nil
}

// stop asks the process to end and waits for it. quorum tells whether enough nodes are alive to agree with its end.
func (n *node) stop(p *process, quorum func() bool) error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	if err == nil {
		err = p.cmd.Process.Signal(syscall.SIGCONT) // a frozen process hears of SIGTERM only when it goes on
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
		case <-p.done:
			return nil
		case now := <-ticker.C:
			if quorum() {
				agreed = now
			}
			if now.Sub(agreed) >= orphanPatience {
				p.kill()
				return nil
			}
			if now.Sub(begin) >= stopPatience {
				p.kill()
				return fmt.Errorf("stopping kafka node %d: it was still there after %s and was killed; the end of its log:\n%s",
					n.id, stopPatience, n.tail(20))
			}
		}
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.done
}

// crashed returns an error when the node ended though nobody asked it to.
func (n *node) crashed() error {
	p := n.running()
	if p == nil || !p.ended() {
		return nil
	}
	return fmt.Errorf("running kafka node %d: it ended by itself: %w; the end of its log:\n%s", n.id, p.err, n.tail(20))
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

package kafka

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"out_kafka_reconnect/test/e2e/kafka/freeport"
)

// A Cluster is one or three nodes that keep their data and ports until Close.
type Cluster struct {
	dist  *Distribution
	opts  Options
	dir   string
	nodes []*node // node 1 first
	lease *freeport.Lease

	closing sync.Once
}

// New lays out a cluster and starts nothing.
func New(dist *Distribution, opts Options) (*Cluster, error) {
	if err := opts.fill(); err != nil {
		return nil, err
	}
	template, err := os.ReadFile(dist.templatePath())
	if err != nil {
		return nil, fmt.Errorf("making a kafka cluster: %w", err)
	}
	c := &Cluster{dist: dist, opts: opts}
	perNode := portsPerNode + len(opts.Secured)
	if c.lease, err = freeport.Take(perNode * opts.Nodes); err != nil {
		return nil, fmt.Errorf("making a kafka cluster: %w", err)
	}
	if c.dir, err = makeDir(opts.Dir); err != nil {
		c.lease.Release()
		return nil, fmt.Errorf("making a kafka cluster: %w", err)
	}
	for i, p := range slices.Collect(slices.Chunk(c.lease.Ports(), perNode)) {
		c.nodes = append(c.nodes, &node{
			id:    i + 1,
			dir:   filepath.Join(c.dir, "node-"+strconv.Itoa(i+1)),
			ports: c.opts.assign(p),
		})
	}
	clusterID := newID()
	for _, n := range c.nodes {
		if err := c.layOut(n, clusterID, template); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("making kafka node %d: %w", n.id, err)
		}
	}
	return c, nil
}

// makeDir refuses a folder with something in it, since Close removes it.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "kafka-")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("using folder %s: it is not empty", dir)
	}
	return filepath.Abs(dir)
}

// Close kills what is left and removes the cluster's folder. Later calls do nothing.
func (c *Cluster) Close() error {
	var err error
	c.closing.Do(func() {
		err = errors.Join(c.Kill(), os.RemoveAll(c.dir))
		c.lease.Release()
	})
	return err
}

// command is how a node is run. The compiler and collector chosen are those that cost least at the start: a node lives
// for a minute and shares two cores with the client that is measured.
func (c *Cluster) command(n *node) *exec.Cmd {
	args := []string{
		"-Xmx" + strconv.Itoa(c.opts.HeapMiB) + "m",
		"-XX:TieredStopAtLevel=1",
		"-XX:+UseSerialGC",
		"-XX:-UsePerfData",
		"-XX:+ExitOnOutOfMemoryError",
		"-Djava.net.preferIPv4Stack=true",
		"-Djava.io.tmpdir=" + n.temp(), // native libraries are unpacked there, and a killed node leaves them
		"-Dlog4j2.configurationFile=" + n.logging(),
	}
	if c.dist.archive != "" {
		args = append(args, "-XX:SharedArchiveFile="+c.dist.archive)
	}
	for name, value := range c.opts.SystemProperties {
		args = append(args, "-D"+name+"="+value)
	}
	args = append(args, c.opts.jvmFlags...)
	// Ours come last: the archive of loaded classes is for a class path that begins with Kafka's.
	classPath := append([]string{c.dist.classPath()}, c.opts.ClassPath...)
	args = append(args, "-cp", strings.Join(classPath, string(os.PathListSeparator)), "kafka.Kafka", n.config())
	cmd := exec.Command(c.dist.java.path, args...)
	cmd.Dir = n.dir
	return cmd
}

// pick returns some nodes, or all when none is named.
func (c *Cluster) pick(ids []int) ([]*node, error) {
	if len(ids) == 0 {
		return c.nodes, nil
	}
	var nodes []*node
	for _, id := range ids {
		if id < 1 || id > len(c.nodes) {
			return nil, fmt.Errorf("looking up kafka node %d: there are %d, from 1", id, len(c.nodes))
		}
		nodes = append(nodes, c.nodes[id-1])
	}
	return nodes, nil
}

// each does one thing to some nodes at the same time, or to all.
func (c *Cluster) each(ids []int, do func(*node) error) error {
	nodes, err := c.pick(ids)
	if err != nil {
		return err
	}
	errs := make([]error, len(nodes))
	var wait sync.WaitGroup
	for i, n := range nodes {
		wait.Go(func() { errs[i] = do(n) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Start runs the processes of the given nodes, or of all, with the data and ports that they had. It does not wait until
// they answer. A node that runs stays as it is.
func (c *Cluster) Start(nodes ...int) error {
	return c.each(nodes, func(n *node) error { return n.start(c.command) })
}

// Stop ends the given nodes, or all, with SIGTERM, which hands their leaderships over, and waits for their end. Nodes that
// are left without a quorum have nobody to hand over to, and are killed when they do not end.
func (c *Cluster) Stop(nodes ...int) error {
	return c.each(nodes, func(n *node) error {
		if p := n.take(); p != nil {
			return n.stop(p, c.quorum)
		}
		return nil
	})
}

// quorum tells whether most of the nodes are alive.
func (c *Cluster) quorum() bool {
	alive := 0
	for _, n := range c.nodes {
		if n.alive() {
			alive++
		}
	}
	return alive > len(c.nodes)/2
}

// Kill ends the given nodes, or all, with SIGKILL and waits for their end.
func (c *Cluster) Kill(nodes ...int) error {
	return c.each(nodes, func(n *node) error {
		if p := n.take(); p != nil {
			p.Kill()
		}
		return nil
	})
}

// Freeze stops the processes of the given nodes, or of all, with SIGSTOP: the kernel still accepts connections, and nothing
// answers.
func (c *Cluster) Freeze(nodes ...int) error {
	return c.each(nodes, func(n *node) error { return n.signal("freezing", syscall.SIGSTOP) })
}

// Thaw lets frozen nodes go on.
func (c *Cluster) Thaw(nodes ...int) error {
	return c.each(nodes, func(n *node) error { return n.signal("thawing", syscall.SIGCONT) })
}

func (c *Cluster) addresses(port func(ports) int) []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = address(port(n.ports))
	}
	return addrs
}

// Brokers returns the addresses for the client under test, node 1 first.
func (c *Cluster) Brokers() []string { return c.addresses(func(p ports) int { return p.client }) }

// RigBrokers returns the addresses for everyone but the client under test: the nodes themselves use them too.
func (c *Cluster) RigBrokers() []string { return c.addresses(func(p ports) int { return p.rig }) }

// SecuredAddrs returns the addresses of a listener of Options.Secured, node 1 first.
func (c *Cluster) SecuredAddrs(name string) []string {
	return c.addresses(func(p ports) int { return p.secured[name] })
}

// ProxyAddrs returns the addresses at which the nodes believe the test's proxies to be. They are told to clients that come
// through a proxy, and nobody listens there unless the test does. Empty unless Proxied.
func (c *Cluster) ProxyAddrs() []string {
	if !c.opts.Proxied {
		return nil
	}
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = c.proxyAddr(n.ports)
	}
	return addrs
}

// ProxyTargets returns the addresses to which the test's proxies must lead. Empty unless Proxied.
func (c *Cluster) ProxyTargets() []string {
	if !c.opts.Proxied {
		return nil
	}
	return c.addresses(func(p ports) int { return p.proxy })
}

// PID returns the process of a node, or 0 when it is not running.
func (c *Cluster) PID(id int) int {
	nodes, err := c.pick([]int{id})
	if err != nil {
		return 0
	}
	if p := nodes[0].running(); p != nil {
		return p.Cmd.Process.Pid
	}
	return 0
}

// Log returns the last lines that a node has written: warnings, errors, and one line when it was up.
func (c *Cluster) Log(id, lines int) string {
	nodes, err := c.pick([]int{id})
	if err != nil {
		return err.Error()
	}
	return nodes[0].tail(lines)
}

// Logs returns the last lines of every node, for a test that has failed.
func (c *Cluster) Logs(lines int) string {
	var b strings.Builder
	for _, n := range c.nodes {
		fmt.Fprintf(&b, "--- kafka node %d\n%s\n", n.id, n.tail(lines))
	}
	return b.String()
}

//go:build e2e

package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/test/e2e/audit"
)

const patience = 2 * time.Minute

// timed logs how long something took, so that a run shows what the rig costs.
func timed(t *testing.T, what string, do func() error) {
	t.Helper()
	begin := time.Now()
	if err := do(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Logf("%-32s %6.2f s", what, time.Since(begin).Seconds())
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func newCluster(t *testing.T, opts Options) *Cluster {
	t.Helper()
	var d *Distribution
	timed(t, "install", func() (err error) {
		d, err = Install(within(t), "")
		return err
	})
	c, err := New(d, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs(20))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func startReady(t *testing.T, c *Cluster, nodes ...int) error {
	t.Helper()
	return errors.Join(c.Start(nodes...), c.WaitReady(within(t)))
}

// produce sends the numbers from first to last and waits until all are acknowledged.
func produce(t *testing.T, c *Cluster, first, last int) error {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.DefaultProduceTopic("app"),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	var records []*kgo.Record
	for n := first; n <= last; n++ {
		records = append(records, kgo.StringRecord(fmt.Sprintf(`{"seq":%d}`, n)))
	}
	return client.ProduceSync(within(t), records...).FirstErr()
}

func verify(t *testing.T, c *Cluster, last int64) {
	t.Helper()
	res, err := audit.Read(within(t), audit.Options{
		Brokers: c.RigBrokers(), Topic: "app", Expected: audit.Range(1, last),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Err(); err != nil {
		t.Error(err)
	}
	if res.FirstAppend.IsZero() {
		t.Error("the topic does not stamp its records")
	}
	t.Log(res)
}

var stamped = map[string]string{"message.timestamp.type": "LogAppendTime"}

func TestCluster_OneNodeKeepsItsDataAndPorts(t *testing.T) {
	c := newCluster(t, Options{})
	timed(t, "start 1 node", func() error { return startReady(t, c) })
	timed(t, "create topic", func() error { return c.CreateTopic(within(t), "app", 3, 1, stamped) })
	timed(t, "produce", func() error { return produce(t, c, 1, 1000) })
	if err := c.CreateTopic(within(t), "app", 3, 1, nil); err == nil {
		t.Error("creating a topic twice is no error")
	}

	timed(t, "kill", func() error { return c.Kill() })
	if _, err := net.Dial("tcp", c.Brokers()[0]); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling the killed node: got %v, want refused", err)
	}
	timed(t, "restart after kill", func() error { return startReady(t, c) })
	verify(t, c, 1000)

	timed(t, "stop", func() error { return c.Stop() })
	timed(t, "restart after stop", func() error { return startReady(t, c) })
	timed(t, "produce again", func() error { return produce(t, c, 1001, 2000) })
	verify(t, c, 2000)
}

func TestCluster_FrozenNodeHoldsTheAnswer(t *testing.T) {
	c := newCluster(t, Options{})
	timed(t, "start 1 node", func() error { return startReady(t, c) })
	if err := c.CreateTopic(within(t), "app", 1, 1, stamped); err != nil {
		t.Fatal(err)
	}
	if err := c.Freeze(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", c.Brokers()[0])
	if err != nil {
		t.Fatalf("dialling the frozen node: %v", err)
	}
	_ = conn.Close()
	acked := make(chan error, 1)
	go func() { acked <- produce(t, c, 1, 10) }()
	select {
	case err := <-acked:
		t.Errorf("a frozen node answered: %v", err)
	case <-time.After(time.Second):
	}
	if err := c.Thaw(); err != nil {
		t.Fatal(err)
	}
	timed(t, "answer after thaw", func() error { return <-acked })
	verify(t, c, 10)
	if err := c.Freeze(); err != nil {
		t.Fatal(err)
	}
	timed(t, "stop while frozen", func() error { return c.Stop() })
}

func TestCluster_ThreeNodesTakeEachOthersPlace(t *testing.T) {
	c := newCluster(t, Options{Nodes: 3})
	timed(t, "start 3 nodes", func() error { return startReady(t, c) })
	timed(t, "create topic", func() error { return c.CreateTopic(within(t), "app", 3, 3, stamped) })
	timed(t, "produce", func() error { return produce(t, c, 1, 1000) })
	leader, err := c.Leader(within(t), "app", 0)
	if err != nil {
		t.Fatal(err)
	}
	timed(t, "kill the leader", func() error { return c.Kill(leader) })
	timed(t, "new leader", func() error { _, err := c.Leader(within(t), "app", 0); return err })
	timed(t, "produce to two nodes", func() error { return produce(t, c, 1001, 2000) })
	timed(t, "restart after kill", func() error { return startReady(t, c, leader) })
	timed(t, "in sync again", func() error { return c.WaitInSync(within(t), "app") })
	verify(t, c, 2000)

	timed(t, "stop one", func() error { return c.Stop(1) })
	timed(t, "restart one", func() error { return startReady(t, c, 1) })
	timed(t, "in sync again", func() error { return c.WaitInSync(within(t), "app") })
	timed(t, "stop all", func() error { return c.Stop() })
	timed(t, "restart all", func() error { return startReady(t, c) })
	verify(t, c, 2000)
	timed(t, "kill all", func() error { return c.Kill() })
	timed(t, "restart all after kill", func() error { return startReady(t, c) })
	verify(t, c, 2000)
}

// The last nodes of a cluster can't hand their leaderships over: whoever would have to agree has ended.
func TestCluster_StopsWithoutAQuorum(t *testing.T) {
	c := newCluster(t, Options{Nodes: 3})
	timed(t, "start 3 nodes", func() error { return startReady(t, c) })
	for _, n := range []int{2, 3, 1} {
		timed(t, fmt.Sprintf("stop node %d", n), func() error { return c.Stop(n) })
	}
	timed(t, "restart all", func() error { return startReady(t, c) })
}

func TestCluster_ClosesIdleConnectionsWhenTold(t *testing.T) {
	c := newCluster(t, Options{Properties: map[string]string{"connections.max.idle.ms": "1000"}})
	timed(t, "start 1 node", func() error { return startReady(t, c) })
	conn, err := net.Dial("tcp", c.Brokers()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	timed(t, "idle close", func() error {
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		return nil
	})
}

// forward is the smallest proxy there is, and counts the connections that it passes on.
func forward(t *testing.T, from, to string) *atomic.Int64 {
	t.Helper()
	ln, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	var passed atomic.Int64
	var pumps sync.WaitGroup
	pump := func(dst, src net.Conn) {
		_, _ = io.Copy(dst, src)
		_ = dst.Close()
	}
	pumps.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			passed.Add(1)
			pumps.Go(func() { pump(far, near) })
			pumps.Go(func() { pump(near, far) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		pumps.Wait()
	})
	return &passed
}

// A client that comes through a proxy must be led back to the proxy by what the node says of itself.
func TestCluster_ProxiedClientsStayOnTheProxy(t *testing.T) {
	c := newCluster(t, Options{Proxied: true})
	passed := forward(t, c.ProxyAddrs()[0], c.ProxyTargets()[0])
	timed(t, "start 1 node", func() error { return startReady(t, c) })
	if err := c.CreateTopic(within(t), "app", 1, 1, stamped); err != nil {
		t.Fatal(err)
	}
	if n := passed.Load(); n != 0 {
		t.Errorf("the rig itself went through the proxy %d times", n)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ProxyAddrs()...), kgo.DefaultProduceTopic("app"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(within(t), kgo.StringRecord(`{"seq":1}`)).FirstErr(); err != nil {
		t.Fatal(err)
	}
	m, err := kadm.NewClient(client).BrokerMetadata(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Brokers[0]; address(int(b.Port)) != c.ProxyAddrs()[0] || passed.Load() < 2 {
		t.Errorf("the node said port %d, want %s; %d connections through the proxy", b.Port, c.ProxyAddrs()[0], passed.Load())
	}
	verify(t, c, 1)
}

func TestCluster_DiesWithTheTestProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+filepath.Join(t.TempDir(), "cluster"))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	_, scanErr := fmt.Fscanf(stdout, "pid %d\n", &pid)
	if scanErr == nil && !alive(pid) {
		t.Errorf("process %d is not there before the test process ends", pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if scanErr != nil {
		t.Fatalf("reading the process of the node: %v", scanErr)
	}
	for deadline := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlived the process that started it", pid)
		}
	}
}

// alive does not count a dead process that nobody has collected yet.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

package kafka

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fakeDistribution is enough for New, which runs nothing.
func fakeDistribution(t *testing.T) *Distribution {
	t.Helper()
	d := &Distribution{dir: t.TempDir()}
	if err := os.WriteFile(d.templatePath(), []byte("template"), 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNew_LaysOutEachNode(t *testing.T) {
	c, err := New(fakeDistribution(t), Options{
		Dir: filepath.Join(t.TempDir(), "cluster"), Nodes: 3, Proxied: true, ProxyHost: "kafka.test",
		Properties:    map[string]string{"connections.max.idle.ms": "2000", "num.io.threads": "1"},
		ProxySecurity: Security{Protocol: "SSL", Settings: map[string]string{"ssl.client.auth": "required"}},
		Secured:       map[string]Security{"LOGIN": {Protocol: "SASL_SSL"}, "ANOTHER": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(c.nodes[1].config())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"node.id=2",
		"controller.quorum.voters=1@" + address(c.nodes[0].ports.controller) + ",2@",
		"listeners=CLIENT://" + c.Brokers()[1] + ",RIG://" + c.RigBrokers()[1] + ",PROXY://" + c.ProxyTargets()[1] +
			",ANOTHER://" + c.SecuredAddrs("ANOTHER")[1] + ",LOGIN://" + c.SecuredAddrs("LOGIN")[1] + ",CONTROLLER://",
		"listener.name.proxy.ssl.client.auth=required",
		"advertised.listeners=CLIENT://" + c.Brokers()[1] + ",RIG://" + c.RigBrokers()[1] + ",PROXY://" + c.ProxyAddrs()[1],
		"auto.create.topics.enable=false",
		"broker.session.timeout.ms=3000",
		"connections.max.idle.ms=2000",
		"num.io.threads=1",
		"offsets.topic.replication.factor=3",
	} {
		if !strings.Contains("\n"+string(data), "\n"+line) {
			t.Errorf("server.properties does not contain %q:\n%s", line, data)
		}
	}
	for _, pair := range []string{"CLIENT:PLAINTEXT", "PROXY:SSL", "LOGIN:SASL_SSL", "ANOTHER:PLAINTEXT", "CONTROLLER:PLAINTEXT"} {
		if !slices.Contains(strings.Split(c.properties(2)[protocolMap], ","), pair) {
			t.Errorf("%s is missing in %s", pair, c.properties(2)[protocolMap])
		}
	}
	meta, err := os.ReadFile(filepath.Join(c.nodes[2].data(), "meta.properties"))
	if err != nil || !strings.Contains(string(meta), "node.id=3\n") {
		t.Errorf("meta.properties: got %q, %v", meta, err)
	}

	if addr := c.ProxyAddrs()[1]; addr != "kafka.test:"+strconv.Itoa(c.nodes[1].ports.proxied) {
		t.Errorf("the proxy is at %s", addr)
	}

	if c.Start(4) == nil || c.Freeze(1) == nil || c.PID(1) != 0 {
		t.Error("a node that is not there, or not running, was acted on")
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stopping what never ran: %v", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestNew_RefusesWhatItCannotDo(t *testing.T) {
	d := fakeDistribution(t)
	if _, err := New(d, Options{Nodes: 2}); err == nil || !strings.Contains(err.Error(), "allowed: 1, 3") {
		t.Errorf("two nodes: got %v", err)
	}
	if _, err := New(d, Options{Dir: d.dir}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder in use: got %v", err)
	}
	c, err := New(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if c.ProxyAddrs() != nil || c.ProxyTargets() != nil || len(c.Brokers()) != 1 {
		t.Error("the zero options make something else than one node without a proxy")
	}
}

// A node that ends by itself must be told at once, with its log, instead of after the whole wait.
func TestWaitReady_TellsOfACrashAtOnce(t *testing.T) {
	bin := t.TempDir()
	fakeTool(t, bin, "java", "echo no memory; exit 3")
	d := fakeDistribution(t)
	d.java.path = filepath.Join(bin, "java")
	c, err := New(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.WaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "no node is running") {
		t.Errorf("before the start: got %v", err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	err = c.WaitReady(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("got %v", err)
	}
}

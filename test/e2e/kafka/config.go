package kafka

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options says what New lays out. The zero value is one node in a new temporary folder.
type Options struct {
	// Dir is the cluster's own folder: New makes it if it is not there, Close removes it. Empty means a new temporary
	// one. A file system in memory makes starts faster.
	Dir string
	// Nodes is 1 or 3. Zero means 1.
	Nodes int
	// Properties are added to each node's server.properties and win over ours, for example connections.max.idle.ms.
	Properties map[string]string
	// AutoCreateTopics makes unknown topics appear when a client asks for them. Tests with a misspelt topic then hang, so
	// it is off unless asked for.
	AutoCreateTopics bool
	// SessionTimeout is how long a silent node counts as alive. A killed node cannot come back earlier. Zero means 3 s.
	SessionTimeout time.Duration
	// Proxied adds a listener to each node that is advertised as an address of ProxyAddrs, where the test is expected
	// to open a proxy to the address of ProxyTargets with the same index.
	Proxied bool
	// ProxyHost is the host in the addresses of ProxyAddrs. Empty means 127.0.0.1.
	ProxyHost string
	// ProxySecurity is how the listener for proxies is secured. The zero value is plain text.
	ProxySecurity Security
	// Secured are further listeners of each node, by name in capitals; SecuredAddrs tells where.
	Secured map[string]Security
	// SystemProperties are given to the JVM, ClassPath names folders with further classes.
	SystemProperties map[string]string
	ClassPath        []string
	// HeapMiB is each node's largest heap. Zero means 512 for one node and 384 for each of three.
	HeapMiB int

	jvmFlags []string // for makeArchive
}

// Security is how a listener is secured.
type Security struct {
	// Protocol is Kafka's word for it, such as SASL_SSL. Empty means PLAINTEXT.
	Protocol string
	// Settings are properties of this listener, without its prefix: ssl.client.auth.
	Settings map[string]string
}

// apply adds a listener's security to a server.properties.
func (s Security) apply(listener string, props map[string]string) {
	props[protocolMap] += "," + listener + ":" + cmp.Or(s.Protocol, "PLAINTEXT")
	for key, value := range s.Settings {
		props[ListenerPrefix(listener)+key] = value
	}
}

// protocolMap is the property that tells the protocol of each listener.
const protocolMap = "listener.security.protocol.map"

// ListenerPrefix begins the properties of one listener.
func ListenerPrefix(listener string) string {
	return "listener.name." + strings.ToLower(listener) + "."
}

// proxyListener is the name of the listener for proxies.
const proxyListener = "PROXY"

func (o *Options) fill() error {
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Nodes != 1 && o.Nodes != 3 {
		return fmt.Errorf("making a kafka cluster: %d nodes are not supported; allowed: 1, 3", o.Nodes)
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 3 * time.Second
	}
	if o.ProxyHost == "" {
		o.ProxyHost = "127.0.0.1"
	}
	if o.HeapMiB == 0 {
		o.HeapMiB = 512
		if o.Nodes > 1 {
			o.HeapMiB = 384
		}
	}
	return nil
}

// ports are one node's, all on 127.0.0.1. Proxy and proxied are 0 unless asked for.
type ports struct {
	client, rig, controller int
	proxy                   int // where the node listens for the proxy
	proxied                 int // where the test's proxy listens
	secured                 map[string]int
}

// portsPerNode is how many there are in ports besides those of secured listeners.
const portsPerNode = 5

// assign gives a node its ports.
func (o *Options) assign(free []int) ports {
	p := ports{client: free[0], rig: free[1], controller: free[2], proxy: free[3], proxied: free[4], secured: map[string]int{}}
	for i, name := range slices.Sorted(maps.Keys(o.Secured)) {
		p.secured[name] = free[portsPerNode+i]
	}
	return p
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// proxyAddr is where a node believes its proxy to be.
func (c *Cluster) proxyAddr(p ports) string {
	return net.JoinHostPort(c.opts.ProxyHost, strconv.Itoa(p.proxied))
}

// properties returns a node's server.properties as a map.
func (c *Cluster) properties(id int) map[string]string {
	p := c.nodes[id-1].ports
	voters := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		voters[i] = fmt.Sprintf("%d@%s", n.id, address(n.ports.controller))
	}
	listeners := []string{"CLIENT://" + address(p.client), "RIG://" + address(p.rig)}
	advertised := slices.Clone(listeners)
	if c.opts.Proxied {
		listeners = append(listeners, proxyListener+"://"+address(p.proxy))
		advertised = append(advertised, proxyListener+"://"+c.proxyAddr(p))
	}
	for _, name := range slices.Sorted(maps.Keys(p.secured)) {
		listeners = append(listeners, name+"://"+address(p.secured[name]))
		advertised = append(advertised, name+"://"+address(p.secured[name]))
	}
	replicas := strconv.Itoa(len(c.nodes))
	props := map[string]string{
		"process.roles":              "broker,controller",
		"node.id":                    strconv.Itoa(id),
		"controller.quorum.voters":   strings.Join(voters, ","),
		"controller.listener.names":  "CONTROLLER",
		"inter.broker.listener.name": "RIG",
		"listeners":                  strings.Join(append(listeners, "CONTROLLER://"+address(p.controller)), ","),
		"advertised.listeners":       strings.Join(advertised, ","),
		protocolMap:                  "CLIENT:PLAINTEXT,RIG:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                   c.nodes[id-1].data(),

		"auto.create.topics.enable":    strconv.FormatBool(c.opts.AutoCreateTopics),
		"broker.session.timeout.ms":    strconv.FormatInt(c.opts.SessionTimeout.Milliseconds(), 10),
		"broker.heartbeat.interval.ms": "500",

		// Groups and internal topics as small and quick as they go.
		"group.initial.rebalance.delay.ms":         "0",
		"offsets.topic.num.partitions":             "1",
		"offsets.topic.replication.factor":         replicas,
		"transaction.state.log.num.partitions":     "1",
		"transaction.state.log.replication.factor": replicas,
		"transaction.state.log.min.isr":            "1",

		// A few threads for two cores, and no 128 MiB buffer for the log cleaner.
		"num.network.threads":            "2",
		"num.io.threads":                 "4",
		"background.threads":             "2",
		"log.cleaner.dedupe.buffer.size": "2097152",
	}
	c.opts.ProxySecurity.apply(proxyListener, props)
	for name, security := range c.opts.Secured {
		security.apply(name, props)
	}
	maps.Copy(props, c.opts.Properties)
	return props
}

// render writes properties in the order of their keys. Keys and values are plain words here, so nothing is escaped
// but the backslash.
func render(props map[string]string) []byte {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&b, "%s=%s\n", key, strings.ReplaceAll(props[key], `\`, `\\`))
	}
	return []byte(b.String())
}

// newID returns an identifier of the kind that Kafka uses for clusters and directories: 16 bytes in base64 for URLs.
// One that begins with a minus sign would be taken for an option by Kafka's tool.
func newID() string {
	for {
		var b [16]byte
		_, _ = rand.Read(b[:])
		if id := base64.RawURLEncoding.EncodeToString(b[:]); id[0] != '-' {
			return id
		}
	}
}

// logging keeps warnings only, plus the one line that says that a node is up.
const logging = `status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %-5p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
`

// layOut writes what a node needs before its first start. It is what formatting does, see makeTemplate.
func (c *Cluster) layOut(n *node, clusterID string, template []byte) error {
	if err := os.MkdirAll(n.data(), 0o755); err != nil {
		return err
	}
	for path, data := range map[string][]byte{
		n.config():  render(c.properties(n.id)),
		n.logging(): []byte(logging),
		filepath.Join(n.data(), "bootstrap.checkpoint"): template,
		filepath.Join(n.data(), "meta.properties"): render(map[string]string{
			"version": "1", "cluster.id": clusterID, "node.id": strconv.Itoa(n.id), "directory.id": newID(),
		}),
	} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"out_kafka_reconnect/test/e2e/kafka"
	"out_kafka_reconnect/test/e2e/kafka/freeport"
	"out_kafka_reconnect/test/e2e/rig"
	"out_kafka_reconnect/test/e2e/secure"
)

// atOnce is how many scenarios run at a time with each kind of Kafka. They mostly wait, so they are more than there are
// cores. The long ones, which run beside them, hardly do anything.
var atOnce = map[string]int{"real": 2, "embedded": 3, "long": 4}

// TestMain lets testing start all scenarios at once: they wait for each other in setup, each kind for its own.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "1000") // the flag is there and takes a number
	}
	os.Exit(m.Run())
}

// A cell is one combination of the matrix.
type cell struct {
	broker, host string
	// program is the host, plugin the library.
	program, plugin string
}

func (c cell) String() string { return c.broker + "-" + c.host }

// hosts are the hosts that there are.
func hosts(t *testing.T) []cell {
	t.Helper()
	plugin, err := rig.Built("../../build/out_kafka_reconnect.so", "build")
	if err != nil {
		t.Fatal(err)
	}
	chost, err := rig.Built("../../build/chost", "build/chost")
	if err != nil {
		t.Fatal(err)
	}
	fluentBit, version, err := rig.FindFluentBit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := []cell{{host: "chost", program: chost, plugin: plugin}}
	if fluentBit == "" {
		t.Log("Fluent Bit: there is none in FLUENT_BIT or PATH, so this runs in the C host only")
		return all
	}
	t.Logf("Fluent Bit: %s, version %s", fluentBit, version)
	return append(all, cell{host: "fluent-bit", program: fluentBit, plugin: plugin})
}

// TestScenarios runs every scenario in every combination that it does not exclude.
func TestScenarios(t *testing.T) {
	hosts := hosts(t)
	// Once, before the scenarios wait for each other; it fails with what to install.
	ctx, cancel := context.WithTimeout(t.Context(), installPatience)
	defer cancel()
	_, noKafka := kafka.Install(ctx, "")

	long := make(chan struct{}, atOnce["long"])
	for _, broker := range []string{"real", "embedded"} {
		slots := make(chan struct{}, atOnce[broker])
		for _, c := range hosts {
			c.broker = broker
			t.Run(c.String(), func(t *testing.T) {
				if c.broker == "real" && noKafka != nil {
					t.Fatal(noKafka)
				}
				t.Parallel()
				testscript.Run(t, params(c, "scenarios", slots))
				testscript.Run(t, params(c, "scenarios/long", long))
			})
		}
	}
}

// installPatience is how long fetching Kafka may take.
const installPatience = 10 * time.Minute

// params is what testscript needs to run the scenarios of a folder in one cell.
func params(c cell, dir string, slots chan struct{}) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		Cmds:                commands,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			switch name {
			case "embedded", "real":
				return name == c.broker, nil
			case "chost", "fluent-bit":
				return name == c.host, nil
			}
			return false, fmt.Errorf("condition %q is unknown; allowed: embedded, real, chost, fluent-bit", name)
		},
		Setup: func(env *testscript.Env) error { return setup(env, c, slots) },
	}
}

// A scenario is one file at work in one cell.
type scenario struct {
	cell    cell
	dir     string
	tally   *rig.Tally
	names   *rig.Names // nil unless the host has names of its own
	host    rig.Host
	brokers map[string]rig.Broker // by name; "kafka" is the one that is meant without a name
	// registry is nil until there is one.
	registry *rig.Registry
	counts   map[string]rig.Counts // as of "retries from here"
	noted    rig.Resources         // as of "resources note"
	lease    *freeport.Lease       // of the port for metrics
	began    time.Time

	// Log lines count from the beginning of the last thing that was done to a Kafka or the host; time counts from the end of
	// the last thing that was done at all.
	fromLine int
	fromTime time.Time
}

// mainKafka is the name of the broker that is meant without a name.
const mainKafka = "kafka"

// scenarioKey is where testscript keeps the scenario.
type scenarioKey struct{}

// setup waits for its turn, without a limit: the others end in bounded time.
func setup(env *testscript.Env, c cell, slots chan struct{}) error {
	slots <- struct{}{}
	lease, err := freeport.Take(1)
	if err != nil {
		<-slots
		return err
	}
	s := &scenario{
		cell: c, dir: env.WorkDir, tally: rig.NewTally(), brokers: map[string]rig.Broker{}, began: time.Now(), fromTime: time.Now(), lease: lease,
	}
	env.Values[scenarioKey{}] = s
	env.Defer(func() {
		if t, ok := env.T().(testing.TB); ok && t.Failed() {
			t.Log(s.report())
		}
		if err := s.leak(); err != nil {
			env.T().(testing.TB).Error(err)
		}
		if err := s.close(); err != nil {
			env.T().Log("closing:", err)
		}
		env.T().Log("took", time.Since(s.began).Round(100*time.Millisecond))
		<-slots
	})
	return nil
}

// metricsAddr is where the plugin may serve metrics.
func (s *scenario) metricsAddr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.lease.Ports()[0]))
}

// theHost makes the host at its first use.
func (s *scenario) theHost() (rig.Host, error) {
	if s.host != nil {
		return s.host, nil
	}
	host, err := rig.NewHost(s.cell.host, rig.HostOptions{
		Program: s.cell.program, Plugin: s.cell.plugin, Dir: filepath.Join(s.dir, "host"), Tally: s.tally, Names: s.names,
		Env: []string{
			"AWS_SHARED_CREDENTIALS_FILE=" + filepath.Join(s.dir, "aws_credentials"), "AWS_CONFIG_FILE=" + filepath.Join(s.dir, "aws_config"),
			"AWS_EC2_METADATA_DISABLED=true", // which is not on this machine
		},
	})
	s.host = host
	return host, err
}

// makeBroker makes a broker, which is up then.
func (s *scenario) makeBroker(ctx context.Context, name string, opts rig.BrokerOptions) (rig.Broker, error) {
	opts.Dir = filepath.Join(s.dir, name)
	b, err := rig.NewBroker(ctx, s.cell.broker, opts)
	if err != nil {
		return nil, err
	}
	s.brokers[name] = b
	return b, nil
}

// leak looks for secrets in the log of the host.
func (s *scenario) leak() error {
	if s.host == nil {
		return nil
	}
	secrets := secure.Secrets
	for _, b := range s.brokers {
		if b, ok := b.(rig.Secured); ok {
			secrets = append(slices.Clone(secrets), b.Secrets()...)
		}
	}
	return s.host.LogLines().Leak(secrets)
}

// close ends everything.
func (s *scenario) close() error {
	var errs []error
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	for _, b := range s.brokers {
		errs = append(errs, b.Close())
	}
	if s.registry != nil {
		errs = append(errs, s.registry.Close())
	}
	s.lease.Release()
	return errors.Join(errs...)
}

// reportWithin bounds the audit of a report: the broker may be down.
const reportWithin = 3 * time.Second

// report is what helps to see why a scenario failed.
func (s *scenario) report() string {
	text := fmt.Sprintf("the host has accepted %d records", s.tally.Accepted())
	if s.host != nil {
		text += "\n--- last lines of the host\n" + s.host.LogLines().Tail(60)
	}
	for name, b := range s.brokers {
		text += "\n--- " + name + "\n" + b.Logs()
		ctx, cancel := context.WithTimeout(context.Background(), reportWithin)
		res, err := s.tally.Audit(ctx, b)
		cancel()
		text += fmt.Sprintf("\n--- audit of %s: %v", name, res)
		if err != nil {
			text += fmt.Sprintf(" (%v)", err)
		}
	}
	return text
}

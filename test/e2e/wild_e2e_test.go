//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.yaml.in/yaml/v3"

	"out_kafka_reconnect/plugin/config/configtest"
	"out_kafka_reconnect/test/e2e/embedded/broker"
	"out_kafka_reconnect/test/e2e/rig"
	"out_kafka_reconnect/test/e2e/secure"
)

// wildRecords is how many records each section in the wild is to deliver.
const wildRecords = 20

// TestSectionsInTheWild starts all sections as people have them for the built-in output in one host, with the brokers and the
// registry in it replaced by ours and without their logins: every one delivers, and none complains of anything but what
// the head of its file expects, and their secrets are in no log. The sections in YAML are given to Fluent Bit in YAML.
func TestSectionsInTheWild(t *testing.T) {
	sections, err := configtest.Read("../../plugin/config/testdata/wild")
	if err != nil {
		t.Fatal(err)
	}
	sections = slices.DeleteFunc(sections, func(s *configtest.Section) bool { return s.Refused != nil })
	for _, c := range hosts(t) {
		t.Run(c.host, func(t *testing.T) {
			t.Parallel()
			if c.host != "fluent-bit" { // which alone reads YAML
				runWild(t, c, sections, false)
				return
			}
			isYAML := func(s *configtest.Section) bool { return s.Nodes != nil }
			classic := slices.DeleteFunc(slices.Clone(sections), isYAML)
			runWild(t, c, classic, false)
			inYAML := slices.DeleteFunc(slices.Clone(sections), func(s *configtest.Section) bool { return !isYAML(s) })
			if len(inYAML) == 0 {
				t.Error("there is no section in YAML")
			}
			runWild(t, c, inYAML, true)
		})
	}
}

func runWild(t *testing.T, c cell, sections []*configtest.Section, inYAML bool) {
	b, err := broker.New(broker.Options{Kfake: []kfake.Opt{kfake.AllowAutoTopicCreation()}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	registry, err := rig.NewRegistry(`{"type": "record", "name": "line", "fields": [
		{"name": "seq", "type": "long"}, {"name": "log", "type": "string"}, {"name": "topic", "type": "string"}, {"name": "pod_name", "type": "string"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = registry.Close() }()
	if err := registry.Start(); err != nil {
		t.Fatal(err)
	}
	host, err := rig.NewHost(c.host, rig.HostOptions{
		Program: c.program, Plugin: c.plugin, Dir: filepath.Join(t.TempDir(), "host"), Tally: rig.NewTally(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	conf, err := wildConf(sections, inYAML, b.Addrs()[0], registry.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := host.Configure(conf); err != nil {
		t.Fatal(err)
	}
	err = host.Start(ctx)
	if err == nil {
		shape := rig.Shape{Fields: map[string]string{"topic": "wild-topic", "pod_name": "web-1"}}
		err = host.LogShaped(ctx, wildRecords, shape)
	}
	if err == nil {
		err = until(ctx, func() error { return wildDelivered(ctx, host, sections) })
	}
	if err == nil {
		_, err = host.Stop(ctx)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, host.LogLines().Tail(40))
	}
	for _, line := range host.LogLines().Find(0, regexp.MustCompile(`\[error\]`)) {
		t.Errorf("the host says %s", line.Text)
	}
	secrets := slices.Clone(secure.Secrets)
	for i, s := range sections {
		secrets = append(secrets, wildSecrets(s)...)
		checkComplaints(t, host.LogLines(), fmt.Sprintf("kafka_reconnect.%d", i), s)
	}
	if err := host.LogLines().Leak(secrets); err != nil {
		t.Error(err)
	}
}

// wildKeys are the keys of a section for our brokers, which want no login. Its secrets are where one may have them by mistake.
func wildKeys(s *configtest.Section, addr, registry string) map[string]string {
	keys := maps.Collect(s.All())
	for name := range keys {
		switch {
		case strings.HasPrefix(name, "aws_msk_iam"), strings.HasPrefix(name, "rdkafka.security."), strings.HasPrefix(name, "rdkafka.sasl."), strings.HasPrefix(name, "rdkafka.ssl."),
			strings.HasPrefix(name, "match"), name == "rdkafka.enable.ssl.certificate.verification":
			delete(keys, name)
		case name == "brokers", name == "rdkafka.bootstrap.servers":
			keys[name] = addr
		case name == "schema.registry.url":
			keys[name] = "http://" + registry
		}
	}
	if secrets := wildSecrets(s); secrets != nil {
		keys["headers"] = "source=wild,password=" + strings.Join(secrets, " ")
	}
	keys["name"], keys["alias"], keys["match"] = "kafka_reconnect", s.Name, "*"
	return keys
}

// wildSecrets are the passwords of a section. Some have the name of their variable for a value, and a short one may be
// anywhere in a log.
func wildSecrets(s *configtest.Section) []string {
	const short = 6
	var secrets []string
	for name, value := range s.All() {
		if (strings.Contains(name, "password") || strings.Contains(name, "passwd")) && len(value) > short {
			secrets = append(secrets, value)
		}
	}
	slices.Sort(secrets)
	return secrets
}

// wildConf is the configuration of all sections in one of the forms.
func wildConf(sections []*configtest.Section, inYAML bool, addr, registry string) (rig.Conf, error) {
	var text strings.Builder
	for _, s := range sections {
		keys := wildKeys(s, addr, registry)
		if !inYAML {
			text.WriteString("\n[OUTPUT]\n")
			for _, name := range slices.Sorted(maps.Keys(keys)) {
				fmt.Fprintf(&text, "    %s %s\n", name, keys[name])
			}
			continue
		}
		item := make(map[string]yaml.Node, len(keys))
		for name, value := range keys {
			node, ok := s.Nodes[name]
			if !ok {
				node = yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle}
			}
			node.Value = value // in its own style: on is no text for everybody
			item[name] = node
		}
		list, err := yaml.Marshal([]map[string]yaml.Node{item})
		if err != nil {
			return rig.Conf{}, err
		}
		text.Write(list)
	}
	return rig.Conf{YAML: inYAML, Outputs: text.String()}, nil
}

// wildDelivered tells which sections have not delivered everything.
func wildDelivered(ctx context.Context, host rig.Host, sections []*configtest.Section) error {
	counts, err := host.Counts(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, s := range sections {
		if n := counts[s.Name].Records; n != wildRecords {
			missing = append(missing, fmt.Sprintf("%s %d", s.Name, n))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("waiting for %d records of each section, there are of %v", wildRecords, missing)
	}
	return nil
}

// checkComplaints compares the warnings and errors of a section with those that its file expects. Its lines have the name of
// the instance, which counts from 0.
func checkComplaints(t *testing.T, log *rig.Log, instance string, s *configtest.Section) {
	t.Helper()
	complaint := regexp.MustCompile(`\[ ?(warn|error)\] \[output:kafka_reconnect:` + regexp.QuoteMeta(instance) + `\] (.*)`)
	var got []string
	for _, line := range log.Find(0, complaint) {
		text, _, _ := strings.Cut(complaint.FindStringSubmatch(line.Text)[2], " at=") // a line that waited has its time
		got = append(got, text)
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(s.Warnings)); !slices.Equal(got, want) {
		t.Errorf("section %s complains\n%s\nwant\n%s", s.Name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

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

	"out_kafka_reconnect/plugin/config/configtest"
	"out_kafka_reconnect/test/e2e/embedded/broker"
	"out_kafka_reconnect/test/e2e/rig"
)

// wildRecords is how many records each section in the wild is to deliver.
const wildRecords = 20

// TestSectionsInTheWild starts all sections as people have them for the built-in output in one host, with the brokers and the
// registry in it replaced by ours and without their logins: every one delivers, and none complains of anything but what
// the head of its file expects.
func TestSectionsInTheWild(t *testing.T) {
	sections, err := configtest.Read("../../plugin/config/testdata/wild")
	if err != nil {
		t.Fatal(err)
	}
	sections = slices.DeleteFunc(sections, func(s *configtest.Section) bool { return s.Refused != nil })
	for _, c := range hosts(t) {
		t.Run(c.host, func(t *testing.T) {
			t.Parallel()
			runWild(t, c, sections)
		})
	}
}

func runWild(t *testing.T, c cell, sections []*configtest.Section) {
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
	var outputs strings.Builder
	for _, s := range sections {
		outputs.WriteString(wildOutput(s, b.Addrs()[0], registry.Addr()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := host.Configure(rig.Conf{Outputs: outputs.String()}); err != nil {
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
	for i, s := range sections {
		checkComplaints(t, host.LogLines(), fmt.Sprintf("kafka_reconnect.%d", i), s)
	}
}

// wildOutput is a section for our brokers.
func wildOutput(s *configtest.Section, addr, registry string) string {
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
	keys["name"], keys["alias"], keys["match"] = "kafka_reconnect", s.Name, "*"
	text := "\n[OUTPUT]\n"
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		text += fmt.Sprintf("    %s %s\n", name, keys[name])
	}
	return text
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

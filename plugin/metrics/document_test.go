package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"out_kafka_reconnect/reconnect/fsm"
)

const document = "../../docs/metrics.md"

// The document lists what exists, with its type and labels, and nothing else.
func TestDocument_ListsWhatExists(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	documented := rows(t, string(text))
	for _, want := range existing(t) {
		i := slices.IndexFunc(documented, func(r row) bool { return r.name == want.name })
		if i < 0 {
			t.Errorf("%s is not documented", want.name)
			continue
		}
		if got := documented[i]; got != want {
			t.Errorf("documented %+v, want %+v", got, want)
		}
		documented = slices.Delete(documented, i, i+1)
	}
	for _, r := range documented {
		t.Errorf("%s is documented and does not exist, or is documented twice", r.name)
	}
	for _, s := range fsm.States() {
		if !strings.Contains(string(text), "`"+s.String()+"`") {
			t.Errorf("state %s is not documented", s)
		}
	}
}

// row is one metric; its labels are sorted.
type row struct{ name, kind, labels string }

var tableRow = regexp.MustCompile("(?m)^\\| `(kafka_reconnect_[a-z_]+)` \\| ([a-z]+) \\| ([^|]+) \\| [^|]+ \\| [^|]+ \\|$")

func rows(t *testing.T, text string) []row {
	t.Helper()
	var all []row
	for _, m := range tableRow.FindAllStringSubmatch(text, -1) {
		all = append(all, row{m[1], m[2], labels(strings.Split(strings.ReplaceAll(m[3], "`", ""), ", "))})
	}
	if n := strings.Count(text, "\n| `"); n != len(all) {
		t.Errorf("%d rows of the table can be read, it has %d", len(all), n)
	}
	return all
}

func labels(names []string) string {
	slices.Sort(names)
	return strings.Join(names, " ")
}

// existing asks an instance that has a value for everything.
func existing(t *testing.T) []row {
	t.Helper()
	registry := prometheus.NewRegistry()
	wrapped := prometheus.WrapRegistererWith(prometheus.Labels{"instance": "a"}, registry)
	if err := wrapped.Register(collector{source: fake(full), latency: NewLatency()}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []row
	for _, f := range families {
		var names []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			names = append(names, l.GetName())
		}
		all = append(all, row{f.GetName(), strings.ToLower(f.GetType().String()), labels(names)})
	}
	return all
}

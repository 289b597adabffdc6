package plugin

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/test/e2e/parity"
)

// The messages of each record of the corpus, in each section, are equal to what Kafka received
// from the built-in output, or better for a listed reason. Command parity records that, and does
// the same with both outputs in one Fluent Bit.
func TestParity(t *testing.T) {
	recording, err := parity.ReadRecording("../test/e2e/parity/testdata/builtin.txt")
	if err != nil {
		t.Fatal(err)
	}
	corpora := map[string]parity.Corpus{}
	for _, c := range parity.Corpora() {
		corpora[c.Name] = c
	}
	var score parity.Score
	records := 0
	for _, section := range parity.Sections() {
		s := settings{}
		for _, k := range section.Config(true) {
			s[k.Name] = k.Value
		}
		c := decode(t, s)
		schemas, err := newSchemas(c, nil)
		if err != nil {
			t.Fatalf("section %s: %v", section.Name, err)
		}
		e, err := newEncoder(c, schemas)
		if err != nil || !e.ready() {
			t.Fatalf("section %s: %v", section.Name, err)
		}
		for _, r := range corpora[section.Corpus].Records {
			builtin, err := recording.Of(section.Name, r)
			if err != nil {
				t.Fatal(err)
			}
			score.Add(&section, r, builtin, parityMessages(e.encode(r.Chunk, "tag", time.Unix(noon, 0)), builtin))
			records++
		}
	}
	for _, text := range score.Worse {
		t.Errorf("worse: %s", text)
	}
	for _, name := range score.Unused() {
		t.Errorf("no record needs the reason %q", name)
	}
	if n := recording.Len(); n != records {
		t.Errorf("%d records are recorded, there are %d", n, records)
	}
	t.Logf("against the output of Fluent Bit %s\n%s", recording.Version, score.Markdown())
	checkParityDocument(t, recording.Version, score.Markdown())
}

var rewriteParity = flag.Bool("rewrite", false, "rewrite the table of docs/parity.md")

// checkParityDocument compares the table of the page with that of the score.
func checkParityDocument(t *testing.T, version, table string) {
	t.Helper()
	const path, begin, end = "../docs/parity.md", "<!-- make docs writes what follows -->\n", "<!-- end of what make docs writes -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	want := head + begin + "\nAgainst the output of Fluent Bit " + version + ":\n\n" + table + "\n" + end + tail
	switch {
	case string(text) == want:
	case *rewriteParity:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date; run: make docs", path)
	}
}

// noon is the time of the flush.
const noon = 1_700_000_000

// parityMessages are the messages of a batch as Kafka has them. The partition of a key is not up
// to us: it is that of the built-in output's message.
func parityMessages(b *reconnect.Batch, builtin []parity.Message) (all []parity.Message) {
	for i, m := range b.Messages {
		p := parity.Message{Topic: b.Topics[m.Topic], Value: slices.Clone(b.Data[m.ValOff : m.ValOff+m.ValLen]), EventTime: m.Timestamp != 0}
		if m.KeyLen != reconnect.NoKey {
			p.Key = append([]byte{}, b.Data[m.KeyOff:m.KeyOff+m.KeyLen]...)
		}
		if m.Partition == reconnect.PartitionAny && i < len(builtin) {
			p.Partition = builtin[i].Partition
		}
		all = append(all, p)
	}
	return all
}

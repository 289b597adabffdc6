package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/test/e2e/parity"
)

// newTestSorter sorts for two sections: one whose records are told apart by fences, one whose messages have marks.
func newTestSorter() *sorter {
	fenced := parity.Section{Name: "fenced", Corpus: "f"}
	marked := parity.Section{Name: "marked", Corpus: "m"}
	b := &bout{
		corpora: map[string]parity.Corpus{
			"f": {Name: "f", Records: make([]parity.Record, 3)}, "m": {Name: "m", Records: make([]parity.Record, 2), Marked: true},
		},
		sections: []parity.Section{fenced, marked},
	}
	return &sorter{
		bout: b, side: &side{messages: map[string][][]parity.Message{"fenced": make([][]parity.Message, 3), "marked": make([][]parity.Message, 2)}},
		owners: map[string]*parity.Section{"fenced": &b.sections[0], "marked": &b.sections[1]},
		alone:  map[string]*parity.Section{"f": &b.sections[0], "m": &b.sections[1]}, next: map[string]int{},
	}
}

func record(topic, value string) *kgo.Record { return &kgo.Record{Topic: topic, Value: []byte(value)} }

func TestSorter(t *testing.T) {
	s := newTestSorter()
	for _, r := range []*kgo.Record{
		record("fenced", "a"), record("fenced", "x fence-0000"), record("fenced", "fence-0001"), record("fenced", "b"), record("fenced", "c"), record("fenced", "fence-0002"),
		record("marked", "m#0001"), record("made up", `{"topic":"made up","mark":"m#0000"}`),
	} {
		if err := s.take(r); err != nil {
			t.Fatal(err)
		}
	}
	for want, messages := range map[string][]parity.Message{
		"a": s.side.messages["fenced"][0], "": s.side.messages["fenced"][1], "b c": s.side.messages["fenced"][2],
		`{"topic":"made up","mark":"m#0000"}`: s.side.messages["marked"][0], "m#0001": s.side.messages["marked"][1],
	} {
		var got []string
		for _, m := range messages {
			got = append(got, string(m.Value))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSorter_Errors(t *testing.T) {
	for name, r := range map[string]*kgo.Record{
		"a fence too early":  record("fenced", "fence-0001"),
		"an unknown topic":   record("made up", "a"),
		"a record too many":  record("marked", "m#0002"),
		"an unknown corpus":  record("made up", "x#0000"),
		"no mark, no fences": record("marked", "fence-0001"),
	} {
		if err := newTestSorter().take(r); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestRun_WrongFlag(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := run([]string{"-such"}, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), "such") {
		t.Errorf("code %d, %q", code, stderr.String())
	}
}

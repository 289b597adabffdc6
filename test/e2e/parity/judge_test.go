package parity

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

func TestJudge(t *testing.T) {
	type m = Message
	value := func(v string) []m { return []m{{Topic: "t", Value: []byte(v)}} }
	jsonSection := Section{Name: "t"}
	gelf := Section{Name: "t", Keys: []Key{{"format", "GELF"}}}
	raw := Section{Name: "t", Keys: []Key{{"format", "raw"}}}
	text := named("v", str("é"))
	tests := []struct {
		name          string
		section       Section
		body          string
		builtin, ours []m
		want          Verdict
		reasons       []*Reason
	}{
		{"equal", jsonSection, text, value(`{"v":"é"}`), value(`{"v":"é"}`), Equal, nil},
		{"neither", raw, text, nil, nil, Equal, nil},
		{"spelled otherwise", jsonSection, text, value(`{"v":"\u00e9"}`), value(`{"v":"é"}`), Same, []*Reason{escapes}},
		{"another letter", jsonSection, text, value(`{"v":"\u00e9"}`), value(`{"v":"è"}`), Worse, nil},
		{"a field less", jsonSection, text, value(`{"v":1,"w":2}`), value(`{"v":1}`), Worse, nil},
		{"a field more", jsonSection, text, value(`{"v":1}`), value(`{"v":1,"w":2}`), Worse, nil},
		{"another order", jsonSection, text, value(`{"v":1,"w":2}`), value(`{"w":2,"v":1}`), Worse, nil},
		{"no JSON of ours", jsonSection, named("v", double(1)), value(`{"v":1.0}`), value(`{"v":1.0`), Worse, nil},
		{"another number", jsonSection, named("v", double(0.1)), value(`{"v":0.1}`), value(`{"v":0.2}`), Worse, nil},
		{"more digits", jsonSection, named("v", single(0.1)), value(`{"v":0.1000000014901161}`), value(`{"v":0.10000000149011612}`), Same, []*Reason{singleDigits}},
		{"another number in 16 digits", jsonSection, named("v", double(0.30000000000000004)), value(`{"v":0.3}`), value(`{"v":0.30000000000000004}`), Better, []*Reason{digits}},
		{"made-up digits", jsonSection, named("v", single(0.1)), value(`{"v":0.1000000014901161}`), value(`{"v":0.10000000149011613}`), Worse, nil},
		{"fewer digits", jsonSection, named("v", single(0.1)), value(`{"v":0.10000000149011612}`), value(`{"v":0.1000000014901161}`), Worse, nil},
		{"NaN", jsonSection, named("v", double(1)), value(`{"v":nan}`), value(`{"v":null}`), Worse, nil},
		{"bad byte", jsonSection, named("v", str("a\xffb")), value(`{"v":"ab"}`), value("{\"v\":\"a\ufffdb\"}"), Better, []*Reason{badText}},
		{"bad byte and a letter less", jsonSection, named("v", str("a\xffb")), value(`{"v":"ab"}`), value("{\"v\":\"a\ufffdc\"}"), Worse, nil},
		{"bad byte without trace", jsonSection, named("v", str("a\xffb")), value(`{"v":"ab"}`), value(`{"v":"a"}`), Worse, nil},
		{"U+FFFD out of nothing", jsonSection, text, value(`{"v":"ab"}`), value("{\"v\":\"a\ufffdb\"}"), Worse, nil},
		{"bare key", jsonSection, dict(num(1), num(2)), value(`{1:2}`), value(`{"1":2}`), Better, []*Reason{oddNames}},
		{"another key", jsonSection, dict(num(1), num(2)), value(`{1:2}`), value(`{"2":2}`), Worse, nil},
		{"a record less", raw, text, value("a"), nil, Worse, nil},
		{"a record more", raw, text, value("a"), append(value("a"), value("b")...), Better, []*Reason{neighbours}},
		{"a record that is no record", gelf, text, value(`{"_v":1}`), append(value(`{"_v":1}`), value(`{`)...), Worse, nil},
		{"a first record", raw, text, nil, value("a"), Worse, nil},
		{"dropped float32", gelf, named("v", single(1)), value(`{"a":1}`), value(`{"a":1, "_v":1.000000}`), Better, []*Reason{singles}},
		{"quotes", gelf, named("v", list(str(`"`))), value(`{"_v":"""}`), value(`{"_v":"\""}`), Better, []*Reason{quotes}},
		{"quotes lost", gelf, named("v", list(str(`"`))), value(`{"_v":"""}`), value(`{"_v":""}`), Worse, nil},
		{"raw is raw", raw, text, value("a"), value("b"), Worse, nil},
		{"another topic", jsonSection, text, []m{{Topic: "t"}}, []m{{Topic: "u"}}, Worse, nil},
		{"illegal topic", jsonSection, text, []m{{Topic: "a/b"}}, []m{{Topic: "t"}}, Differs, []*Reason{topicNames}},
		{"topic cut at a NUL", jsonSection, named("v", str("a\x00b")), []m{{Topic: "a"}}, []m{{Topic: "t"}}, Better, []*Reason{topicEnds}},
		{"a legal topic missed", jsonSection, text, []m{{Topic: "ab"}}, []m{{Topic: "t"}}, Worse, nil},
		{"no key", jsonSection, text, []m{{Topic: "t", Key: []byte{}}}, []m{{Topic: "t"}}, Worse, nil},
		{"another partition", jsonSection, text, []m{{Topic: "t", Key: []byte("k"), Partition: 1}}, []m{{Topic: "t", Key: []byte("k")}}, Worse, nil},
		{"any partition", jsonSection, text, []m{{Topic: "t", Partition: 1}}, []m{{Topic: "t"}}, Equal, nil},
		{"a header", jsonSection, text, []m{{Topic: "t"}}, []m{{Topic: "t", Headers: []string{"a=b"}}}, Worse, nil},
		{"event time", jsonSection, text, []m{{Topic: "t"}}, []m{{Topic: "t", EventTime: true}}, Worse, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := Judge(&tt.section, Record{Name: "r", Chunk: []byte(entry(tt.body))}, tt.builtin, tt.ours)
			if j.Verdict != tt.want || !slices.Equal(j.Reasons, tt.reasons) {
				t.Errorf("verdict %d, reasons %v; want %d, %v", j.Verdict, j.Reasons, tt.want, tt.reasons)
			}
		})
	}
}

// Where the built-in output's message says what the record says, nothing is not better.
func TestJudge_AvroMisfits(t *testing.T) {
	section := Section{Name: "t", Keys: []Key{
		{"format", "avro"},
		{"schema_id", "258"},
		{"schema_str", `{"type":"record","name":"r","fields":[{"name":"a","type":"string"},{"name":"b","type":"int"}]}`},
	}}
	a, x, b := []string{"a", str("t")}, []string{"x", num(7)}, []string{"b", num(1)}
	const head, whole, half, broken = "\x00\x00\x00\x01\x02", "\x02t\x02", "\x02t\x00", "\x02"
	tests := []struct {
		name          string
		fields        []string
		misfit        bool
		builtin, ours string // without the head; empty is no message
		want          Verdict
		reasons       []*Reason
	}{
		{"whole, nothing of ours", slices.Concat(a, b), true, whole, "", Worse, nil},
		{"unknown at the end, nothing of ours", slices.Concat(a, b, x), true, whole, "", Worse, nil},
		{"made up, nothing of ours", a, true, half, "", Better, []*Reason{misfits}},
		{"made up, but no misfit", a, false, half, "", Worse, nil},
		{"unreadable, nothing of ours", slices.Concat(a, b), true, broken, "", Better, []*Reason{misfits}},
		{"only ours", slices.Concat(x, a, b), false, "", whole, Better, []*Reason{rescued}},
		{"only ours, of a misfit", slices.Concat(x, a), true, "", half, Worse, nil},
		{"more of ours", slices.Concat(a, x, b), false, half, whole, Better, []*Reason{unknown}},
		{"more of ours, nothing unknown", slices.Concat(a, b), false, half, whole, Worse, nil},
		{"less of ours", slices.Concat(a, x, b), false, whole, half, Worse, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			messages := func(value string) []Message {
				if value == "" {
					return nil
				}
				return []Message{{Topic: "t", Value: []byte(head + value)}}
			}
			r := Record{Name: "r", Chunk: []byte(entry(named(slices.Clone(tt.fields)...))), Misfit: tt.misfit}
			j := Judge(&section, r, messages(tt.builtin), messages(tt.ours))
			if j.Verdict != tt.want || !slices.Equal(j.Reasons, tt.reasons) {
				t.Errorf("verdict %d, reasons %v; want %d, %v", j.Verdict, j.Reasons, tt.want, tt.reasons)
			}
		})
	}
}

// One byte less in any place is noticed in messages of every kind, unless every reader gets the same all the same: the judge's
// reasons excuse what they are for, and nothing else.
func TestJudge_NoticesALostByte(t *testing.T) {
	recording, err := ReadRecording("testdata/builtin.txt")
	if err != nil {
		t.Fatal(err)
	}
	const step = 13 // of the places that are tried
	place := 0
	for _, s := range Sections() {
		for _, r := range recordsFor(t, &s) {
			messages, err := recording.Of(s.Name, r)
			if err != nil {
				t.Fatal(err)
			}
			if j := Judge(&s, r, messages, messages); j.Verdict != Equal {
				t.Errorf("section %s, record %q: not equal to itself", s.Name, r.Name)
			}
			if s.format() == "otlp_proto" && traitsOf(r.Chunk).badText {
				continue // nobody can read the built-in output's, so there is nothing to compare with
			}
			for i, m := range messages {
				for ; place < min(len(m.Value), 500); place += step {
					lost := slices.Clone(messages)
					lost[i].Value = slices.Concat(m.Value[:place], m.Value[place+1:])
					if j := Judge(&s, r, messages, lost); j.Verdict != Worse && !slices.Equal(j.Reasons, []*Reason{spelling}) {
						t.Errorf("section %s, record %q: %q is taken for %q", s.Name, r.Name, lost[i].Value, m.Value)
					}
				}
				place %= step
			}
		}
	}
}

// recordsFor are the records of a section's corpus.
func recordsFor(t *testing.T, s *Section) []Record {
	t.Helper()
	for _, c := range Corpora() {
		if c.Name == s.Corpus {
			return c.Records
		}
	}
	t.Fatalf("section %s: no corpus %q", s.Name, s.Corpus)
	return nil
}

func TestRecording_RoundTrip(t *testing.T) {
	record := Record{Name: "odd name", Chunk: []byte("chunk")}
	want := []Message{
		{Topic: "t", Value: []byte("a\tb\n\x00\xff`é\"")},
		{Topic: "a\tb", Partition: 2, Key: []byte("k\xff"), Value: []byte(`{"a":"b"}`), Headers: []string{"a=b\t", "c="}, EventTime: true},
		{Topic: "t", Key: []byte{}, Value: []byte{}},
	}
	r := NewRecording("1.2.3")
	r.Add("section", record, want)
	r.Add("section", Record{Name: "nothing"}, nil)
	path := t.TempDir() + "/recording"
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	again, err := ReadRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Of("section", record)
	if err != nil || again.Version != "1.2.3" || again.Len() != 2 || len(got) != len(want) {
		t.Fatalf("%v, version %q, %d records, %d messages", err, again.Version, again.Len(), len(got))
	}
	for i := range want {
		if fmt.Sprint(&got[i]) != fmt.Sprint(&want[i]) || !bytes.Equal(got[i].Value, want[i].Value) || (got[i].Key == nil) != (want[i].Key == nil) {
			t.Errorf("got %v, want %v", &got[i], &want[i])
		}
	}
	if _, err := again.Of("section", Record{Name: "odd name", Chunk: []byte("other")}); err == nil {
		t.Error("other bytes are taken for recorded ones")
	}
	if _, err := again.Of("other", record); err == nil {
		t.Error("a record of another section is taken for recorded")
	}
}

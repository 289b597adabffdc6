package chunk

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/chunk/chunktest"
)

const body = "\x81\xa3log\xa1a" // {"log":"a"}

// walk returns all entries of a chunk and fails the test unless they account for
// every byte of it.
func walk(t *testing.T, chunk []byte) []Entry {
	t.Helper()
	var entries []Entry
	var e Entry
	sum := 0
	for w := NewWalker(chunk); w.Next(&e); {
		if e.Offset != sum || e.Len < 1 {
			t.Fatalf("entry %d has offset %d and length %d; want offset %d", len(entries), e.Offset, e.Len, sum)
		}
		if (e.Kind == Undecodable) != (e.Reason != nil) || (e.Kind == Undecodable) != (e.Body == nil) {
			t.Fatalf("entry %d: kind %v, reason %v, body %x", len(entries), e.Kind, e.Reason, e.Body)
		}
		if !e.TimeOK && (e.Sec != 0 || e.Nsec != 0) || e.Nsec < 0 || e.Nsec > 999_999_999 {
			t.Fatalf("entry %d: time %d.%09d, ok %v", len(entries), e.Sec, e.Nsec, e.TimeOK)
		}
		sum += e.Len
		entries = append(entries, e)
	}
	if sum != len(chunk) {
		t.Fatalf("entries cover %d bytes of %d", sum, len(chunk))
	}
	return entries
}

func TestWalker_Layouts(t *testing.T) {
	ext := string(chunktest.Time(nil, 1700000000, 123456789))
	tests := []struct {
		name, in, metadata string
	}{
		{"present", "\x92\x92" + ext + "\x81\xa1m\x01" + body, "\x81\xa1m\x01"},
		{"present, no metadata", "\x92\x92" + ext + "\x80" + body, "\x80"},
		{"legacy", "\x92" + ext + body, ""},
		{"array16 outside", "\xdc\x00\x02" + ext + body, ""},
		{"array32 as header", "\x92\xdd\x00\x00\x00\x02" + ext + "\x80" + body, "\x80"},
		{"ext8 time", "\x92\xc7\x08" + ext[1:] + body, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries := walk(t, []byte(tt.in+tt.in))
			if len(entries) != 2 {
				t.Fatalf("%d entries; want 2", len(entries))
			}
			for _, e := range entries {
				if e.Kind != Record || !e.TimeOK || e.Sec != 1700000000 || e.Nsec != 123456789 {
					t.Errorf("%v at %d.%09d, time ok %v", e.Kind, e.Sec, e.Nsec, e.TimeOK)
				}
				if string(e.Body) != body || string(e.Metadata) != tt.metadata {
					t.Errorf("body %x, metadata %x", e.Body, e.Metadata)
				}
				if (e.Metadata == nil) != (tt.metadata == "") {
					t.Errorf("metadata nil: %v", e.Metadata == nil)
				}
			}
		})
	}
}

func TestWalker_Times(t *testing.T) {
	f64 := func(v float64) string { return string(chunktest.Float64(nil, v)) }
	u := func(v uint64) string { return string(chunktest.Uint(nil, v)) }
	i := func(v int64) string { return string(chunktest.Int(nil, v)) }
	tests := []struct {
		name, time string
		sec        int64
		nsec       int32
		ok         bool
	}{
		{"ext", "\xd7\x00\x65\x53\xf1\x00\x07\x5b\xcd\x15", 1700000000, 123456789, true},
		{"ext with a second of nanoseconds", "\xd7\x00\x00\x00\x00\x05\x3b\x9a\xca\x01", 6, 1, true},
		{"ext of the year 2100", "\xd7\x00\xf4\x86\x57\x00\x00\x00\x00\x00", 4102444800, 0, true},
		{"ext of another type", "\xd7\x01\x65\x53\xf1\x00\x07\x5b\xcd\x15", 0, 0, false},
		{"ext of another length", "\xd6\x00\x65\x53\xf1\x00", 0, 0, false},
		{"zero", u(0), 0, 0, true},
		{"uint32", u(1700000000), 1700000000, 0, true},
		{"uint64", "\xcf\x00\x00\x00\x00\x65\x53\xf1\x00", 1700000000, 0, true},
		{"int32", "\xd2\x65\x53\xf1\x00", 1700000000, 0, true},
		{"int64", "\xd3\x00\x00\x00\x00\x65\x53\xf1\x00", 1700000000, 0, true},
		{"last second", u(253402300799), 253402300799, 0, true},
		{"milliseconds", u(253402300800), 0, 0, false},
		{"largest", u(math.MaxUint64), 0, 0, false},
		{"negative", i(-1), 0, 0, false},
		{"negative 64 bit", "\xd3\xff\xff\xff\xff\xff\xff\xff\xff", 0, 0, false},
		{"float64", f64(1700000000.5), 1700000000, 500000000, true},
		{"float32", string(chunktest.Float32(nil, 0.25)), 0, 250000000, true},
		{"float64 just below a second", f64(math.Nextafter(2, 1)), 1, 999999999, true},
		{"float64 of a marker", f64(4294967295), 4294967295, 0, true},
		{"float64 negative", f64(-0.5), 0, 0, false},
		{"float64 too large", f64(253402300800), 0, 0, false},
		{"NaN", f64(math.NaN()), 0, 0, false},
		{"infinity", f64(math.Inf(1)), 0, 0, false},
		{"nil", "\xc0", 0, 0, false},
		{"true", "\xc3", 0, 0, false},
		{"text", "\xa3now", 0, 0, false},
		{"bin", "\xc4\x01x", 0, 0, false},
		{"map", "\x81\xa1t\x01", 0, 0, false},
	}
	for _, tt := range tests {
		for _, layout := range []string{"\x92" + tt.time + body, "\x92\x92" + tt.time + "\x80" + body} {
			entries := walk(t, []byte(layout))
			if len(entries) != 1 || entries[0].Kind != Record || string(entries[0].Body) != body {
				t.Errorf("%s: entries %+v; want one record", tt.name, entries)
				continue
			}
			e := entries[0]
			if e.TimeOK != tt.ok || e.Sec != tt.sec || e.Nsec != tt.nsec {
				t.Errorf("%s: time %d.%09d, ok %v; want %d.%09d, %v",
					tt.name, e.Sec, e.Nsec, e.TimeOK, tt.sec, tt.nsec, tt.ok)
			}
		}
	}
}

func TestWalker_GroupMarkers(t *testing.T) {
	times := map[Kind][]string{
		GroupStart: {"\xd7\x00\xff\xff\xff\xff\x00\x00\x00\x00", "\xce\xff\xff\xff\xff", "\xcf\x00\x00\x00\x00\xff\xff\xff\xff"},
		GroupEnd:   {"\xd7\x00\xff\xff\xff\xfe\x00\x00\x00\x00", "\xce\xff\xff\xff\xfe", "\xcf\x00\x00\x00\x00\xff\xff\xff\xfe"},
	}
	for want, forms := range times {
		for _, form := range forms {
			in := "\x92\x92" + form + "\x81\xa6schema\xa4otlp" + body
			entries := walk(t, []byte(in))
			if len(entries) != 1 || entries[0].Kind != want || string(entries[0].Body) != body || entries[0].Metadata == nil {
				t.Errorf("time %x: %+v; want a %v", form, entries, want)
			}
		}
	}
}

func TestWalker_Undecodable(t *testing.T) {
	record := string(chunktest.Head(nil, 1700000000, 0)) + body
	tests := []struct {
		name, in string
		want     error
		rest     bool // the entry takes the rest of the chunk
	}{
		{"integer", "\x01", errNotArray, false},
		{"nil", "\xc0", errNotArray, false},
		{"text", "\xa2ab", errNotArray, false},
		{"map", "\x81\xa1a\x01", errNotArray, false},
		{"empty array", "\x90", errArrayLen, false},
		{"one element", "\x91\xd7\x00\x65\x53\xf1\x00\x07\x5b\xcd\x15", errArrayLen, false},
		{"three elements", "\x93\x01" + body + "\x80", errArrayLen, false},
		{"header of one", "\x92\x91\x01" + body, errHeaderLen, false},
		{"header of three", "\x92\x93\x01\x80\x80" + body, errHeaderLen, false},
		{"metadata nil", "\x92\x92\x01\xc0" + body, errMetadataType, false},
		{"metadata text", "\x92\x92\x01\xa1x" + body, errMetadataType, false},
		{"body text", "\x92\x92\x01\x80\xa3log", errBodyType, false},
		{"body nil, legacy", "\x92\x01\xc0", errBodyType, false},
		{"body array", "\x92\x01\x91\x01", errBodyType, false},
		{"length past the end", "\x93\xc6\xff\xff\xff\xff", ErrTruncated, true},
		{"reserved byte", "\xc1", ErrReserved, true},
		{"reserved byte inside", "\x92\x01\x81\xa1a\xc1", ErrReserved, true},
		{"hostile array", "\x92\x01\xdd\xff\xff\xff\xff", ErrTruncated, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries := walk(t, []byte(record+tt.in+record))
			if len(entries) < 2 || entries[0].Kind != Record {
				t.Fatalf("entries %+v", entries)
			}
			bad := entries[1]
			if bad.Kind != Undecodable || !errors.Is(bad.Reason, tt.want) || bad.Offset != len(record) || bad.Metadata != nil {
				t.Errorf("second entry %+v; want %v", bad, tt.want)
			}
			if errors.Is(bad.Reason, ErrCorrupt) != tt.rest || errors.Is(bad.Reason, ErrNotRecord) == tt.rest {
				t.Errorf("reason %q is of the wrong class", bad.Reason)
			}
			if tt.rest {
				if len(entries) != 2 {
					t.Errorf("%d entries; want the bad one to take the rest", len(entries))
				}
				return
			}
			if bad.Len != len(tt.in) || len(entries) != 3 || entries[2].Kind != Record {
				t.Errorf("entries %+v; want a record behind %d bad bytes", entries, len(tt.in))
			}
		})
	}
}

func TestWalker_Truncated(t *testing.T) {
	record := []byte(string(chunktest.Head(nil, 1700000000, 0)) + body)
	for n := 1; n < len(record); n++ {
		entries := walk(t, record[:n:n])
		if len(entries) != 1 || !errors.Is(entries[0].Reason, ErrTruncated) || entries[0].Len != n {
			t.Errorf("first %d bytes: %+v; want one truncated entry", n, entries)
		}
	}
}

func TestWalker_Empty(t *testing.T) {
	var w Walker
	var e Entry
	if w.Next(&e) || NewWalker(nil).Next(&e) {
		t.Error("an empty chunk has an entry")
	}
}

func TestWalker_Deep(t *testing.T) {
	const levels = 500_000
	in := "\x92\x01\x81\xa1a" + strings.Repeat("\x91", levels) + "\x01"
	if entries := walk(t, []byte(in+in)); len(entries) != 2 || entries[1].Kind != Record {
		t.Errorf("%d entries; want two records", len(entries))
	}
}

func TestWalker_Allocations(t *testing.T) {
	record := string(chunktest.Head(nil, 1700000000, 0)) + body
	in := []byte(strings.Repeat(record+"\x01\x92\x01\x02", 100) + "\xc1")
	w := NewWalker(nil)
	var e Entry
	n := testing.AllocsPerRun(10, func() {
		w.Reset(in)
		for w.Next(&e) {
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for a chunk; want none", n)
	}
}

func TestKind_String(t *testing.T) {
	for k, want := range map[Kind]string{
		Record: "record", GroupStart: "group start", GroupEnd: "group end", Undecodable: "undecodable", 99: "unknown",
	} {
		if got := k.String(); got != want {
			t.Errorf("Kind(%d) = %q; want %q", k, got, want)
		}
	}
}

// A time or metadata that announces more than there is makes the rest of the chunk undecodable, for Peek too: a map
// that happens to stand behind its head is no body.
func TestWalker_PeekAtABrokenHead(t *testing.T) {
	for _, in := range []string{
		"\x92\xdc\xff\xff\x81\xa1k\xa1v", "\x92\xdf\x65\x53\xf1\x00\x81\xa1k\xa1v",
		"\x92\x92\xdc\xff\xff\x80\x81\xa1k\xa1v", "\x92\x92\x01\xde\xff\xff\x81\xa1k\xa1v",
	} {
		var e Entry
		if w := NewWalker([]byte(in)); w.Peek(&e) {
			t.Errorf("%x: %+v", in, e)
		}
		if got := walk(t, []byte(in)); len(got) != 1 || got[0].Kind != Undecodable {
			t.Errorf("%x: %+v", in, got)
		}
	}
}

func FuzzWalker(f *testing.F) {
	record := string(chunktest.Head(nil, 1700000000, 5)) + body
	for _, s := range []string{
		"", record, record + record, record + "\x01" + record, "\x93\xc6\xff\xff\xff\xff", "\x92\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00\x80",
		"\x92\x92\xce\xff\xff\xff\xff\x80\x80", "\xdd\xff\xff\xff\xff", "\x92\x91\x01\x80", "\x92\xd2\xff\xff\xff\xff\x81\xc1\x01",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		// The capacity is cut so that a read past the end is a panic.
		in = in[:len(in):len(in)]
		peeking := NewWalker(in)
		for _, e := range walk(t, in) {
			peekAndTake(t, peeking, e)
			if e.Body == nil {
				continue
			}
			end, err := Skip(e.Body, 0)
			if err != nil || end != len(e.Body) {
				t.Errorf("the body is not one whole value: %d of %d bytes, %v", end, len(e.Body), err)
			}
			if h, _ := ReadHead(e.Body, 0); h.Type != Map {
				t.Errorf("the body is of type %d; want a map", h.Type)
			}
		}
	})
}

// peekAndTake checks that w finds the entry that Next has found, and lets it go on behind it.
func peekAndTake(t *testing.T, w *Walker, want Entry) {
	t.Helper()
	var got Entry
	peeked := w.Peek(&got)
	switch {
	case want.Kind != Undecodable && peeked != (want.Kind == Record):
		t.Fatalf("Peek: %t for %+v", peeked, want)
	case want.Kind == Record:
		w.Take(&got, len(want.Body))
	case !w.Next(&got):
		t.Fatalf("Next: nothing, want %+v", want)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func BenchmarkWalker(b *testing.B) {
	record := string(chunktest.Head(nil, 1700000000, 0)) + "\x8a" + strings.Repeat("\xa8some key\xb0some more text..", 10)
	in := []byte(strings.Repeat(record, 1000))
	w := NewWalker(nil)
	var e Entry
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		w.Reset(in)
		for w.Next(&e) {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
}

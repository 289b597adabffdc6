package accessor

import (
	"fmt"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
)

// fields is a map of the given keys and values, each a whole msgpack value.
func fields(pairs ...string) []byte {
	return append(chunktest.Map(nil, len(pairs)/2), strings.Join(pairs, "")...)
}

func str(s string) string { return string(chunktest.Str(nil, s)) }
func bin(s string) string { return string(chunktest.Bin(nil, s)) }

func arr(elements ...string) string {
	return string(chunktest.Array(nil, len(elements))) + strings.Join(elements, "")
}

func object(pairs ...string) string { return string(fields(pairs...)) }

// lookUp returns the bytes of the value that a path points to, or "none".
func lookUp(t *testing.T, f *Fields, r Ref) string {
	t.Helper()
	b, pos, ok := f.Value(r)
	if !ok {
		return "none"
	}
	end, err := chunk.Skip(b, pos)
	if err != nil {
		t.Fatalf("a value that is not whole: %v", err)
	}
	return string(b[pos:end])
}

func TestFields_Value(t *testing.T) {
	body := fields(
		str("a"), object(str("b"), arr(str("x"), object(str("c"), str("deep")), arr(str("y"))), bin("k"), str("of bin"),
			str("twice"), str("first"), str("twice"), str("last")),
		"\xc0", str("of nil"), "\x01", str("of 1"), arr(str("a")), str("of an array"),
		str("dup"), str("first"), str("n"), "\x2a", bin("bin"), str("of bin"), str(""), str("of the empty key"),
		str("dup"), str("last"), str("x.y-z"), str("odd"), str("METADATA"), str("of the record"),
	)
	metadata := fields(str("otlp"), object(str("severity"), "\x09"), str("a"), str("of the metadata"))
	for path, want := range map[string]string{
		"$n":                            "\x2a",
		"$dup":                          str("last"),
		"$bin":                          str("of bin"),
		"$['']":                         str("of the empty key"),
		"$['x.y-z']":                    str("odd"),
		"$['METADATA']":                 str("of the record"),
		"$a['b'][0]":                    str("x"),
		"$a['b'][1]['c']":               str("deep"),
		"$a['b'][2][0]":                 str("y"),
		"$a['b'][2]":                    arr(str("y")),
		"$a['k']":                       str("of bin"),
		"$a['twice']":                   str("last"),
		"$a['b'][3]":                    "none",
		"$a['b'][1048576]":              "none",
		"$a['b']['c']":                  "none",
		"$a[0]":                         "none",
		"$a['x']":                       "none",
		"$a['']":                        "none",
		"$n['x']":                       "none",
		"$n[0]":                         "none",
		"$absent":                       "none",
		"$absent['x'][0]":               "none",
		"$otlp":                         "none",
		"$METADATA['otlp']['severity']": "\x09",
		"$METADATA['a']":                str("of the metadata"),
		"$METADATA['b']":                "none",
		"$METADATA":                     string(metadata),
	} {
		var f Fields
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		// Others before and behind it, which share its first step or not.
		f.Add(Key("n"))
		ref := f.Add(p)
		f.Add(Key("a"))
		for _, e := range []chunk.Entry{{Body: []byte("\x80")}, {Body: body, Metadata: metadata}} {
			if err := f.Read(&e); err != nil {
				t.Fatal(err)
			}
		}
		if got := lookUp(t, &f, ref); got != want {
			t.Errorf("%s: %q; want %q", path, got, want)
		}
		if got := lookUp(t, &f, 0); got != "\x2a" {
			t.Errorf("%s beside it: %q", path, got)
		}
		if err := f.Read(&chunk.Entry{Body: []byte("\x80")}); err != nil { // nothing is left of the record before
			t.Fatal(err)
		}
		if got := lookUp(t, &f, ref); got != "none" {
			t.Errorf("%s of an empty record: %q", path, got)
		}
	}
}

func TestFields_Errors(t *testing.T) {
	var f Fields
	f.Add(Key("z"))
	whole := fields(str("a"), arr("\x01", str("x")), "\x01", str("b"))
	for n := 1; n < len(whole); n++ {
		if err := f.Read(&chunk.Entry{Body: whole[:n:n]}); err == nil {
			t.Errorf("first %d bytes: no error", n)
		}
	}
	if err := f.Read(&chunk.Entry{Body: []byte("\x90")}); err == nil {
		t.Error("an array is no record")
	}
}

func TestPairs(t *testing.T) {
	b := []byte("\xc0" + object(str("a"), "\x01", "\x02", "\x03", bin("b"), arr(), str("a"), "\x04"))
	var got []string
	ok := Pairs(b, 1, func(key []byte, value int) { got = append(got, fmt.Sprintf("%s=%02x", key, b[value])) })
	if want := "[a=01 b=90 a=04]"; !ok || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, ok, want)
	}
	for _, bad := range []string{"\x01", "\x90", "\x81\xa1a", "\x81", "\x81\xc1\x01"} {
		if Pairs([]byte(bad), 0, func([]byte, int) {}) {
			t.Errorf("%x is a map", bad)
		}
	}
}

func TestFields_Allocations(t *testing.T) {
	var f Fields
	var refs []Ref
	for _, text := range []string{"$a['b'][1]", "$a['c']", "$d", "$METADATA['x']"} {
		p, err := ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, f.Add(p))
	}
	e := chunk.Entry{
		Body:     fields(str("a"), object(str("b"), arr("\x01", "\x02"), str("c"), str("v")), str("d"), "\x01"),
		Metadata: fields(str("x"), "\x01"),
	}
	n := testing.AllocsPerRun(10, func() {
		if err := f.Read(&e); err != nil {
			t.Fatal(err)
		}
		for _, r := range refs {
			if _, _, ok := f.Value(r); !ok {
				t.Fatal("not found")
			}
		}
		Pairs(e.Body, 0, func([]byte, int) {})
	})
	if n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}

// FuzzFields: no panic on any bytes, and what is found in a whole record is a whole value.
func FuzzFields(f *testing.F) {
	f.Add("$a['b'][0]", fields(str("a"), object(str("b"), arr("\x01"))), []byte("\x80"))
	f.Add("$METADATA['x']", []byte("\x80"), fields(str("x"), "\x01"))
	f.Add("$a", []byte("\x81\xa1a\xc1"), []byte("\xdf\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, text string, body, metadata []byte) {
		body, metadata = body[:len(body):len(body)], metadata[:len(metadata):len(metadata)]
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		var x Fields
		ref := x.Add(p)
		err = x.Read(&chunk.Entry{Body: body, Metadata: metadata})
		b, pos, ok := x.Value(ref)
		for _, part := range [][]byte{body, metadata} {
			if end, skipErr := chunk.Skip(part, 0); skipErr != nil || end != len(part) {
				return // not what a walker gives: enough that nothing panics
			}
		}
		if ok && err == nil {
			if _, err := chunk.Skip(b, pos); err != nil {
				t.Errorf("%s in %x, %x: %v", text, body, metadata, err)
			}
		}
	})
}

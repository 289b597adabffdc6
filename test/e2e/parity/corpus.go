package parity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Record is what both outputs are given in one chunk. Mostly that is one log record.
type Record struct {
	// Name is unique in its corpus.
	Name string
	// Chunk holds the entries, as Fluent Bit hands them to an output.
	Chunk []byte
	// Misfit says that the record can't be written as the schema of its section has it.
	Misfit bool
}

// A Corpus is a set of records that sections share.
type Corpus struct {
	Name    string
	Records []Record
	// Marked says that each message tells by Mark which record it is of. Messages of other corpora are told apart
	// by the messages with a Fence around them.
	Marked bool
}

// Corpora returns all of them. They are the same each time.
func Corpora() []Corpus {
	return []Corpus{
		{Name: "plain", Records: values(func(pairs ...string) string { return dict(pairs...) })},
		{Name: "logged", Records: values(func(pairs ...string) string { return dict(append([]string{str("log"), str("hi")}, pairs...)...) })},
		{Name: "messages", Records: messages()},
		{Name: "routed", Records: routed("routed", ""), Marked: true},
		{Name: "dynamic", Records: routed("dynamic", "dynamic-"), Marked: true},
		{Name: "dynamic-raw", Records: routed("dynamic-raw", "raw-"), Marked: true},
		{Name: "resources", Records: resources()},
		{Name: typedCorpus, Records: typed()},
	}
}

// Mark is the text that tells of which record of a marked corpus a message is.
func Mark(corpus string, n int) string { return fmt.Sprintf("%s#%04d", corpus, n) }

// Fence is a text that stands only in the message behind those of record n.
func Fence(n int) string { return fmt.Sprintf("fence-%04d", n) }

// FenceChunk is the chunk whose message, in every format that the records are for, has the text Fence(n).
func (c *Corpus) FenceChunk(n int) []byte {
	fields := []string{"log", str(Fence(n))}
	if c.Name == typedCorpus {
		fields = append(fields, typedFields()[2:]...)
	}
	return []byte(entry(named(fields...)))
}

// values are records with something odd in them. Body makes the map of a record from its pairs.
func values(body func(pairs ...string) string) []Record {
	var records []Record
	add := func(name, chunk string) { records = append(records, Record{Name: name, Chunk: []byte(chunk)}) }
	for _, v := range oddValues() {
		add("value "+v.name, entry(body(str("v"), v.value)))
	}
	for _, v := range oddTexts() {
		add("text "+v.name, entry(body(str("v"), str(v.value))))
		add("key "+v.name, entry(body(str(v.value), num(1))))
		add("text in a list, "+v.name, entry(body(str("v"), list(str(v.value), named("k", str(v.value))))))
	}
	for _, k := range oddKeys() {
		add("key "+k.name, entry(body(k.value, num(1), str("z"), num(2))))
		add("inner key "+k.name, entry(body(str("v"), dict(k.value, num(1), str("z"), num(2)))))
	}
	for _, m := range oddMaps() {
		add("map "+m.name, entry(body(m.pairs...)))
		add("inner map "+m.name, entry(body(str("v"), dict(m.pairs...))))
	}
	for _, t := range oddTimes() {
		add("time "+t.name, entryAt(t.value, body(str("v"), num(1))))
	}
	for _, t := range oddTimes() {
		add("older layout, time "+t.name, list(t.value, body(str("v"), num(1))))
	}
	add("metadata", describedEntry(named("k", num(1), "otlp", named("severity_number", num(9))), body(str("v"), num(1))))
	random := rand.New(rand.NewPCG(5, 1))
	for i := range 40 {
		add(fmt.Sprintf("random %d", i), entry(body(str("v"), someValue(random, 3), str("w"), someValue(random, 1))))
	}
	return records
}

// odd is a msgpack value, or a text, with a name.
type odd struct{ name, value string }

func oddValues() []odd {
	deep := func(n int, open, end string) string { return strings.Repeat(open, n) + end }
	odds := []odd{
		{"nil", null},
		{"true", yes},
		{"false", no},
		{"empty text", str("")},
		{"empty bin", bin("")},
		{"bin", bin("ab")},
		{"bin of bytes", bin("\x00\x01A\xfe")},
		{"bin of UTF-8", bin("é😀")},
		{"empty list", list()},
		{"empty map", dict()},
		{"list", list(num(1), str("x"), list(), dict(), yes, null, double(0.5))},
		{"map", named("a", named("b", num(1), "c", null), "d", str("e"))},
		{"list of lists", list(list(num(1), list(num(2))), list())},
		{"list of maps", list(named("x", num(1), "y z", str("t")), num(2))},
		{"map in a map in a list", list(named("x", num(1), "m", named("y", num(2), "z", null)))},
		{"list of ext", list(ext(5, "\x01\x02"))},
		{"list of booleans", list(yes, no, null)},
		{"list of floats", list(double(0.5), single(0.5))},
		{"40 deep map", deep(40, "\x81\xa1a", num(1))},
		{"40 deep list", deep(40, "\x91", num(1))},
		{"ext", ext(5, "\x01\x7f\x80\xff")},
		{"empty ext", ext(5, "")},
		{"negative ext", ext(-1, "\x00\x00\x00\x01")},
		{"fixext 1", "\xd4\x07\xff"},
		{"fixext 16", "\xd8\x07" + strings.Repeat("\x01", 16)},
		{"event time", eventTime(noonSec, noonNsec)},
		{"ext 0 of 4 bytes", ext(0, "\x01\x02\x03\x04")},
		{"long form of 1", "\xcf\x00\x00\x00\x00\x00\x00\x00\x01"},
		{"long form of -1", "\xd3\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"signed form of 1", "\xd0\x01"},
		{"long form of a text", "\xdb\x00\x00\x00\x01a"},
		{"long form of a list", "\xdd\x00\x00\x00\x01\x01"},
		{"long form of a map", "\xdf\x00\x00\x00\x01\xa1a\x01"},
		{"long form of a bin", "\xc6\x00\x00\x00\x01a"},
		{"list of 20", list(strings.Split(strings.Repeat("\x01", 20), "")...)},
	}
	for _, n := range []int64{0, 127, 128, 255, 256, 65535, 65536, math.MaxInt32, math.MaxInt64, -1, -32, -33, -128, -129, -32769, math.MinInt32, math.MinInt64} {
		odds = append(odds, odd{fmt.Sprintf("integer %d", n), num(n)})
	}
	odds = append(odds, odd{"integer 2^63", unsigned(1 << 63)}, odd{"integer 2^64-1", unsigned(math.MaxUint64)})
	for _, f := range []float64{
		0, math.Copysign(0, -1), 0.5, 2, 0.1, 1.0 / 3, 1e15, 1e16, 1e17, 9.3e18, 1e19, 1e21, 1e22, 1e300, 1e-4, 1e-5, 1e-7, 5e-324, math.MaxFloat64,
		1700000000.123456789, 9007199254740993, -123456.789, math.NaN(), math.Inf(1), math.Inf(-1),
	} {
		odds = append(odds, odd{fmt.Sprintf("double %g", f), double(f)}, odd{fmt.Sprintf("single %g", f), single(float32(f))})
	}
	return odds
}

func oddTexts() []odd {
	var controls strings.Builder
	for c := range 0x20 {
		controls.WriteByte(byte(c))
	}
	return []odd{
		{"quotes", `say "x" \ /`},
		{"controls", controls.String()},
		{"delete", "\x7f\u0080\u009f"},
		{"NUL", "a\x00b"},
		{"HTML", "<a href='x'>&amp;</a>"},
		{"two bytes", "café"},
		{"three bytes", "日本\u2028\u2029\ufeff"},
		{"four bytes", "😀\U0010ffff"},
		{"noncharacters", "\ufffe\uffff\ufdd0"},
		{"replacement", "a\ufffdb"},
		{"private use", "\ue0ff\uf8ff"},
		{"odd byte", "ab\xffcd"},
		{"continuation", "a\x80\xbfb"},
		{"cut off", "trunc\xe6\x97"},
		{"cut off four", "x\xf0\x9f\x98"},
		{"overlong", "\xc0\xaf"},
		{"overlong NUL", "\xc0\x80"},
		{"surrogate", "\xed\xa0\x80"},
		{"pair of surrogates", "\xed\xa0\xbd\xed\xb8\x80"},
		{"beyond Unicode", "\xf4\x90\x80\x80"},
		{"bad inside", "\xe6\x97x"},
		{"escape lookalike", `\u00e9 \x41`},
		{"long", strings.Repeat("0123456789abcdef", 70) + "é"},
		{"31 long", strings.Repeat("x", 31)},
		{"32 long", strings.Repeat("x", 32)},
		{"256 long", strings.Repeat("y", 256)},
		{"JSON", `{"a":1}`},
		{"number", "12"},
		{"format", "%s%n%d"},
	}
}

// oddKeys are keys that are no text, or one that the formats know.
func oddKeys() []odd {
	odds := []odd{
		{"1", num(1)},
		{"-1", num(-1)},
		{"nil", null},
		{"true", yes},
		{"double", double(0.5)},
		{"NaN", double(math.NaN())},
		{"bin", bin("ab")},
		{"odd bin", bin("a\xff")},
		{"ext", ext(5, "ab")},
		{"list", list(num(1), str("x"))},
		{"map", named("x", num(1))},
		{"empty", str("")},
		{"blank", str(" ")},
	}
	for _, name := range []string{"id", "_id", "_pre", "a.b", "a b/c", "ok.-_Z9", "version", "timestamp", "host", "level", "full_message", "short_message", "@timestamp", "message", "time"} {
		odds = append(odds, odd{name, str(name)})
	}
	return odds
}

// oddMaps are the pairs of maps.
func oddMaps() []struct {
	name  string
	pairs []string
} {
	return []struct {
		name  string
		pairs []string
	}{
		{"without pairs", nil},
		{"key twice", []string{str("a"), num(1), str("b"), num(2), str("a"), num(3)}},
		{"key three times", []string{str("a"), num(1), str("a"), str("x"), str("a"), dict()}},
		{"map twice", []string{str("a"), named("x", num(1)), str("b"), num(2), str("a"), named("y", num(2))}},
		{"text and bin key", []string{str("a"), num(1), bin("a"), num(2)}},
		{"number and text key", []string{num(1), num(1), str("1"), num(2)}},
		{"time key twice", []string{str("@timestamp"), str("own"), str("a"), num(1), str("@timestamp"), num(2)}},
		{"empty key twice", []string{str(""), num(1), str(""), num(2)}},
		{"levels", []string{str("level"), str("Warning"), str("host"), num(5), str("full_message"), str("a\nb")}},
	}
}

// oddTimes are those that the inputs of Fluent Bit let through. (Negative ones, NaN and the like never come to an output.)
func oddTimes() []odd {
	return []odd{
		{"whole", eventTime(noonSec, 0)},
		{"one ns", eventTime(noonSec, 1)},
		{"999 ns", eventTime(noonSec, 999)},
		{"1500 ns", eventTime(noonSec, 1500)},
		{"last ns", eventTime(noonSec, 999_999_999)},
		{"half a microsecond", eventTime(noonSec, 123_456_500)},
		{"zero", eventTime(0, 0)},
		{"one", eventTime(1, 1)},
		{"2038", eventTime(1<<31, 5)},
		{"2106", eventTime(math.MaxUint32-10, 999_999_999)},
		{"ext in its long form", "\xc7\x08\x00" + eventTime(noonSec, noonNsec)[2:]},
		{"integer", num(noonSec)},
		{"integer zero", num(0)},
		{"integer beyond 2106", num(5_000_000_000)},
		{"double", double(1700000000.5)},
		{"small double", double(0.25)},
		{"exact double", double(1700000000.123456789)},
	}
}

// messages are records for the formats that need a certain field, and chunks in which one record is bad.
func messages() []Record {
	var records []Record
	add := func(name string, bodies ...string) {
		r := Record{Name: name}
		for _, b := range bodies {
			r.Chunk = append(r.Chunk, entry(b)...)
		}
		records = append(records, r)
	}
	for _, v := range oddValues() {
		add("log "+v.name, named("log", v.value, "x", num(1)))
	}
	for _, v := range oddTexts() {
		add("log "+v.name, named("log", str(v.value)))
	}
	for _, l := range []odd{
		{"word", str("Warning")},
		{"short word", str("err")},
		{"digits", str("6")},
		{"too high", str("9")},
		{"strange", str("strange")},
		{"empty", str("")},
		{"number", num(3)},
		{"large number", num(300)},
		{"negative", num(-1)},
		{"double", double(1.5)},
		{"nil", null},
		{"true", yes},
		{"list", list(num(1))},
		{"map", named("a", num(1))},
		{"bin", bin("err")},
	} {
		add("level "+l.name, named("log", str("hi"), "level", l.value, "x", num(1)))
		add("host "+l.name, named("log", str("hi"), "host", l.value, "x", num(1)))
		add("timestamp "+l.name, named("log", str("hi"), "timestamp", l.value, "x", num(1)))
		add("full message "+l.name, named("log", str("hi"), "full_message", l.value, "x", num(1)))
		add("other names "+l.name, named("log", str("hi"), "node", l.value, "at", l.value, "severity", num(4), "stack", str("s")))
	}
	good := func(n int64) string { return named("log", str("good"), "n", num(n)) }
	add("log missing", named("x", num(1)))
	add("log twice", named("log", str("first"), "x", num(1), "log", str("second")))
	add("log a number, then a text", named("log", num(1), "log", str("second")))
	add("bin as key", dict(bin("log"), str("hi")))
	add("neighbours of a record without log", good(1), named("x", num(2)), good(3))
	add("neighbours of a bad level", good(1), named("log", str("hi"), "level", double(1.5)), good(3))
	add("neighbours of a number as log", good(1), named("log", num(2)), good(3))
	add("several good records", good(1), good(2), good(3))
	return records
}

// routed are records with something odd in the fields that say where they go. Topics begin with the prefix, so that sections
// do not share them.
func routed(corpus, prefix string) []Record {
	var records []Record
	add := func(name string, pairs ...string) {
		pairs = append(pairs, "mark", str(Mark(corpus, len(records))))
		records = append(records, Record{Name: name, Chunk: []byte(entry(named(pairs...)))})
	}
	long := strings.Repeat("t", 249-len(prefix))
	for _, v := range []odd{
		{"default", str(prefix + "routes")},
		{"first", str(prefix + "first")},
		{"second", str(prefix + "second")},
		{"capital", str(prefix + "Second")},
		{"prefix of default", str(prefix + "rou")},
		{"prefix of another", str(prefix + "sec")},
		{"longer than another", str(prefix + "second-one")},
		{"empty", str("")},
		{"blank", str(" ")},
		{"unknown", str(prefix + "new.topic")},
		{"unknown again", str(prefix + "new.topic")},
		{"underscore", str(prefix + "new_topic-2")},
		{"comma", str("a,b")},
		{"slash", str("a/b")},
		{"umlaut", str("tönt")},
		{"dot", str(".")},
		{"dots", str("..")},
		{"249 long", str(prefix + long)},
		{"250 long", str(prefix + long + "t")},
		{"NUL", str("nul\x00topic")},
		{"bad UTF-8", str("bad\xff")},
		{"quote", str(`q"t`)},
		{"newline", str("a\nb")},
		{"bin", bin("second")},
		{"number", num(5)},
		{"nil", null},
		{"list", list(str(prefix + "second"))},
		{"map", named("topic", str(prefix+"second"))},
		{"double", double(1)},
	} {
		add("topic "+v.name, "topic", v.value)
	}
	for _, v := range []odd{
		{"text", str("k1")},
		{"other text", str("key-2")},
		{"empty", str("")},
		{"umlaut", str("ä")},
		{"bad UTF-8", str("k\xff")},
		{"NUL", str("k\x00k")},
		{"long", str(strings.Repeat("k", 1000))},
		{"bin", bin("k1")},
		{"number", num(5)},
		{"nil", null},
		{"double", double(1.5)},
		{"list", list(str("k1"))},
		{"true", yes},
	} {
		add("key "+v.name, "key", v.value)
	}
	add("neither")
	add("topic number, then text", "topic", num(1), "topic", str(prefix+"second"))
	add("topic twice", "topic", str(prefix+"first"), "topic", str(prefix+"second"))
	add("topic unknown, then known", "topic", str("nowhere"), "topic", str(prefix+"second"))
	add("key number, then text", "key", num(1), "key", str("k2"))
	add("key twice", "key", str("k1"), "key", str("k2"))
	add("both", "topic", str(prefix+"second"), "key", str("k1"))
	add("nested", "outer", named("topic", str(prefix+"second"), "key", str("k1")))
	return records
}

// resources are chunks as Fluent Bit's OpenTelemetry input makes them.
func resources() []Record {
	group := func(resourceID, scopeID int64, resource, scope string, entries ...string) string {
		begin := list(list(eventTime(math.MaxUint32, 0), named("schema", str("otlp"), "resource_id", num(resourceID), "scope_id", num(scopeID))),
			named("resource", resource, "scope", scope))
		end := list(list(eventTime(math.MaxUint32-1, 0), dict()), dict())
		return begin + strings.Join(entries, "") + end
	}
	service := func(name string) string {
		return named("attributes", named("service.name", str(name), "n", num(7), "ok", yes, "ratio", double(0.5)), "dropped_attributes_count", num(2))
	}
	scope := named("name", str("lib"), "version", str("1.0"), "attributes", named("a", str("b")))
	logged := func(text string) string { return entry(named("log", str(text))) }
	otlp := func(pairs ...string) string {
		return describedEntry(named("otlp", named(pairs...)), named("log", str("body")))
	}
	return []Record{
		{Name: "one resource", Chunk: []byte(group(0, 0, service("a"), scope, logged("1"), logged("2")))},
		{Name: "two resources", Chunk: []byte(group(0, 0, service("a"), scope, logged("1")) + group(1, 0, service("b"), scope, logged("2")))},
		{Name: "the same resource twice", Chunk: []byte(group(0, 0, service("a"), scope, logged("1")) + group(0, 0, service("a"), scope, logged("2")))},
		{Name: "two scopes", Chunk: []byte(group(0, 0, service("a"), scope, logged("1")) + group(0, 1, service("a"), named("name", str("other")), logged("2")))},
		{Name: "two ids, equal attributes", Chunk: []byte(group(0, 0, service("a"), scope, logged("1")) + group(1, 0, service("a"), scope, logged("2")))},
		{Name: "empty resource", Chunk: []byte(group(0, 0, dict(), dict(), logged("1")))},
		{Name: "no resource before", Chunk: []byte(logged("0") + group(0, 0, service("a"), scope, logged("1")))},
		{Name: "no resource behind", Chunk: []byte(group(0, 0, service("a"), scope, logged("1")) + logged("2"))},
		{Name: "no resource", Chunk: []byte(logged("1") + logged("2"))},
		{Name: "severity", Chunk: []byte(group(0, 0, service("a"), scope, otlp("severity_number", num(9), "severity_text", str("INFO"))))},
		{Name: "observed time", Chunk: []byte(group(0, 0, service("a"), scope, otlp("observed_timestamp", num(noonSec*1_000_000_000), "timestamp", num(noonSec*1_000_000_000+5))))},
		{Name: "attributes", Chunk: []byte(group(0, 0, service("a"), scope, otlp("attributes", named("k", str("v"), "n", num(1), "l", list(num(1), str("x")), "m", named("a", yes)))))},
		{Name: "trace", Chunk: []byte(group(0, 0, service("a"), scope, otlp("trace_id", bin("0123456789abcdef"), "span_id", bin("01234567"), "trace_flags", num(1))))},
		{Name: "flags and event name", Chunk: []byte(group(0, 0, service("a"), scope, otlp("flags", num(1), "event_name", str("e"), "dropped_attributes_count", num(3))))},
	}
}

// typedCorpus is the one whose records are for typedSchema.
const typedCorpus = "typed"

// typedSchema has a field of each type that the built-in output can write.
const typedSchema = `{"type":"record","name":"r","fields":[` +
	`{"name":"log","type":"string"},{"name":"n","type":"long"},{"name":"i","type":"int"},{"name":"b","type":"boolean"},{"name":"f","type":"float"},` +
	`{"name":"y","type":"bytes"},{"name":"l","type":{"type":"array","items":"long"}},{"name":"m","type":{"type":"map","values":"string"}},` +
	`{"name":"s","type":{"type":"record","name":"sub","fields":[{"name":"a","type":"string"}]}}]}`

// typedFields are the fields of a record that fits.
func typedFields() []string {
	return []string{
		"log", str("hi"), "n", num(1), "i", num(2), "b", yes, "f", double(0.5), "y", bin("ab"), "l", list(num(1), num(2)),
		"m", named("k", str("v")), "s", named("a", str("inner")),
	}
}

// typed are records for a schema.
func typed() []Record {
	var records []Record
	add := func(name string, misfit bool, fields []string) {
		records = append(records, Record{Name: name, Chunk: []byte(entry(named(fields...))), Misfit: misfit})
	}
	with := func(field, value string) []string {
		fields := typedFields()
		for i := 0; i < len(fields); i += 2 {
			if fields[i] == field {
				fields[i+1] = value
			}
		}
		return fields
	}
	add("all fields", false, typedFields())
	reversed := typedFields()
	for i, j := 0, len(reversed)-2; i < j; i, j = i+2, j-2 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
		reversed[i+1], reversed[j+1] = reversed[j+1], reversed[i+1]
	}
	add("another order", false, reversed)
	for _, t := range oddTexts() {
		add("text "+t.name, false, with("log", str(t.value)))
	}
	for _, n := range []int64{0, -1, 63, 64, -64, -65, math.MaxInt32, math.MaxInt32 + 1, math.MinInt64, math.MaxInt64} {
		add(fmt.Sprintf("long %d", n), false, with("n", num(n)))
		add(fmt.Sprintf("int %d", n), n > math.MaxInt32 || n < math.MinInt32, with("i", num(n)))
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 0.1, 1e30, -1e-30, math.NaN(), math.Inf(1)} {
		add(fmt.Sprintf("float %g", f), false, with("f", double(f)))
		add(fmt.Sprintf("single %g", f), false, with("f", single(float32(f))))
	}
	add("float an integer", false, with("f", num(3)))
	add("long 2^63", true, with("n", unsigned(1<<63)))
	add("long a float", true, with("n", double(1)))
	add("long a text", true, with("n", str("1")))
	add("bytes a text", false, with("y", str("ab")))
	add("bytes an ext", false, with("y", ext(5, "ab")))
	add("empty bytes", false, with("y", bin("")))
	add("text a bin", false, with("log", bin("ab")))
	add("text a number", true, with("log", num(1)))
	add("null", true, with("n", null))
	add("empty list", false, with("l", list()))
	add("list of three", false, with("l", list(num(1), num(2), num(3))))
	add("list with a misfit", true, with("l", list(num(1), str("x"))))
	add("empty map", false, with("m", dict()))
	add("map of two", false, with("m", named("k", str("v"), "l", str("w"))))
	add("map key twice", false, with("m", named("k", str("v"), "k", str("w"))))
	add("inner misfit", true, with("s", named("b", str("x"))))
	add("field missing at the end", true, typedFields()[:16])
	add("field missing", true, append(typedFields()[:2:2], typedFields()[4:]...))
	add("unknown field at the end", false, append(typedFields(), "more", num(1)))
	add("unknown field first", false, append([]string{"more", num(1)}, typedFields()...))
	for _, at := range []int{8, 14, 16} { // pairs behind it count for the built-in output
		add(fmt.Sprintf("unknown field before the last %d", (len(typedFields())-at)/2), false, slices.Insert(typedFields(), at, "more", num(1)))
	}
	add("unknown field of the name of an inner one", false, append(typedFields(), "a", str("outer")))
	add("unknown inner field", false, with("s", named("a", str("inner"), "more", num(1))))
	add("unknown inner field first", false, with("s", named("more", num(1), "a", str("inner"))))
	add("unknown field and one missing", true, append(typedFields()[:16], "more", num(1)))
	records = append(records, Record{
		Name: "key that is no text", Chunk: []byte(entry(dict(append([]string{num(5), num(1)}, keyed(typedFields())...)...))),
	})
	add("map key that is no text", false, with("m", dict(num(5), str("x"), str("k"), str("v"))))
	add("field twice", false, append(typedFields(), "n", num(9)))
	return records
}

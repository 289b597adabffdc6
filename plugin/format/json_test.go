package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
)

// timePrefix is the time field of the records of these tests.
const timePrefix = `{"@timestamp":1700000000.0`

func record(body []byte) *chunk.Entry {
	return &chunk.Entry{Body: body, Sec: 1700000000, TimeOK: true}
}

// fields makes a body of pairs, each a key and a value in msgpack.
func fields(pairs ...string) []byte {
	return append(chunktest.Map(nil, len(pairs)/2), strings.Join(pairs, "")...)
}

func str(s string) string         { return string(chunktest.Str(nil, s)) }
func bin(s string) string         { return string(chunktest.Bin(nil, s)) }
func num(v int64) string          { return string(chunktest.Int(nil, v)) }
func f64(v float64) string        { return string(chunktest.Float64(nil, v)) }
func f32(v float32) string        { return string(chunktest.Float32(nil, v)) }
func arr(v ...string) string      { return string(chunktest.Array(nil, len(v))) + strings.Join(v, "") }
func ext(t int8, s string) string { return string(chunktest.Ext(nil, t, s)) }

// TestJSON_Values has a row for each row of the table of exact bytes in the design
// notes; where the built-in output is not valid JSON or loses text, ours differs.
func TestJSON_Values(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"uint64 max", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"},
		{"int64 min", num(math.MinInt64), "-9223372036854775808"},
		{"signed encoding of a positive", "\xd1\x00\x05", "5"},
		{"minus one", num(-1), "-1"},
		{"0.5", f64(0.5), "0.5"},
		{"2.0", f64(2), "2.0"},
		{"zero", f64(0), "0.0"},
		{"minus zero", f64(math.Copysign(0, -1)), "-0.0"},
		{"minus two", f64(-2), "-2.0"},
		{"a third", f64(1.0 / 3), "0.3333333333333333"},
		{"0.1", f64(0.1), "0.1"},
		{"17 digits", f64(math.Nextafter(0.3, 1)), "0.30000000000000004"},
		{"2^53 and one", f64(1<<53 + 2), "9007199254740994.0"},
		{"2^60", f64(1 << 60), "1152921504606846976.0"},
		{"-2^63", f64(-(1 << 63)), "-9223372036854775808.0"},
		{"2^63", f64(1 << 63), "9.223372036854776e+18"},
		{"1e17", f64(1e17), "100000000000000000.0"},
		{"1e19", f64(1e19), "1e+19"},
		{"9.3e18", f64(9.3e18), "9.3e+18"},
		{"1e300", f64(1e300), "1e+300"},
		{"1e-7", f64(1e-7), "1e-07"},
		{"1e-4", f64(1e-4), "0.0001"},
		{"below 1e-4", f64(math.Nextafter(1e-4, 0)), "9.999999999999999e-05"},
		{"smallest", f64(5e-324), "5e-324"},
		// 16 digits are enough here although they are not those that rounding gives.
		{"power of two", f64(0x1p-509), "5.966672584960166e-154"},
		{"largest", f64(math.MaxFloat64), "1.7976931348623157e+308"},
		{"a fraction of 16 digits", f64(1234567890123456.5), "1234567890123456.5"},
		{"float32 0.1", f32(0.1), "0.10000000149011612"},
		{"float32 1.5", f32(1.5), "1.5"},
		{"float32 2.0", f32(2), "2.0"},
		{"NaN", f64(math.NaN()), "null"},
		{"infinity", f64(math.Inf(1)), "null"},
		{"minus infinity", f64(math.Inf(-1)), "null"},
		{"float32 NaN", "\xca\x7f\xc0\x00\x00", "null"},
		{"nil", "\xc0", "null"},
		{"true", "\xc3", "true"},
		{"false", "\xc2", "false"},
		{"array", arr(num(1), str("x"), "\x90", "\x80"), `[1,"x",[],{}]`},
		{"map of maps", string(fields(str("a"), string(fields(str("b"), "\x80")))), `{"a":{"b":{}}}`},
		{"quote, backslash, slash", str(`"\/`), `"\"\\/"`},
		{"short escapes", str("\n\r\t\b\f"), `"\n\r\t\b\f"`},
		{"controls", str("\x00\x01\x1f\x7f"), `"\u0000\u0001\u001f\u007f"`},
		{"no over-escaping", str("<>&'"), `"<>&'"`},
		{"non-ASCII", str("é日\u2028😀\uFEFF\uFFFD"), "\"é日\u2028😀\uFEFF\uFFFD\""},
		{"bad byte", str("ab\xffcd"), `"ab�cd"`},
		{"cut off", str("trunc\xe6\x97"), `"trunc��"`},
		{"overlong", str("\xc0\xaf"), `"��"`},
		{"surrogate", str("\xed\xa0\x80"), `"���"`},
		{"cut off in the middle", str("\xe6\x97x"), `"��x"`},
		{"empty", str(""), `""`},
		{"bin", bin("\x00\x01A\xfe"), `"\u0000\u0001A�"`},
		{"ext", ext(5, "\x01\x7f\x80\xff"), `{"type":5,"data":"AX+A/w=="}`},
		{"ext of a negative type", ext(-1, ""), `{"type":-1,"data":""}`},
		{"fixext1", "\xd4\x05\x01", `{"type":5,"data":"AQ=="}`},
		{"event time", "\xd7\x00\x65\x53\xf1\x00\x07\x5b\xcd\x15", `"2023-11-14T22:13:20.123456789Z"`},
		{"ext 0 of another length", ext(0, "\x01"), `{"type":0,"data":"AQ=="}`},
	}
	j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampDouble})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := timePrefix + `,"k":` + tt.want + "}"
			checkValue(t, j, fields(str("k"), tt.in), want)
			// Inside an array and behind another element nothing may change.
			want = timePrefix + `,"k":[0,` + tt.want + "]}"
			checkValue(t, j, fields(str("k"), arr(num(0), tt.in)), want)
		})
	}
}

func checkValue(t *testing.T, j *JSON, body []byte, want string) {
	t.Helper()
	got, err := j.AppendValue([]byte("before"), record(body))
	if err != nil || string(got) != "before"+want {
		t.Errorf("value %s, %v; want before%s", got, err, want)
	}
	if !json.Valid([]byte(want)) {
		t.Errorf("the wanted value %s is not valid JSON", want)
	}
}

func TestJSON_WithoutTime(t *testing.T) {
	j := NewJSON(JSONConfig{})
	checkValue(t, j, fields(), "{}")
	checkValue(t, j, fields(str("@timestamp"), num(1)), `{"@timestamp":1}`)
	checkValue(t, j, fields(str("a"), num(1), str("b"), num(2), str("a"), num(3)), `{"b":2,"a":3}`)
}

// The bytes of the built-in output, where its text is valid.
func TestJSON_EscapeUnicode(t *testing.T) {
	j := NewJSON(JSONConfig{TimestampKey: "é", EscapeUnicode: true})
	tests := []struct{ name, in, want string }{
		{"non-ASCII", "é日\u2028😀\uFEFF", `\u00e9\u65e5\u2028\ud83d\ude00\ufeff`},
		{"largest", "\U0010FFFF\uFFFF\U00010000", `\udbff\udfff\uffff\ud800\udc00`},
		{"controls", "\x00\x01\x1f\x7f\n\"\\/", `\u0000\u0001\u001f\u007f\n\"\\/`},
		{"no over-escaping", "<>&'", "<>&'"},
		{"bad byte", "ab\xffcd", `ab\ufffdcd`},
		{"surrogate", "\xed\xa0\x80", `\ufffd\ufffd\ufffd`},
		{"long", strings.Repeat("日", 1000), strings.Repeat(`\u65e5`, 1000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkValue(t, j, fields(str(tt.in), str(tt.in)), `{"\u00e9":1700000000.0,"`+tt.want+`":"`+tt.want+`"}`)
		})
	}
}

// The text of a key that is an array or a map does not depend on the escapes either, and one
// that fails leaves them as they were.
func TestJSON_EscapeUnicodeInCompositeKeys(t *testing.T) {
	j := NewJSON(JSONConfig{EscapeUnicode: true})
	checkValue(t, j, fields(arr(str("é")), str("é")), `{"[\"\u00e9\"]":"\u00e9"}`)
	checkValue(t, j, fields(string(fields(arr(str("a😀")), str("\xff"))), num(1)), `{"{\"[\\\"a\ud83d\ude00\\\"]\":\"\ufffd\"}":1}`)
	deep := fields(strings.Repeat("\x81", maxKeyDepth+1)+strings.Repeat("\x01", maxKeyDepth+2), num(1))
	if _, err := j.AppendValue(nil, record(deep)); !errors.Is(err, ErrTooDeep) {
		t.Fatalf("%v; want ErrTooDeep", err)
	}
	checkValue(t, j, fields(str("é"), num(1)), `{"\u00e9":1}`)
}

func TestJSON_InvalidUTF8(t *testing.T) {
	body := fields(str("a\xff"), str("ab\xffcd\xe6\x97"), str("a"), num(1))
	checkValue(t, NewJSON(JSONConfig{InvalidUTF8: InvalidReplace}), body, `{"a�":"ab�cd��","a":1}`)
	// Without the byte the keys are the same, and the last one stays.
	checkValue(t, NewJSON(JSONConfig{InvalidUTF8: InvalidRemove}), body, `{"a":1}`)
	checkValue(t, NewJSON(JSONConfig{InvalidUTF8: InvalidRemove, EscapeUnicode: true}), fields(str("é\xff"), str("\xff日")), `{"\u00e9":"\u65e5"}`)
	j := NewJSON(JSONConfig{InvalidUTF8: InvalidRefuse})
	if got, err := j.AppendValue([]byte("before"), record(body)); !errors.Is(err, ErrInvalidUTF8) || string(got) != "before" {
		t.Errorf("%s, %v; want ErrInvalidUTF8", got, err)
	}
	checkValue(t, j, fields(str("é"), str("\uFFFD")), "{\"é\":\"\uFFFD\"}") // this one is in the text itself
}

func TestJSON_Keys(t *testing.T) {
	inner := string(fields(num(1), arr(str("q\"x"))))
	tests := []struct {
		name string
		in   []byte
		want string // behind the time field
	}{
		{"empty record", fields(), "}"},
		{"order kept", fields(str("b"), num(1), str("a"), num(2)), `,"b":1,"a":2}`},
		{"empty key", fields(str(""), str("")), `,"":""}`},
		{"key with specials", fields(str("a\"\n\xff"), num(1)), `,"a\"\n�":1}`},
		{"bin", fields(bin("b"), num(1)), `,"b":1}`},
		{"integers", fields(num(1), str("one"), num(-7), num(2)), `,"1":"one","-7":2}`},
		{"nil, true, false", fields("\xc0", num(1), "\xc3", num(2), "\xc2", num(3)), `,"null":1,"true":2,"false":3}`},
		{"floats", fields(f64(0.5), num(1), f64(2), num(2), f64(math.NaN()), num(3)), `,"0.5":1,"2.0":2,"null":3}`},
		{"array", fields(arr(num(1), str("x\n")), num(1)), `,"[1,\"x\\n\"]":1}`},
		{"map", fields(inner, num(1)), `,"{\"1\":[\"q\\\"x\"]}":1}`},
		{
			"map in a map key", fields(string(fields(inner, "\xc0")), num(1)),
			`,"{\"{\\\"1\\\":[\\\"q\\\\\\\"x\\\"]}\":null}":1}`,
		},
		{"empty array and map", fields("\x90", num(1), "\x80", num(2)), `,"[]":1,"{}":2}`},
		{"ext", fields(ext(5, "\x01"), num(1)), `,"{\"type\":5,\"data\":\"AQ==\"}":1}`},
		{"event time", fields("\xd7\x00\x65\x53\xf1\x00\x00\x00\x00\x01", num(1)), `,"2023-11-14T22:13:20.000000001Z":1}`},
	}
	j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampDouble})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkValue(t, j, tt.in, timePrefix+tt.want) })
	}
}

func TestJSON_DuplicateKeys(t *testing.T) {
	a, b := str("a"), str("b")
	dup := string(fields(a, num(1), b, num(2), a, num(3)))
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"last one stays at its place", []byte(dup), timePrefix + `,"b":2,"a":3}`},
		{"only the key", fields(a, num(1), a, num(2)), timePrefix + `,"a":2}`},
		{"three times", fields(a, num(1), a, dup, b, num(0), a, num(3)), timePrefix + `,"b":0,"a":3}`},
		{"nested", fields(b, dup, a, arr(dup)), timePrefix + `,"b":{"b":2,"a":3},"a":[{"b":2,"a":3}]}`},
		{"nested in what is dropped", fields(a, dup, a, dup), timePrefix + `,"a":{"b":2,"a":3}}`},
		{"nested in a key", fields(dup, num(1)), timePrefix + `,"{\"b\":2,\"a\":3}":1}`},
		{"number and text", fields(num(1), a, str("1"), b), timePrefix + `,"1":"b"}`},
		{"nil and text", fields("\xc0", a, str("null"), b), timePrefix + `,"null":"b"}`},
		{"str and bin", fields(a, num(1), bin("a"), num(2)), timePrefix + `,"a":2}`},
		{"array and text", fields(arr(num(1)), a, str("[1]"), b), timePrefix + `,"[1]":"b"}`},
		{"time key first", fields(str("@timestamp"), a, b, num(1)), `{"@timestamp":"a","b":1}`},
		{"time key last", fields(b, num(1), str("@timestamp"), a), `{"b":1,"@timestamp":"a"}`},
		{"time key alone", fields(str("@timestamp"), a), `{"@timestamp":"a"}`},
		{"time key twice", fields(str("@timestamp"), a, b, num(1), str("@timestamp"), b), `{"b":1,"@timestamp":"b"}`},
		{"time key nested", fields(a, string(fields(str("@timestamp"), num(1)))), timePrefix + `,"a":{"@timestamp":1}}`},
	}
	j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampDouble})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkValue(t, j, tt.in, tt.want) })
	}
}

// A map of many keys must neither take quadratic time (this one would take minutes)
// nor keep its scratch memory for ever.
func TestJSON_HugeMap(t *testing.T) {
	const n = 500_000
	body := chunktest.Map(nil, 2*n)
	for i := range 2 * n {
		body = chunktest.Uint(chunktest.Str(body, fmt.Sprint("key", i%n)), uint64(i))
	}
	j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampDouble})
	value, err := j.AppendValue(nil, record(body))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]float64
	if err := json.Unmarshal(value, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != n+1 || strings.Count(string(value), ":") != n+1 {
		t.Errorf("%d keys; want %d", len(got), n+1)
	}
	for i := range n {
		if got[fmt.Sprint("key", i)] != float64(n+i) {
			t.Fatalf("key%d is %v; want the last value, %d", i, got[fmt.Sprint("key", i)], n+i)
		}
	}
	if cap(j.keys) > maxKeptKeys || cap(j.slots) > 4*maxKeptKeys {
		t.Errorf("the encoder keeps room for %d keys and %d slots", cap(j.keys), cap(j.slots))
	}
}

func TestJSON_Depth(t *testing.T) {
	nest := func(open string, levels int) []byte {
		return fields(str("k"), strings.Repeat(open, levels)+num(1))
	}
	j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampDouble})
	for _, levels := range []int{200, maxDepth - 1} {
		want := timePrefix + `,"k":` + strings.Repeat("[", levels) + "1" + strings.Repeat("]", levels) + "}"
		checkValue(t, j, nest("\x91", levels), want)
		want = timePrefix + `,"k":` + strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) + "}"
		checkValue(t, j, nest("\x81\xa1a", levels), want)
	}
	tests := []struct {
		name string
		in   []byte
	}{
		{"one level too many", nest("\x91", maxDepth)},
		{"a million arrays", nest("\x91", 1_000_000)},
		{"a million maps", nest("\x81\xa1a", 1_000_000)},
		{"keys in keys", fields(strings.Repeat("\x81", 1000)+strings.Repeat("\x01", 1001), num(1))},
		{"deep array as a key", fields(strings.Repeat("\x91", 100_000)+"\x01", num(1))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := chunk.Skip(tt.in, 0); err != nil {
				t.Fatal(err)
			}
			got, err := j.AppendValue([]byte("before"), record(tt.in))
			if !errors.Is(err, ErrTooDeep) || string(got) != "before" {
				t.Errorf("%d bytes, %v; want ErrTooDeep and the slice unchanged", len(got), err)
			}
			// The next record must not notice.
			checkValue(t, j, fields(str("a"), num(1)), timePrefix+`,"a":1}`)
		})
	}
}

// Bodies that no walker hands out must be refused as well.
func TestJSON_Malformed(t *testing.T) {
	whole := fields(str("a"), arr(num(1), f64(1), "\x80", ext(5, "xy")), string(fields(num(1), num(2))), bin("b"))
	j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampDouble})
	for n := range whole {
		if got, err := j.AppendValue([]byte("before"), record(whole[:n:n])); err == nil || string(got) != "before" {
			t.Errorf("first %d bytes: %s, %v; want an error", n, got, err)
		}
	}
	checkValue(t, j, whole, timePrefix+`,"a":[1,1.0,{},{"type":5,"data":"eHk="}],"{\"1\":2}":"b"}`)
	tests := []struct {
		name string
		in   string
		want error
	}{
		{"nothing", "", errNotMap},
		{"an array", "\x90", errNotMap},
		{"bytes behind", "\x80\x80", errTrailing},
		{"reserved value", "\x81\xa1a\xc1", chunk.ErrReserved},
		{"reserved key", "\x81\xc1\x01", chunk.ErrReserved},
		// Each map announces what the bytes behind it could hold, but not all could.
		{"many large maps", strings.Repeat("\xdf\x00\x01\x00\x00\x01", 5000) + strings.Repeat("\x01", 1<<17), chunk.ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := j.AppendValue([]byte("before"), record([]byte(tt.in)))
			if !errors.Is(err, tt.want) || string(got) != "before" {
				t.Errorf("%s, %v; want %v", got, err, tt.want)
			}
		})
	}
}

// The text is copied by the word, so its length, its place and what lies behind it in
// the chunk all matter.
func TestJSON_TextLengths(t *testing.T) {
	j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampDouble})
	for n := range 20 {
		plain := strings.Repeat("abcdefgh", 3)[:n]
		checkValue(t, j, fields(str("k"), str(plain)), timePrefix+`,"k":"`+plain+`"}`)
		for at := range n {
			for c := range 256 {
				text := plain[:at] + string([]byte{byte(c)}) + plain[at+1:]
				want, _ := json.Marshal(text)
				if c == 0x7f {
					want = []byte(`"` + text[:at] + `\u007f` + text[at+1:] + `"`)
				}
				if strings.ContainsRune("<>&", rune(c)) {
					want = []byte(`"` + text + `"`)
				}
				want = []byte(strings.ReplaceAll(string(want), `\ufffd`, "\uFFFD"))
				checkValue(t, j, fields(str("k"), str(text)), timePrefix+`,"k":`+string(want)+"}")
			}
		}
	}
}

func TestJSON_Allocations(t *testing.T) {
	for name, in := range map[string][]byte{"300": chunk300(100), "2K": chunk2K(100), "odd": oddChunk()} {
		j := NewJSON(JSONConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampISO8601NS})
		w := chunk.NewWalker(nil)
		var e chunk.Entry
		var dst []byte
		n := testing.AllocsPerRun(10, func() {
			w.Reset(in)
			dst = dst[:0]
			for w.Next(&e) {
				var err error
				if dst, err = j.AppendValue(dst, &e); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations for a chunk; want none", name, n)
		}
	}
}

// oddChunk has what ordinary records have not.
func oddChunk() []byte {
	b := chunktest.Head(nil, 1700000000, 5)
	dup := string(fields(str("a"), num(1), str("b"), num(2), str("a"), num(3)))
	b = append(b, fields(dup, dup, f64(1.5), str("\xff\n"), ext(5, "xyz"), "\xd7\x00\x65\x53\xf1\x00\x00\x00\x00\x01",
		str("@timestamp"), arr(num(1)))...)
	for i := range 10 {
		b = chunktest.Map(chunktest.Head(b, uint32(i), 0), 1000)
		for i := range 1000 {
			b = chunktest.Uint(chunktest.Uint(b, uint64(i)), 1)
		}
	}
	return b
}

package format

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"out_kafka_reconnect/plugin/chunk"
)

// gelfConfig has the names that GELF itself has.
var gelfConfig = GELFConfig{
	HostKey: "host", TimestampKey: "timestamp", ShortMessageKey: "short_message", FullMessageKey: "full_message", LevelKey: "level",
}

// gelfRecord is a record at 1700000000.123456789.
func gelfRecord(body []byte) *chunk.Entry {
	return &chunk.Entry{Body: body, Sec: 1700000000, Nsec: 123456789, TimeOK: true}
}

// gelfEnd is the end of a record without a time of its own.
const gelfEnd = `, "timestamp":1700000000.123}`

// TestGELF_Fields has a row for each row of the table of exact bytes in the design notes. The
// rows that say so differ: there the built-in output drops data or is not valid JSON.
func TestGELF_Fields(t *testing.T) {
	tests := []struct {
		name string
		in   []string // keys and values besides short_message
		want string   // behind short_message
	}{
		{"host, level, other", []string{str("host"), str("h1"), str("level"), num(3), str("x"), num(1)}, `, "host":"h1", "level":3, "_x":1`},
		{"booleans", []string{str("t"), "\xc3", str("f"), "\xc2"}, `, "_t":"true", "_f":"false"`},
		{"integers", []string{str("i"), num(-5), str("u"), "\xcf\x80\x00\x00\x00\x00\x00\x00\x00"}, `, "_i":-5, "_u":9223372036854775808`},
		{"floats", []string{str("d"), f64(0.5), str("e"), f64(1e20), str("f"), f64(1e-7)}, `, "_d":0.500000, "_e":100000000000000000000.000000, "_f":0.000000`},
		{"binary", []string{str("bin"), bin("ab")}, `, "_bin":"ab"`},
		{"array", []string{str("arr"), arr(num(1), str("x"), "\xc3", arr(num(2)))}, `, "_arr":"1, x, true, 2"`},
		{"empty array", []string{str("arr"), "\x90"}, `, "_arr":""`},
		{
			"map",
			[]string{str("map"), string(fields(str("a"), string(fields(str("b"), num(1))), str("c"), str("d")))},
			`, "_map_a_b":1, "_map_c":"d"`,
		},
		{"map with null, boolean, array", []string{str("m"), string(fields(str("n"), "\xc0", str("t"), "\xc3", str("a"), arr(num(1), num(2))))}, `, "_m_n":null, "_m_t":"true", "_m_a":"1, 2"`},
		{"empty map", []string{str("m"), "\x80"}, ``},
		{"maps in an array", []string{str("a"), arr(string(fields(str("x"), num(1), str("y z"), str("t"))), num(2))}, `, "_a":"x=1 y_z=t, 2"`},
		{"nil", []string{str("n"), "\xc0"}, ``},
		{"id", []string{str("id"), num(1), str("_id"), num(2), str("_pre"), num(3)}, `, "__id":2, "__pre":3`},
		{"names", []string{str("a b/c"), num(1), str("ok.-_Z9"), num(2), str("é"), num(3)}, `, "_a_b_c":1, "_ok.-_Z9":2, "___":3`},
		{"binary name", []string{bin("host"), str("h")}, `, "host":"h"`},
		{"level in words", []string{str("level"), str("Warning")}, `, "level":4`},
		{"level in digits", []string{str("level"), str("6")}, `, "level":6`},
		{"level too high", []string{str("level"), str("9")}, `, "level":"9"`},
		{"strange level", []string{str("level"), str("strange")}, `, "level":"strange"`},
		{"level twice", []string{str("level"), num(1), str("level"), f64(1)}, `, "level":1`},
		{"level null", []string{str("level"), "\xc0"}, ``},
		{"full_message", []string{str("full_message"), str("a\nb")}, `, "full_message":"a\nb"`},
		{"version", []string{str("version"), str("9")}, `, "_version":"9"`},
		{"host number", []string{str("host"), num(5)}, `, "host":5`},
		{"short_message twice", []string{str("short_message"), str("second")}, ``},
		{"duplicate field", []string{str("a"), num(1), str("a"), num(2)}, `, "_a":1, "_a":2`},
		{"non-ASCII", []string{str("a"), str("é日😀")}, `, "_a":"\u00e9\u65e5\ud83d\ude00"`},
		{"non-ASCII in an array", []string{str("a"), arr(str("é"))}, `, "_a":"é"`},
		{"specials", []string{str("a"), str("\"\\\n\x01\x7f/")}, `, "_a":"\"\\\n\u0001\u007f/"`},

		// Better than the built-in output.
		{"float32 is kept", []string{str("a"), f32(1.5)}, `, "_a":1.500000`},
		{"names that are no text are kept", []string{num(1), num(2), "\xc3", num(3), arr(num(1), str("x")), num(4)}, `, "_1":2, "_true":3, "__1___x___":4`},
		{"the same inside", []string{str("m"), string(fields(num(1), num(2), bin("b"), num(3)))}, `, "_m_1":2, "_m_b":3`},
		{"NaN is null", []string{str("a"), f64(math.NaN()), str("m"), string(fields(str("i"), f64(math.Inf(1))))}, `, "_m_i":null`},
		{"ext", []string{str("a"), ext(5, "\x01\x7f\x80\xff"), str("b"), arr(ext(5, "\x01"))}, `, "_a":"AX+A/w==", "_b":"AQ=="`},
		{"event time", []string{str("a"), "\xd7\x00\x65\x53\xf1\x00\x07\x5b\xcd\x15"}, `, "_a":"2023-11-14T22:13:20.123456789Z"`},
		{"quotes in an array", []string{str("a"), arr(str(`say "x"`), str("\n"))}, `, "_a":"say \"x\", \n"`},
		{
			"maps in a map in an array",
			[]string{str("a"), arr(string(fields(str("x"), num(1), str("m"), string(fields(str("y"), num(2), str("z"), "\xc0")))))},
			`, "_a":"x=1 m_y=2 m_z=null"`,
		},
		{"bad UTF-8", []string{str("a"), str("x\xffy"), str("b"), arr(str("x\xffy"))}, `, "_a":"x\ufffdy", "_b":"x` + "\uFFFD" + `y"`},
	}
	g := NewGELF(gelfConfig)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := fields(append([]string{str("short_message"), str("hi")}, tt.in...)...)
			want := `{"version":"1.1", "short_message":"hi"` + tt.want + gelfEnd
			got, err := g.AppendValue([]byte("before"), gelfRecord(body))
			if err != nil || string(got) != "before"+want {
				t.Errorf("%s, %v\nwant before%s", got, err, want)
			}
			if !json.Valid([]byte(want)) {
				t.Errorf("the wanted value %s is not valid JSON", want)
			}
		})
	}
}

func TestGELF_Records(t *testing.T) {
	named := GELFConfig{
		HostKey: "hostname", TimestampKey: "time", ShortMessageKey: "log", FullMessageKey: "stack", LevelKey: "severity", NoTimestamp: true,
	}
	tests := []struct {
		name   string
		config GELFConfig
		in     []byte
		want   string
	}{
		// The expectations of Fluent Bit's own tests.
		{
			"array as message",
			GELFConfig{ShortMessageKey: "t1"},
			fields(str("t1"), arr("\xc3", "\xcf\x00\x00\x00\x00\x00\x00\x07\xe3", str("str")), str("t2"), "\xc2"),
			`{"version":"1.1", "short_message":"true, 2019, str", "_t2":"false"` + gelfEnd,
		},
		{"message is a number", gelfConfig, fields(str("short_message"), num(5)), `{"version":"1.1", "short_message":5` + gelfEnd},
		{
			"message is a map", gelfConfig, fields(str("short_message"), string(fields(str("a"), num(1)))),
			`{"version":"1.1", "_short_message_a":1` + gelfEnd,
		},
		{"message is null", gelfConfig, fields(str("short_message"), "\xc0"), `{"version":"1.1"` + gelfEnd},
		{"message is an empty map", gelfConfig, fields(str("short_message"), "\x80"), `{"version":"1.1"` + gelfEnd},
		{"own time", gelfConfig, fields(str("short_message"), str("a"), str("timestamp"), f64(1.5)), `{"version":"1.1", "short_message":"a", "timestamp":1.500000}`},
		{"own time in words", gelfConfig, fields(str("short_message"), str("a"), str("timestamp"), str("x")), `{"version":"1.1", "short_message":"a", "timestamp":"x"}`},
		{"own time is null", gelfConfig, fields(str("short_message"), str("a"), str("timestamp"), "\xc0"), `{"version":"1.1", "short_message":"a"}`},
		{
			"other names", named,
			fields(str("log"), str("a"), str("hostname"), str("h"), str("time"), num(1), str("stack"), str("s"), str("severity"), str("ERR"), str("host"), num(2)),
			`{"version":"1.1", "short_message":"a", "host":"h", "timestamp":1, "full_message":"s", "level":3, "_host":2}`,
		},
		{"no time", named, fields(str("log"), str("a")), `{"version":"1.1", "short_message":"a"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NewGELF(tt.config).AppendValue(nil, gelfRecord(tt.in))
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestGELF_Errors(t *testing.T) {
	message := func(pairs ...string) []byte {
		return fields(append([]string{str("short_message"), str("hi")}, pairs...)...)
	}
	wide := make([]string, 0, 4000)
	for range 2000 {
		wide = append(wide, str("a"), num(1))
	}
	tests := []struct {
		name string
		in   []byte
		want error
	}{
		{"no message", fields(str("a"), num(1)), ErrNoShortMessage},
		{"fractional level", message(str("level"), f64(1.5)), ErrLevel},
		{"whole float as level", message(str("level"), f64(3)), ErrLevel},
		{"boolean level", message(str("level"), "\xc3"), ErrLevel},
		{"binary level", message(str("level"), bin("err")), ErrLevel},
		{"negative level", message(str("level"), num(-1)), ErrLevel},
		{"array level", message(str("level"), "\x90"), ErrLevel},
		{"deep map", message(str("a"), strings.Repeat("\x81\xa1a", maxFlat+1)+"\x01"), ErrTooDeep},
		{"deep array", message(str("a"), strings.Repeat("\x91", 100_000)+"\x01"), ErrTooDeep},
		{"deep map in an array", message(str("a"), "\x91"+strings.Repeat("\x81\xa1a", maxFlat)+"\x01"), ErrTooDeep},
		{"long name over many fields", message(str(strings.Repeat("k", 60_000)), string(fields(wide...))), ErrInflated},
		{"the same in an array", message(str("a"), arr(string(fields(str(strings.Repeat("k", 60_000)), string(fields(wide...)))))), ErrInflated},
		{"no map", []byte("\x90"), errNotMap},
		{"bytes behind", append(message(), 0x80), errTrailing},
	}
	g := NewGELF(gelfConfig)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := g.AppendValue([]byte("before"), gelfRecord(tt.in))
			if !errors.Is(err, tt.want) || string(got) != "before" {
				t.Errorf("%d bytes, %v; want %v and the slice unchanged", len(got), err, tt.want)
			}
			// The next record must not notice.
			if got, err = g.AppendValue(nil, gelfRecord(message())); err != nil || string(got) != `{"version":"1.1", "short_message":"hi"`+gelfEnd {
				t.Errorf("the next record: %s, %v", got, err)
			}
		})
	}
	whole := message(str("a"), arr(num(1), str("x"), string(fields(str("k"), f64(1)))), str("m"), string(fields(num(1), arr(bin("b")))), str("e"), ext(5, "x"))
	for n := range whole {
		if got, err := g.AppendValue([]byte("before"), gelfRecord(whole[:n:n])); err == nil || string(got) != "before" {
			t.Errorf("first %d bytes: %s, %v; want an error", n, got, err)
		}
	}
}

// FuzzGELF feeds any bytes as a body, whole or not. What is written is valid JSON in UTF-8
// and equal to what a plain second implementation gives.
func FuzzGELF(f *testing.F) {
	message := str("short_message") + str("hi")
	f.Add([]byte("\x81" + message))
	f.Add([]byte("\x83" + message + str("a") + arr(num(1), string(fields(str("k"), "\x80", str("m"), string(fields(str("n"), "\xc0")))), bin("\xff\"")) +
		str("level") + str("eRR")))
	f.Add([]byte("\x84" + message + str("m") + string(fields(str("é"), f32(1), "\xc0", ext(0, "12345678"))) + "\x01\xc3" + str("id") + "\x80"))
	f.Add([]byte("\x82" + message + string(fields(num(1), num(2), num(1), num(3))) + "\x90"))
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:len(in):len(in)]
		end, skipErr := chunk.Skip(in, 0)
		h, _ := chunk.ReadHead(in, 0)
		whole := skipErr == nil && end == len(in) && h.Type == chunk.Map
		got, err := NewGELF(gelfConfig).AppendValue(nil, gelfRecord(in))
		if !whole && err == nil {
			t.Fatalf("body %x is not whole: %s", in, got)
		}
		if !whole || errors.Is(err, ErrTooDeep) || errors.Is(err, ErrInflated) || len(in) > maxOracleBytes {
			return
		}
		tree, _ := readNode(in)
		want, wantErr := oracleGELF(tree.([]pair))
		if !errors.Is(err, wantErr) || err == nil && string(got) != want {
			t.Fatalf("body %x:\n got %s, %v\nwant %s, %v", in, got, err, want, wantErr)
		}
		if err == nil && (!json.Valid(got) || !utf8.Valid(got)) {
			t.Fatalf("body %x: not JSON in UTF-8: %s", in, got)
		}
	})
}

// oracleGELF is the value of a record by a second, plain implementation. A float32 is a
// float64 to it and a bin a text.
func oracleGELF(pairs []pair) (string, error) {
	out := `{"version":"1.1"`
	found := map[string]bool{}
	for _, p := range pairs {
		name := oracleName(p.key)
		known := slices.Contains(gelfNames[:], name)
		if known && found[name] || name == "id" {
			continue
		}
		found[name] = true
		value := p.value
		if oracleNull(value) {
			continue
		}
		if m, ok := value.([]pair); ok {
			out += oracleFlat("_"+name, m)
			continue
		}
		if known && name == "level" {
			var err error
			if value, err = oracleLevel(value); err != nil {
				return "", err
			}
		}
		if !known {
			name = "_" + name
		}
		out += oracleField(name, value)
	}
	if !found["short_message"] {
		return "", ErrNoShortMessage
	}
	if !found["timestamp"] {
		out += `, "timestamp":1700000000.123`
	}
	return out + "}", nil
}

func oracleName(key node) string {
	if s, ok := key.(string); ok {
		return s
	}
	text := oracleValue(key)
	if text[0] != '"' {
		text = oracleText(text)
	}
	return text[1 : len(text)-1]
}

func oracleNull(v node) bool {
	f, isFloat := v.(float64)
	return v == nil || isFloat && (math.IsNaN(f) || math.IsInf(f, 0))
}

func oracleLevel(v node) (node, error) {
	switch v := v.(type) {
	case uint64:
		return v, nil
	case string:
		for n, word := range strings.Fields("emerg alert crit err warning notice info debug") {
			if strings.ToLower(v) == word && len(v) == len(word) || v == strconv.Itoa(n) {
				return uint64(n), nil
			}
		}
		return v, nil
	}
	return nil, ErrLevel
}

func oracleFlat(prefix string, m []pair) (out string) {
	for _, p := range m {
		name := prefix + "_" + oracleName(p.key)
		if inner, ok := p.value.([]pair); ok {
			out += oracleFlat(name, inner)
		} else {
			out += oracleField(name, p.value)
		}
	}
	return out
}

func oracleClean(name string) string {
	clean := []byte(name)
	for i, c := range clean {
		if !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_", rune(c)) {
			clean[i] = '_'
		}
	}
	return string(clean)
}

func oracleField(name string, v node) string {
	text := oraclePart(v)
	switch v := v.(type) {
	case string:
		text = ""
		for _, r := range oracleText(v) {
			switch {
			case r < utf8.RuneSelf:
				text += string(r)
			case r > 0xffff:
				high, low := utf16.EncodeRune(r)
				text += fmt.Sprintf(`\u%04x\u%04x`, high, low)
			default:
				text += fmt.Sprintf(`\u%04x`, r)
			}
		}
	case bool, extNode, []node:
		text = `"` + text + `"`
	}
	return `, "` + oracleClean(name) + `":` + text
}

// oraclePart is a value as a part of an array's text.
func oraclePart(v node) string {
	switch v := v.(type) {
	case float64:
		if oracleNull(v) {
			return "null"
		}
		return fmt.Sprintf("%f", v)
	case string:
		text := oracleText(v)
		return text[1 : len(text)-1]
	case extNode:
		if v.typ == 0 && len(v.payload) == 8 {
			return strings.Trim(oracleValue(v), `"`)
		}
		return base64.StdEncoding.EncodeToString([]byte(v.payload))
	case []node:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = oraclePart(e)
		}
		return strings.Join(parts, ", ")
	case []pair:
		return strings.Join(oracleInner("", v), " ")
	}
	return oracleValue(v)
}

func oracleInner(prefix string, m []pair) (parts []string) {
	for _, p := range m {
		name := oracleName(p.key)
		if prefix != "" {
			name = prefix + "_" + name
		}
		if inner, ok := p.value.([]pair); ok {
			parts = append(parts, oracleInner(name, inner)...)
		} else {
			parts = append(parts, oracleClean(name)+"="+oraclePart(p.value))
		}
	}
	return parts
}

package format

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
)

func parseAvro(t testing.TB, text string) *AvroSchema {
	t.Helper()
	s, err := ParseAvro(text, 7)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fieldSchema is a schema of one field f.
func fieldSchema(typ string) string {
	return `{"type":"record","name":"r","fields":[{"name":"f","type":` + typ + `}]}`
}

func TestAvro_Values(t *testing.T) {
	const (
		enum = `{"type":"enum","name":"e","symbols":["a","b"]}`
		four = `{"type":"fixed","name":"x","size":4}`
		rec  = `{"type":"record","name":"q","fields":[{"name":"a","type":"int"},{"name":"b","type":"string","default":"d"}]}`
		two  = `["null",` + rec + `,{"type":"record","name":"s","fields":[{"name":"c","type":["null","int"]}]},{"type":"map","values":"int"}]`
	)
	tests := []struct{ typ, in, want string }{ // want in hex
		{`"null"`, "\xc0", ""},
		{`"boolean"`, "\xc3", "01"},
		{`"int"`, num(1), "02"},
		{`"int"`, num(math.MinInt32), "ffffffff0f"},
		{`"int"`, num(math.MaxInt32), "feffffff0f"},
		{`"long"`, num(math.MinInt64), "ffffffffffffffffff01"},
		{`"long"`, num(64), "8001"},
		{`"float"`, f64(0.1), "cdcccc3d"},
		{`"float"`, f32(1.5), "0000c03f"},
		{`"float"`, f64(math.Inf(1)), "0000807f"},
		{`"float"`, num(3), "00004040"},
		{`"double"`, f64(0.1), "9a9999999999b93f"},
		{`"double"`, num(-2), "00000000000000c0"},
		{`"string"`, str("hé"), "0668c3a9"},
		{`"string"`, str(""), "00"},
		{`"string"`, str("a\xffb"), "0a61efbfbd62"},
		{`"string"`, bin("ab"), "046162"},
		{`"bytes"`, bin("\x00\xff"), "0400ff"},
		{`"bytes"`, str("a"), "0261"},
		{`"bytes"`, ext(5, "\x01\x02"), "040102"},
		{four, bin("\x01\x02\x03\x04"), "01020304"},
		{enum, str("b"), "02"},
		{`{"type":"array","items":"int"}`, arr(num(1), num(2)), "04020400"},
		{`{"type":"array","items":"int"}`, "\x90", "00"},
		{`{"type":"map","values":"int"}`, string(fields(str("a"), num(1), str("b"), num(2))), "0402610202620400"},
		{`{"type":"map","values":"int"}`, "\x80", "00"},
		{rec, string(fields(str("b"), str("x"), str("a"), num(1))), "020278"},
		{rec, string(fields(str("a"), num(1))), "020264"},
		{rec, string(fields(str("a"), num(1), str("a"), num(2))), "040264"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, num(1), "02"},

		{`["null","string"]`, "\xc0", "00"},
		{`["null","string"]`, str("a"), "020261"},
		{`["int","long","double"]`, num(1), "0002"},
		{`["int","long","double"]`, num(1 << 40), "02808080808040"},
		{`["int","long","double"]`, "\xcf\x80\x00\x00\x00\x00\x00\x00\x00", "04000000000000e043"},
		{`["int","long","double"]`, f64(2), "040000000000000040"},
		{`["float","double"]`, f64(0.1), "029a9999999999b93f"},
		{`["string",` + enum + `]`, str("a"), "0200"},
		{`["string",` + enum + `]`, str("c"), "000263"},
		{`["string","bytes"]`, bin("c"), "020263"},
		{`["null",{"type":"array","items":"int"}]`, arr(num(1)), "02020200"},
		{`["null",` + rec + `]`, string(fields(str("a"), num(1))), "02020264"},
		{two, string(fields(str("a"), num(1))), "02020264"},
		{two, string(fields(str("c"), num(1))), "040202"},
		{two, "\x80", "0400"},
		{two, string(fields(str("a"), num(1), str("c"), num(1))), "060402610202630200"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %x", tt.typ, tt.in), func(t *testing.T) {
			got, err := NewAvro(AvroConfig{Schema: parseAvro(t, fieldSchema(tt.typ))}).AppendValue([]byte("before"), record(fields(str("f"), tt.in)))
			if err != nil || string(got[:6]) != "before" || hex.EncodeToString(got[6:]) != "0000000007"+tt.want {
				t.Errorf("%x, %v; want 0000000007%s", got[6:], err, tt.want)
			}
		})
	}
}

func TestAvro_Records(t *testing.T) {
	const all = `{"type":"record","name":"r","namespace":"n","fields":[
		{"name":"s","type":"string"},
		{"name":"d","type":"double","default":1.5},
		{"name":"u","type":["null","int"]},
		{"name":"v","type":["int","null"]},
		{"name":"next","type":["null","r"],"default":null},
		{"name":"list","type":{"type":"array","items":"n.r"},"default":[]}]}`
	tests := []struct {
		name, schema string
		in           []byte
		want         string
	}{
		{"other order, defaults, null where it is allowed", all, fields(str("u"), num(1), str("s"), str("x")), "0278" + "000000000000f83f" + "0202" + "02" + "00" + "00"},
		{
			"inside itself", all, fields(str("s"), str("x"), str("next"), string(fields(str("s"), str("y")))),
			"0278" + "000000000000f83f" + "00" + "02" + "02" + "0279000000000000f83f00020000" + "00",
		},
		{"a map", `{"type":"map","values":["int","string"]}`, fields(str("a"), num(1), str("b"), str("c")), "04" + "02610002" + "0262020263" + "00"},
		{"a union", `["null",{"type":"record","name":"r","fields":[]}]`, fields(), "02"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NewAvro(AvroConfig{Schema: parseAvro(t, tt.schema)}).AppendValue(nil, record(tt.in))
			if err != nil || hex.EncodeToString(got) != "0000000007"+tt.want {
				t.Errorf("%x, %v; want 0000000007%s", got, err, tt.want)
			}
		})
	}
}

func TestAvro_Errors(t *testing.T) {
	tests := []struct {
		typ, in string
		want    string // at the end of the error
	}{
		{`"int"`, num(1 << 31), "the number 2147483648 is not for int"},
		{`"int"`, num(-1<<31 - 1), "the number -2147483649 is not for int"},
		{`"int"`, f64(1), "the number 1 is not for int"},
		{`"int"`, str("1"), "a text is not for int"},
		{`"long"`, "\xcf\x80\x00\x00\x00\x00\x00\x00\x00", "the number 9223372036854775808 is not for long"},
		{`"float"`, num(1<<24 + 1), "the number 16777217 is not for float"},
		{`"float"`, f64(1e300), "the number 1e+300 is not for float"},
		{`"double"`, num(1<<53 + 1), "the number 9007199254740993 is not for double"},
		{`"double"`, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "the number 18446744073709551615 is not for double"},
		{`"string"`, num(1), "the number 1 is not for string"},
		{`"string"`, "\xc0", "null is not for string"},
		{`"boolean"`, num(1), "the number 1 is not for boolean"},
		{`"bytes"`, "\xc3", "a boolean is not for bytes"},
		{`{"type":"fixed","name":"x","size":4}`, bin("abc"), "a binary value is not for fixed"},
		{`{"type":"enum","name":"e","symbols":["a","b"]}`, str("c"), "a text is not for enum"},
		{`{"type":"array","items":"int"}`, "\x80", "a map is not for array"},
		{`{"type":"array","items":"int"}`, arr(num(1), "\xc0"), "null is not for int"},
		{`{"type":"map","values":"int"}`, "\x90", "an array is not for map"},
		{`{"type":"map","values":"int"}`, string(fields(num(1), num(1))), "a key is no text"},
		{`["null","int"]`, ext(5, ""), "an ext is not for union"},
		{`{"type":"record","name":"q","fields":[{"name":"a","type":"int"}]}`, string(fields(str("b"), num(1))), `it has no field "b"`},
		{`["null",{"type":"record","name":"q","fields":[{"name":"a","type":"int"}]}]`, "\x80", `the field "a" is missing`},
		{`{"type":"record","name":"q","fields":[{"name":"a","type":"int"}]}`, string(fields(num(1), num(1))), "a key is no text"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %x", tt.typ, tt.in), func(t *testing.T) {
			a := NewAvro(AvroConfig{Schema: parseAvro(t, fieldSchema(tt.typ)), RefuseUnknown: true})
			got, err := a.AppendValue([]byte("before"), record(fields(str("f"), tt.in)))
			if !errors.Is(err, ErrSchema) || string(got) != "before" || !strings.HasPrefix(err.Error(), `field "f": `) || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("%x, %v; want %s", got, err, tt.want)
			}
		})
	}
	a := NewAvro(AvroConfig{Schema: parseAvro(t, fieldSchema(`["null",{"type":"array","items":"r"}]`))})
	deep := fields(str("f"), strings.Repeat("\x91\x81\xa1f", 1000)+"\x90")
	if got, err := a.AppendValue([]byte("before"), record(deep)); !errors.Is(err, ErrTooDeep) || string(got) != "before" {
		t.Errorf("deep: %x, %v; want ErrTooDeep", got, err)
	}
	long := fields(str(strings.Repeat("k", 1000)), num(1))
	strict := NewAvro(AvroConfig{Schema: a.schema, RefuseUnknown: true})
	if _, err := strict.AppendValue(nil, record(long)); err == nil || len(err.Error()) > 200 {
		t.Errorf("long key: %v", err)
	}
	for _, in := range []string{"", "\xc1", "\x90", "\x80\x80", "\x81\xa1f", "\x81\xa1f\x91"} {
		if got, err := a.AppendValue([]byte("before"), record([]byte(in))); err == nil || string(got) != "before" {
			t.Errorf("%x: %x, %v; want an error", in, got, err)
		}
	}
}

// What the schema has no name for is left out, and told of.
func TestAvro_Unknown(t *testing.T) {
	const (
		inner = `{"type":"record","name":"q","fields":[{"name":"a","type":"int"}]}`
		two   = `["null",` + inner + `,{"type":"record","name":"s","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}]`
	)
	one, long := num(1), strings.Repeat("k", 1000)
	tests := []struct {
		name, typ string
		in        []byte
		want      string
		left      LeftOut
	}{
		{"none", `"int"`, fields(str("f"), one), "02", LeftOut{}},
		{"first", `"int"`, fields(str("x"), str("y"), str("f"), one), "02", LeftOut{1, "x"}},
		{"last", `"int"`, fields(str("f"), one, str("x"), str("y")), "02", LeftOut{1, "x"}},
		{"between, several", `"int"`, fields(str("x"), arr(one), str("f"), one, str("y"), "\xc0"), "02", LeftOut{2, "x"}},
		{"long name", `"int"`, fields(str(long), one, str("f"), one), "02", LeftOut{1, long[:maxShownName]}},
		{"key no text", `"int"`, fields(num(5), one, str("f"), one), "02", LeftOut{1, ""}},
		{"inside", inner, fields(str("f"), string(fields(str("a"), one, str("x"), one))), "02", LeftOut{1, "x"}},
		{"in each of a list", `{"type":"array","items":` + inner + `}`, fields(str("f"), arr(
			string(fields(str("x"), one, str("a"), one)), string(fields(str("a"), one, str("y"), one)))), "04020200", LeftOut{2, "x"}},
		{"key of a map no text", `{"type":"map","values":"int"}`, fields(str("f"), string(fields(num(1), str("x"), str("a"), one))), "0202610200", LeftOut{1, ""}},
		{"only such a key", `{"type":"map","values":"int"}`, fields(str("f"), string(fields(num(1), one))), "00", LeftOut{1, ""}},
		{"only branch", `["null",` + inner + `]`, fields(str("f"), string(fields(str("a"), one, str("x"), one))), "0202", LeftOut{1, "x"}},
		{"branch with the most names", two, fields(str("f"), string(fields(str("a"), one, str("b"), one, str("x"), one))), "040202", LeftOut{1, "x"}},
		{"branch that needs no more", two, fields(str("f"), string(fields(str("a"), one, str("x"), one))), "0202", LeftOut{1, "x"}},
		{"a map before it", `[` + inner + `,{"type":"map","values":"int"}]`, fields(str("f"), string(fields(str("a"), one, str("x"), one))), "020402610202780200", LeftOut{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := NewAvro(AvroConfig{Schema: parseAvro(t, fieldSchema(tt.typ))})
			got, err := a.AppendValue(nil, record(tt.in))
			if left := a.Left(); err != nil || hex.EncodeToString(got) != "0000000007"+tt.want || left != tt.left {
				t.Errorf("%x, %v, left out %+v; want 0000000007%s, %+v", got, err, left, tt.want, tt.left)
			}
			if left := a.Left(); left != (LeftOut{}) {
				t.Errorf("%+v is told twice", left)
			}
			if _, err := a.AppendValue(nil, record(append(tt.in[:len(tt.in):len(tt.in)], 0))); err == nil || a.Left() != (LeftOut{}) {
				t.Errorf("%v: something was left out of a record that is not written", err)
			}
			strict := NewAvro(AvroConfig{Schema: a.schema, RefuseUnknown: true})
			if _, err := strict.AppendValue(nil, record(tt.in)); errors.Is(err, ErrSchema) != (tt.left.Fields > 0) || strict.Left() != (LeftOut{}) {
				t.Errorf("strict: %v", err)
			}
		})
	}
}

func TestParseAvro_Errors(t *testing.T) {
	for _, text := range []string{"", "{}", `"string"`, `["null","int"]`, `{"type":"array","items":"int"}`, fieldSchema(`"unknown"`), `{"type":"record","name":"r"}`} {
		if s, err := ParseAvro(text, 1); err == nil {
			t.Errorf("%s: %+v; want an error", text, s)
		}
	}
}

// schema300 is the schema of chunk300.
const schema300 = `{"type":"record","name":"log","fields":[
	{"name":"host","type":"string"},{"name":"level","type":{"type":"enum","name":"level","symbols":["debug","info"]}},
	{"name":"logger","type":["null","string"]},{"name":"message","type":"string"},{"name":"remote","type":"string"},
	{"name":"status","type":"int"},{"name":"bytes","type":"long"},{"name":"duration","type":"double"},
	{"name":"cached","type":"boolean"},{"name":"trace_id","type":["null","string"],"default":null}]}`

// fuzzSchema has something of everything.
const fuzzSchema = `{"type":"record","name":"r","fields":[
	{"name":"a","type":["null","boolean","long","double","string","bytes",{"type":"array","items":"r"},{"type":"map","values":"r"}]},
	{"name":"b","type":["null","r",{"type":"record","name":"s","fields":[{"name":"c","type":"float"},{"name":"d","type":"bytes"}]}]},
	{"name":"c","type":["null","int"],"default":null},
	{"name":"d","type":["null",{"type":"enum","name":"e","symbols":["x","y"]},{"type":"fixed","name":"f","size":3}]}]}`

// FuzzAvro feeds any bytes as a body. What is written is read by a library, to its last
// byte, and is what the record has.
func FuzzAvro(f *testing.F) {
	f.Add([]byte("\x80"))
	f.Add(fields(str("a"), arr(string(fields(str("c"), num(5))), "\x80"), str("d"), str("y")))
	f.Add(fields(str("b"), string(fields(str("c"), f32(1.5), str("d"), bin("\xff"))), str("a"), str("x\xff")))
	f.Add(fields(str("b"), string(fields(str("a"), string(fields(str("k"), "\x80")))), str("d"), bin("abc")))
	library := avro.MustParse(fuzzSchema)
	a := NewAvro(AvroConfig{Schema: parseAvro(f, fuzzSchema)})
	strict := NewAvro(AvroConfig{Schema: a.schema, RefuseUnknown: true})
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:len(in):len(in)]
		end, skipErr := chunk.Skip(in, 0)
		got, err := a.AppendValue([]byte("before"), record(in))
		if err != nil {
			if string(got) != "before" {
				t.Fatalf("body %x: %x, %v", in, got, err)
			}
			return
		}
		if skipErr != nil || end != len(in) || string(got[:11]) != "before\x00\x00\x00\x00\x07" {
			t.Fatalf("body %x is not whole: %x", in, got)
		}
		var back any
		rest, err := library.Decode(got[11:], &back)
		if err != nil || len(rest) != 0 {
			t.Fatalf("body %x: %x is read to %x, %v", in, got, rest, err)
		}
		whole, err := strict.AppendValue([]byte("before"), record(in))
		switch left := a.Left().Fields; {
		case (err == nil) != (left == 0) || err == nil && string(whole) != string(got):
			t.Fatalf("body %x: %x with %d left out; strict %x, %v", in, got, left, whole, err)
		case left > 0:
			return
		}
		tree, _ := readNode(in)
		if !sameAvro(tree, back) {
			t.Fatalf("body %x: %v is read as %v", in, tree, back)
		}
	})
}

// FuzzParseAvro feeds any text as a schema, as a registry may answer anything. One that is
// taken can be used.
func FuzzParseAvro(f *testing.F) {
	for _, text := range []string{"{", schema300, fuzzSchema, fieldSchema(`"int"`), `["null",{"type":"map","values":"int"}]`} {
		f.Add(text, []byte("\x81\xa1f\x01"))
	}
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		s, err := ParseAvro(text, 1)
		if err != nil {
			return
		}
		got, err := NewAvro(AvroConfig{Schema: s}).AppendValue([]byte("before"), record(body))
		if string(got[:6]) != "before" || err != nil && len(got) != 6 {
			t.Errorf("%s, body %x: %x, %v", text, body, got, err)
		}
	})
}

// sameAvro compares a record with what the library has read of it.
func sameAvro(n node, v any) bool {
	switch n := n.(type) {
	case nil:
		return v == nil
	case bool:
		return v == n
	case uint64:
		return fmt.Sprint(v) == fmt.Sprint(n) || v == float64(n)
	case int64:
		return fmt.Sprint(v) == fmt.Sprint(n) || v == float64(n)
	case float64:
		return fmt.Sprint(v) == fmt.Sprint(n) || fmt.Sprint(v) == fmt.Sprint(float32(n))
	case string:
		if b, ok := v.([]byte); ok {
			return string(b) == n
		}
		return v == oracleUnquoted(n)
	case extNode:
		b, ok := v.([]byte)
		return ok && string(b) == n.payload
	case []node:
		list, ok := v.([]any)
		if !ok || len(list) != len(n) {
			return false
		}
		for i := range n {
			if !sameAvro(n[i], list[i]) {
				return false
			}
		}
		return true
	case []pair:
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		last := map[string]node{}
		for _, p := range n {
			last[oracleUnquoted(p.key.(string))] = p.value
		}
		for name, value := range last {
			got, ok := m[name]
			if !ok || !sameAvro(value, got) {
				return false
			}
		}
		for name, value := range m { // fields that the record lacks
			if _, ok := last[name]; !ok && value != nil {
				return false
			}
		}
		return true
	}
	return false
}

// oracleUnquoted is a text with U+FFFD for each byte that is no UTF-8.
func oracleUnquoted(s string) string { return string([]rune(s)) }

// The default of a field is what the library itself would write.
func TestAvro_Defaults(t *testing.T) {
	const text = `{"type":"record","name":"r","fields":[
		{"name":"i","type":"int","default":-3},{"name":"b","type":"bytes","default":"\u00ff"},
		{"name":"u","type":["string","null"],"default":"x"},{"name":"m","type":{"type":"map","values":"long"},"default":{"k":1}},
		{"name":"e","type":{"type":"enum","name":"e","symbols":["p","q"]},"default":"q"},
		{"name":"o","type":{"type":"record","name":"o","fields":[{"name":"n","type":"int"}]},"default":{"n":4}}]}`
	got, err := NewAvro(AvroConfig{Schema: parseAvro(t, text)}).AppendValue(nil, record(chunktest.Map(nil, 0)))
	if err != nil {
		t.Fatal(err)
	}
	var back any
	if rest, err := avro.MustParse(text).Decode(got[5:], &back); err != nil || len(rest) != 0 {
		t.Fatalf("%x: %x left, %v", got, rest, err)
	}
	want := map[string]any{
		"i": int32(-3), "b": []byte{0xff}, "u": "x", "m": map[string]any{"k": int64(1)}, "e": "q", "o": map[string]any{"n": int32(4)},
	}
	if !reflect.DeepEqual(back, want) {
		t.Errorf("%#v; want %#v", back, want)
	}
}

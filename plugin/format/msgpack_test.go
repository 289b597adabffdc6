package format

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ugorji/go/codec"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
)

// packedTime is the time of the test records as timestamp_format double packs it.
const packedTime = "\xaa@timestamp\xcb\x41\xd9\x54\xfc\x40\x00\x00\x00"

func newMsgPack() *MsgPack { return NewMsgPack(MsgPackConfig{TimestampKey: "@timestamp"}) }

func TestMsgPack_Time(t *testing.T) {
	entry := &chunk.Entry{Body: fields(str("a"), num(1)), Sec: 1700000000, Nsec: 123456789}
	tests := []struct {
		name   string
		config MsgPackConfig
		want   string // in hex
	}{
		{"double", MsgPackConfig{TimestampKey: "t"}, "82a174cb41d954fc4007e6b7a16101"},
		{"iso8601", MsgPackConfig{TimestampKey: "t", TimestampFormat: TimestampISO8601}, "82a174bb" + hex.EncodeToString([]byte("2023-11-14T22:13:20.123456Z")) + "a16101"},
		{"iso8601_ns", MsgPackConfig{TimestampKey: "t", TimestampFormat: TimestampISO8601NS}, "82a174be" + hex.EncodeToString([]byte("2023-11-14T22:13:20.123456789Z")) + "a16101"},
		{"none", MsgPackConfig{}, "81a16101"},
		{
			"long key",
			MsgPackConfig{TimestampKey: strings.Repeat("k", 32)},
			"82d920" + strings.Repeat("6b", 32) + "cb41d954fc4007e6b7a16101",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMsgPack(tt.config)
			for range 2 { // the second one of a second has the date at hand
				got, err := m.AppendValue([]byte("before"), entry)
				if err != nil || string(got[:6]) != "before" || hex.EncodeToString(got[6:]) != tt.want {
					t.Errorf("%x, %v; want %s", got[6:], err, tt.want)
				}
			}
		})
	}
}

// TestMsgPack_Values has a row for what the design notes say of the built-in output: every
// head in its shortest form, everything else as it is.
func TestMsgPack_Values(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []struct{ name, in, want string }{
		{"uint64 1", "\xcf\x00\x00\x00\x00\x00\x00\x00\x01", "\x01"},
		{"uint8 127", "\xcc\x7f", "\x7f"},
		{"uint8 128", "\xcc\x80", "\xcc\x80"},
		{"uint32 256", "\xce\x00\x00\x01\x00", "\xcd\x01\x00"},
		{"uint32 65536", "\xce\x00\x01\x00\x00", "\xce\x00\x01\x00\x00"},
		{"uint64 max", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"signed 5", "\xd1\x00\x05", "\x05"},
		{"signed 65536 of the same width", "\xd2\x00\x01\x00\x00", "\xce\x00\x01\x00\x00"},
		{"signed 2^40 of the same width", "\xd3\x00\x00\x01\x00\x00\x00\x00\x00", "\xcf\x00\x00\x01\x00\x00\x00\x00\x00"},
		{"int64 -1", "\xd3\xff\xff\xff\xff\xff\xff\xff\xff", "\xff"},
		{"int16 -33", "\xd1\xff\xdf", "\xd0\xdf"},
		{"int32 -129", "\xd2\xff\xff\xff\x7f", "\xd1\xff\x7f"},
		{"int64 -32769", "\xd3\xff\xff\xff\xff\xff\xff\x7f\xff", "\xd2\xff\xff\x7f\xff"},
		{"int64 min", num(math.MinInt64), "\xd3\x80\x00\x00\x00\x00\x00\x00\x00"},
		{"float32 stays", f32(1.5), f32(1.5)},
		{"float64 stays", f64(1.5), f64(1.5)},
		{"NaN stays", f64(math.NaN()), f64(math.NaN())},
		{"nil, true, false", arr("\xc0", "\xc3", "\xc2"), arr("\xc0", "\xc3", "\xc2")},
		{"str32", "\xdb\x00\x00\x00\x02ab", "\xa2ab"},
		{"str16 of 31", "\xda\x00\x1f" + long[:31], "\xbf" + long[:31]},
		{"str16 of 32", "\xda\x00\x20" + long[:32], "\xd9\x20" + long[:32]},
		{"str32 of 300", "\xdb\x00\x00\x01\x2c" + long, "\xda\x01\x2c" + long},
		{"bad UTF-8 stays", str("a\xff"), str("a\xff")},
		{"bin32", "\xc6\x00\x00\x00\x02ab", "\xc4\x02ab"},
		{"bin16 of 300", "\xc5\x01\x2c" + long, "\xc5\x01\x2c" + long},
		{"ext8 of 4", "\xc7\x04\x05abcd", "\xd6\x05abcd"},
		{"ext16 of 3", "\xc8\x00\x03\xffabc", "\xc7\x03\xffabc"},
		{"ext8 of 0", "\xc7\x00\x05", "\xc7\x00\x05"},
		{"event time", "\xc7\x08\x00ABCDEFGH", "\xd7\x00ABCDEFGH"},
		{"array32", "\xdd\x00\x00\x00\x01\x01", "\x91\x01"},
		{"array16 of 16", "\xdd\x00\x00\x00\x10" + strings.Repeat("\x01", 16), "\xdc\x00\x10" + strings.Repeat("\x01", 16)},
		{"map32", "\xdf\x00\x00\x00\x01\xd9\x01a\xcc\x01", "\x81\xa1a\x01"},
		{"map16 of 16", "\xdf\x00\x00\x00\x10" + strings.Repeat("\x01\x02", 16), "\xde\x00\x10" + strings.Repeat("\x01\x02", 16)},
		{"deep", strings.Repeat("\xdc\x00\x01", 100_000) + "\x01", strings.Repeat("\x91", 100_000) + "\x01"},
	}
	m := newMsgPack()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := m.AppendValue([]byte("before"), record([]byte("\xde\x00\x02\xa1a"+tt.in+tt.in+"\xd9\x01b")))
			want := "before\x83" + packedTime + "\xa1a" + tt.want + tt.want + "\xa1b"
			if err != nil || string(got) != want {
				t.Errorf("%x, %v; want %x", got, err, want)
			}
		})
	}
}

// Duplicate keys stay, and so does a key like that of the time.
func TestMsgPack_Keys(t *testing.T) {
	body := fields(str("a"), num(1), "\xcd\x00\x01", num(2), str("a"), num(3), str("@timestamp"), num(4), "\xc0", num(5))
	got, err := newMsgPack().AppendValue(nil, record(body))
	want := "\x86" + packedTime + "\xa1a\x01\x01\x02\xa1a\x03\xaa@timestamp\x04\xc0\x05"
	if err != nil || string(got) != want {
		t.Errorf("%x, %v; want %x", got, err, want)
	}
	// The time makes the map one pair longer than the short form has room for.
	body = append(chunktest.Map(nil, 15), strings.Repeat("\xa1k\x01", 15)...)
	if got, err = newMsgPack().AppendValue(nil, record(body)); err != nil || !strings.HasPrefix(string(got), "\xde\x00\x10"+packedTime) {
		t.Errorf("%x, %v", got, err)
	}
}

// Tag and metadata stand behind the time, and a key of the record like theirs stays too.
func TestMsgPack_TagAndMetadata(t *testing.T) {
	metadata := fields(str("m"), arr("\xcd\x00\x01"), str("m"), num(2))
	body := fields(str("tag"), num(1))
	const (
		head = "\xa1t\xcb\x00\x00\x00\x00\x00\x00\x00\x00" // the time
		tag  = "\xa3tag\xa6kube.x"
		meta = "\xa4meta\x82\xa1m\x91\x01\xa1m\x02"
		own  = "\xa3tag\x01"
	)
	for _, tt := range []struct {
		name     string
		config   MsgPackConfig
		metadata []byte
		want     string
	}{
		{"neither", MsgPackConfig{TimestampKey: "t"}, metadata, "\x82" + head + own},
		{"tag", MsgPackConfig{TimestampKey: "t", TagKey: "tag"}, metadata, "\x83" + head + tag + own},
		{"tag, no time", MsgPackConfig{TagKey: "tag"}, metadata, "\x82" + tag + own},
		{"metadata, no time", MsgPackConfig{MetadataKey: "meta"}, metadata, "\x82" + meta + own},
		{"all", MsgPackConfig{TimestampKey: "t", TagKey: "tag", MetadataKey: "meta"}, metadata, "\x84" + head + tag + meta + own},
		{"empty metadata", MsgPackConfig{TagKey: "tag", MetadataKey: "meta"}, fields(), "\x82" + tag + own},
		{"no metadata", MsgPackConfig{MetadataKey: "meta"}, nil, "\x81" + own},
	} {
		m := NewMsgPack(tt.config)
		m.SetTag("another tag")
		m.SetTag("kube.x")
		for range 2 {
			got, err := m.AppendValue([]byte("before"), &chunk.Entry{Body: body, Metadata: tt.metadata})
			if err != nil || string(got) != "before"+tt.want {
				t.Errorf("%s:\n got %x, %v\nwant %x", tt.name, got, err, "before"+tt.want)
			}
		}
	}
	m := NewMsgPack(MsgPackConfig{MetadataKey: "meta"})
	cut := metadata[: len(metadata)-1 : len(metadata)-1]
	if got, err := m.AppendValue([]byte("before"), &chunk.Entry{Body: body, Metadata: cut}); !errors.Is(err, chunk.ErrTruncated) || string(got) != "before" {
		t.Errorf("cut metadata: %x, %v; want ErrTruncated", got, err)
	}
}

func TestMsgPack_Malformed(t *testing.T) {
	whole := fields(str("a"), arr(num(1000), f64(1), f32(1), "\x80", ext(5, "xy")), strings.Repeat("\xdc\x00\x01", 3)+"\x01", bin("b"))
	for n := range whole {
		if got, err := newMsgPack().AppendValue([]byte("before"), record(whole[:n:n])); err == nil || string(got) != "before" {
			t.Errorf("first %d bytes: %x, %v; want an error", n, got, err)
		}
	}
	for in, want := range map[string]error{
		"\x90": errNotMap, "\x80\x80": errTrailing, "\x81\xa1a\xc1": chunk.ErrReserved,
		"\x81\xa1a" + strings.Repeat("\xdd\xff\xff\xff\xff", 10): chunk.ErrTruncated,
	} {
		if got, err := newMsgPack().AppendValue([]byte("before"), record([]byte(in))); !errors.Is(err, want) || string(got) != "before" {
			t.Errorf("%x: %x, %v; want %v", in, got, err, want)
		}
	}
}

// A library of other people reads what is written, and gets what the record has.
func TestMsgPack_Library(t *testing.T) {
	w := chunk.NewWalker(append(chunk2K(3), chunk300(3)...))
	var e chunk.Entry
	for w.Next(&e) {
		value, err := newMsgPack().AppendValue(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		got, want := readLibrary(t, value), readLibrary(t, e.Body)
		want["@timestamp"] = float64(e.Sec) + float64(e.Nsec)/1e9
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	}
}

func readLibrary(t *testing.T, packed []byte) map[string]any {
	t.Helper()
	h := codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeFor[map[string]any]()
	d := codec.NewDecoderBytes(packed, &h)
	var m map[string]any
	if err := d.Decode(&m); err != nil || d.NumBytesRead() != len(packed) {
		t.Fatalf("%x: %d bytes read, %v", packed, d.NumBytesRead(), err)
	}
	return m
}

// FuzzMsgPack feeds any bytes as a body: an error for all that is not one whole map, else
// the same values as before, in a form that is its own.
func FuzzMsgPack(f *testing.F) {
	for _, s := range []string{"\x80", "\x81\xa1a", "\xdf\xff\xff\xff\xff", "\x81\xd9\x01a\xdc\x00\x01\xcc\x01", "\x81\xc0\xc7\x01\x05a"} {
		f.Add([]byte(s))
	}
	f.Add(oddChunk()[18:200])
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:len(in):len(in)]
		end, skipErr := chunk.Skip(in, 0)
		h, _ := chunk.ReadHead(in, 0)
		whole := skipErr == nil && end == len(in) && h.Type == chunk.Map
		plain := NewMsgPack(MsgPackConfig{})
		got, err := plain.AppendValue(nil, record(in))
		if whole != (err == nil) {
			t.Fatalf("body %x, whole: %v: %v", in, whole, err)
		}
		if !whole || len(in) > maxOracleBytes || depth(in) > 1000 {
			return
		}
		again, err := plain.AppendValue(nil, record(got))
		if err != nil || string(again) != string(got) || len(got) > len(in) {
			t.Fatalf("body %x: %x, and that gives %x, %v", in, got, again, err)
		}
		was, _ := readNode(in)
		is, rest := readNode(got)
		if oracleValue(was) != oracleValue(is) || len(rest) != 0 {
			t.Fatalf("body %x: %x has other values", in, got)
		}
	})
}

// depth counts the heads of arrays and maps, which is more than their depth: the oracles
// recurse.
func depth(b []byte) (n int) {
	for _, c := range b {
		if c >= 0x80 && c < 0xa0 || c >= 0xdc && c <= 0xdf {
			n++
		}
	}
	return n
}

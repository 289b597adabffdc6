package format

import (
	"testing"

	"out_kafka_reconnect/plugin/chunk"
)

// No format allocates for a record, however much the records differ.
func TestEncoders_Allocations(t *testing.T) {
	config := gelfConfig
	config.ShortMessageKey = "message"
	for name, tt := range map[string]struct {
		enc Encoder
		in  []byte
	}{
		"escaping JSON":        {NewJSON(JSONConfig{TimestampKey: "@timestamp", EscapeUnicode: true}), oddChunk()},
		"MessagePack":          {NewMsgPack(MsgPackConfig{TimestampKey: "@timestamp", TimestampFormat: TimestampISO8601NS}), oddChunk()},
		"GELF":                 {NewGELF(config), chunk300(100)},
		"raw":                  {NewRaw("message"), chunk300(100)},
		"Avro":                 {NewAvro(AvroConfig{Schema: parseAvro(t, schema300)}), chunk300(100)},
		"JSON with tag":        {NewJSON(JSONConfig{TagKey: "tag", MetadataKey: "meta"}), oddChunk()},
		"MessagePack with tag": {NewMsgPack(MsgPackConfig{TagKey: "tag", MetadataKey: "meta"}), oddChunk()},
	} {
		w := chunk.NewWalker(nil)
		var e chunk.Entry
		var dst []byte
		n := testing.AllocsPerRun(10, func() {
			w.Reset(tt.in)
			dst = dst[:0]
			for w.Next(&e) {
				var err error
				if dst, err = tt.enc.AppendValue(dst, &e); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations for a chunk; want none", name, n)
		}
	}
}

// Nor does one with many records in a message, once it knows the size of a chunk.
func TestBundlers_Allocations(t *testing.T) {
	for name, in := range map[string][]byte{"odd": oddChunk(), "300 bytes": chunk300(100)} {
		for _, json := range []bool{false, true} {
			o := NewOTLP(OTLPConfig{JSON: json, MaxBytes: 10000})
			w := chunk.NewWalker(nil)
			var e chunk.Entry
			var dst []byte
			n := testing.AllocsPerRun(10, func() {
				w.Reset(in)
				dst = dst[:0]
				o.Begin()
				for w.Next(&e) {
					_ = o.Add(&e)
				}
				for ok := true; ok; {
					dst, _, ok = o.AppendMessage(dst)
				}
			})
			if n > 2 { // the names of the resource and the scope
				t.Errorf("%s, JSON %v: %v allocations for a chunk; want two", name, json, n)
			}
		}
	}
}

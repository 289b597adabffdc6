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
		"Avro":                 {NewAvro(parseAvro(t, schema300)), chunk300(100)},
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

package format

import (
	"errors"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/chunk"
)

func TestJSON_TagAndMetadata(t *testing.T) {
	metadata := fields(str("a"), num(1), str("b"), arr(str("x"), string(fields())), str("a"), num(2))
	for _, tt := range []struct {
		name            string
		tagKey, metaKey string
		body, metadata  []byte
		want            string
	}{
		{"neither", "", "", fields(str("a"), num(1)), metadata, `{"t":0.0,"a":1}`},
		{"tag", "tag", "", fields(str("a"), num(1)), metadata, `{"t":0.0,"tag":"kube.\"x\"","a":1}`},
		{"metadata", "", "meta", fields(str("a"), num(1)), metadata, `{"t":0.0,"meta":{"b":["x",{}],"a":2},"a":1}`},
		{"both", "tag", "meta", fields(str("a"), num(1)), metadata, `{"t":0.0,"tag":"kube.\"x\"","meta":{"b":["x",{}],"a":2},"a":1}`},
		{"empty record", "tag", "meta", fields(), metadata, `{"t":0.0,"tag":"kube.\"x\"","meta":{"b":["x",{}],"a":2}}`},
		{"empty metadata", "tag", "meta", fields(str("a"), num(1)), fields(), `{"t":0.0,"tag":"kube.\"x\"","a":1}`},
		{"no metadata", "", "meta", fields(str("a"), num(1)), nil, `{"t":0.0,"a":1}`},
		{"odd keys", "\"", "é\n", fields(), metadata, `{"t":0.0,"\"":"kube.\"x\"","é\n":{"b":["x",{}],"a":2}}`},
		{
			"the record has the tag", "tag", "meta", fields(str("a"), num(1), str("tag"), str("own")), metadata,
			`{"t":0.0,"meta":{"b":["x",{}],"a":2},"a":1,"tag":"own"}`,
		},
		{"the record has the metadata", "tag", "meta", fields(str("meta"), num(1)), metadata, `{"t":0.0,"tag":"kube.\"x\"","meta":1}`},
		{
			"the record has all", "tag", "meta", fields(str("meta"), num(1), str("tag"), num(2), str("t"), num(3), str("z"), num(4)), metadata,
			`{"meta":1,"tag":2,"t":3,"z":4}`,
		},
		{"the record has the tag twice", "tag", "", fields(str("tag"), num(1), str("tag"), num(2)), nil, `{"t":0.0,"tag":2}`},
	} {
		j := NewJSON(JSONConfig{TimestampKey: "t", TagKey: tt.tagKey, MetadataKey: tt.metaKey})
		j.SetTag("other")
		j.SetTag(`kube."x"`)
		for range 2 {
			got, err := j.AppendValue([]byte("before"), &chunk.Entry{Body: tt.body, Metadata: tt.metadata})
			if err != nil || string(got) != "before"+tt.want {
				t.Errorf("%s:\n got %s, %v\nwant %s", tt.name, got, err, tt.want)
			}
		}
	}
}

// Without the time, tag and metadata are the first fields, in front of those of the record.
func TestJSON_TagAndMetadataWithoutTime(t *testing.T) {
	metadata := fields(str("m"), num(1))
	for _, tt := range []struct {
		name            string
		tagKey, metaKey string
		body, metadata  []byte
		want            string
	}{
		{"tag", "tag", "", fields(str("a"), num(1)), metadata, `{"tag":"x","a":1}`},
		{"metadata", "", "meta", fields(str("a"), num(1)), metadata, `{"meta":{"m":1},"a":1}`},
		{"both", "tag", "meta", fields(str("a"), num(1)), metadata, `{"tag":"x","meta":{"m":1},"a":1}`},
		{"empty record", "tag", "meta", fields(), metadata, `{"tag":"x","meta":{"m":1}}`},
		{"no metadata", "", "meta", fields(str("a"), num(1)), nil, `{"a":1}`},
		{"nothing at all", "", "meta", fields(), nil, `{}`},
		{"the record has the tag", "tag", "meta", fields(str("tag"), num(1)), metadata, `{"meta":{"m":1},"tag":1}`},
		{"the record has both", "tag", "meta", fields(str("meta"), num(1), str("tag"), num(2), str("t"), num(3)), metadata, `{"meta":1,"tag":2,"t":3}`},
		{"the record has the metadata only", "", "meta", fields(str("meta"), num(1)), metadata, `{"meta":1}`},
		{"the record has a key twice", "tag", "", fields(str("a"), num(1), str("a"), num(2)), nil, `{"tag":"x","a":2}`},
		{"twice, and no metadata", "", "meta", fields(str("a"), num(1), str("a"), num(2)), nil, `{"a":2}`},
	} {
		j := NewJSON(JSONConfig{TagKey: tt.tagKey, MetadataKey: tt.metaKey})
		j.SetTag("x")
		for range 2 {
			got, err := j.AppendValue([]byte("before"), &chunk.Entry{Body: tt.body, Metadata: tt.metadata})
			if err != nil || string(got) != "before"+tt.want {
				t.Errorf("%s:\n got %s, %v\nwant %s", tt.name, got, err, tt.want)
			}
		}
	}
}

// Tag and metadata are written in the style of the other texts. Metadata belongs to its record,
// and can make it fail; the tag does not.
func TestJSON_TagAndMetadataStyle(t *testing.T) {
	good, bad := fields(str("m"), str("é")), fields(str("m"), str("\xff"))
	for _, tt := range []struct {
		name     string
		style    JSONConfig
		metadata []byte
		want     string // empty: refused
	}{
		{"escaped", JSONConfig{EscapeUnicode: true}, good, `{"té":"é\ufffd","mé":{"m":"é"},"a":1}`},
		{"replaced", JSONConfig{}, bad, `{"té":"é\ufffd","mé":{"m":"\ufffd"},"a":1}`},
		{"removed", JSONConfig{InvalidUTF8: InvalidRemove}, bad, `{"té":"é","mé":{"m":""},"a":1}`},
		{"refused", JSONConfig{InvalidUTF8: InvalidRefuse}, bad, ""},
		{"nothing to refuse", JSONConfig{InvalidUTF8: InvalidRefuse}, good, `{"té":"é\ufffd","mé":{"m":"é"},"a":1}`},
	} {
		tt.style.TagKey, tt.style.MetadataKey = "té", "mé"
		want := strings.ReplaceAll(tt.want, `\ufffd`, "\uFFFD")
		if tt.style.EscapeUnicode {
			want = strings.ReplaceAll(tt.want, "é", `\u00e9`)
		}
		j := NewJSON(tt.style)
		j.SetTag("é\xff")
		for range 2 {
			got, err := j.AppendValue(nil, &chunk.Entry{Body: fields(str("a"), num(1)), Metadata: tt.metadata})
			if string(got) != want || errors.Is(err, ErrInvalidUTF8) != (want == "") {
				t.Errorf("%s:\n got %s, %v\nwant %s", tt.name, got, err, want)
			}
		}
	}
}

// Metadata that no reader could read is not written, and neither is its record.
func TestJSON_MetadataTooDeep(t *testing.T) {
	deep := append(fields(str("a"), ""), strings.Repeat("\x91", maxDepth)+"\x01"...)
	j := NewJSON(JSONConfig{TimestampKey: "t", TagKey: "tag", MetadataKey: "meta"})
	got, err := j.AppendValue([]byte("before"), &chunk.Entry{Body: fields(str("a"), num(1)), Metadata: deep})
	if !errors.Is(err, ErrTooDeep) || string(got) != "before" {
		t.Errorf("%.40s…, %v; want ErrTooDeep and nothing written", got, err)
	}
	if got, err = j.AppendValue(nil, &chunk.Entry{Body: fields(str("a"), num(1))}); err != nil || string(got) != `{"t":0.0,"tag":,"a":1}` && string(got) != `{"t":0.0,"tag":"","a":1}` {
		t.Errorf("the next record: %s, %v", got, err)
	}
}

func TestJSON_OwnFieldsAllocations(t *testing.T) {
	j := NewJSON(JSONConfig{TimestampKey: "t", TagKey: "tag", MetadataKey: "meta"})
	e := &chunk.Entry{Body: fields(str("a"), num(1), str("tag"), num(2)), Metadata: fields(str("x"), str("y"))}
	var buf []byte
	n := testing.AllocsPerRun(10, func() {
		j.SetTag("kube.x")
		var err error
		if buf, err = j.AppendValue(buf[:0], e); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}

package format

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"out_kafka_reconnect/plugin/chunk"
)

// ErrOTLPMessage says that what Fluent Bit has written as OTLP is none, or one that readers refuse: a text in
// it that is not UTF-8, for example.
var ErrOTLPMessage = errors.New("format: what Fluent Bit makes of it is no valid message of OTLP")

// OTLPSignals puts messages of metrics or traces together from smaller ones in protobuf, which
// Fluent Bit has written: MetricsData or TracesData, which is what an export request looks like
// too. It does not look into them but for writing them as JSON: all of them have the resources in
// one repeated field, and a message ends between two resources.
type OTLPSignals struct {
	json     *otlpJSON // nil: protobuf
	maxBytes int
	signal   chunk.Signal

	pieces []byte
	items  []span // of pieces: the resources, with what belongs to them
	next   int    // item of the next message
}

// otlpItems is the field with the resources. It has the same number in all messages.
var otlpItems = map[chunk.Signal]otlpField{
	chunk.Metrics: {"resourceMetrics", 1},
	chunk.Traces:  {"resourceSpans", 1},
}

// otlpEnvelope is more than what a message has around its items in JSON.
const otlpEnvelope = 32

// NewOTLPSignals returns an encoder. ByResource is without effect.
func NewOTLPSignals(c OTLPConfig) *OTLPSignals {
	s := &OTLPSignals{maxBytes: c.MaxBytes}
	if c.JSON {
		s.json = &otlpJSON{style: &textStyle{}}
		s.maxBytes -= otlpEnvelope
	}
	return s
}

// Begin forgets the chunk before, and takes a chunk of metrics or of traces.
func (s *OTLPSignals) Begin(signal chunk.Signal) {
	s.signal, s.pieces, s.items, s.next = signal, s.pieces[:0], s.items[:0], 0
}

// Add takes the resources of a message. It fails with [ErrOTLPMessage], and takes none of them then.
func (s *OTLPSignals) Add(message []byte) error {
	pieces, items := len(s.pieces), len(s.items)
	for len(message) > 0 {
		number, typ, tag := protowire.ConsumeTag(message)
		n := protowire.ConsumeFieldValue(number, typ, message[max(tag, 0):])
		if tag < 0 || n < 0 {
			return s.forget(pieces, items)
		}
		field := message[:tag+n]
		if number == otlpItems[s.signal].number && typ == protowire.BytesType {
			if !s.addItem(field, tag) {
				return s.forget(pieces, items)
			}
		}
		message = message[len(field):]
	}
	return nil
}

// forget takes back what was added of a message.
func (s *OTLPSignals) forget(pieces, items int) error {
	s.pieces, s.items = s.pieces[:pieces], s.items[:items]
	return ErrOTLPMessage
}

// addItem takes one resource; its length and its bytes are behind the tag of the field.
func (s *OTLPSignals) addItem(field []byte, tag int) bool {
	start := len(s.pieces)
	if s.json == nil {
		s.pieces = append(s.pieces, field...)
	} else {
		m := s.newItem()
		value, _ := protowire.ConsumeBytes(field[tag:])
		if proto.Unmarshal(value, m) != nil {
			return false
		}
		s.pieces = s.json.message(s.pieces, m.ProtoReflect())
	}
	s.items = append(s.items, span{start, len(s.pieces)})
	return true
}

func (s *OTLPSignals) newItem() proto.Message {
	if s.signal == chunk.Metrics {
		return &metrics.ResourceMetrics{}
	}
	return &trace.ResourceSpans{}
}

// AppendMessage appends the value of the next message to dst. After the last one there is none. There is never a
// key; it is for the likeness with [Bundler].
func (s *OTLPSignals) AppendMessage(dst []byte) (out, key []byte, ok bool) {
	rest := s.items[s.next:]
	if len(rest) == 0 {
		return dst, nil, false
	}
	n, room := 1, s.maxBytes-rest[0].size()
	for n < len(rest) && rest[n].size() <= room {
		room -= rest[n].size()
		n++
	}
	s.next += n
	all := s.pieces[rest[0].from:rest[n-1].to] // they lie in a row
	if s.json == nil {
		return append(dst, all...), nil, true
	}
	dst = s.json.openList(s.json.begin(dst), otlpItems[s.signal])
	return s.json.end(s.json.closeList(append(dst, all...))), nil, true
}

// otlpHexFields are the fields whose bytes are in hex in OTLP.
var otlpHexFields = map[protoreflect.Name]bool{"trace_id": true, "span_id": true, "parent_span_id": true}

// message writes any message. Package protojson does not know the rules of OTLP for ids.
func (j otlpJSON) message(dst []byte, m protoreflect.Message) []byte {
	dst = append(dst, '{')
	at := len(dst)
	for fields, i := m.Descriptor().Fields(), 0; i < fields.Len(); i++ {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		f, v := otlpField{name: field.JSONName()}, m.Get(field)
		if !field.IsList() {
			dst = j.value(j.name(dst, f), field, v)
			continue
		}
		dst = j.openList(dst, f)
		for list, n := v.List(), 0; n < list.Len(); n++ {
			dst = j.value(dst, field, list.Get(n))
		}
		dst = j.closeList(dst)
	}
	return j.close(dst, at)
}

// value writes one value of a field.
func (j otlpJSON) value(dst []byte, field protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return j.message(dst, v.Message())
	case protoreflect.StringKind:
		text := v.String()
		return append(appendText(dst, []byte(text), 0, len(text), j.style), ',')
	case protoreflect.BytesKind:
		dst = append(dst, '"')
		if otlpHexFields[field.Name()] {
			dst = hex.AppendEncode(dst, v.Bytes())
		} else {
			dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		}
		return append(dst, `",`...)
	case protoreflect.BoolKind:
		return append(strconv.AppendBool(dst, v.Bool()), ',')
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return append(appendOTLPFloat(dst, v.Float()), ',')
	case protoreflect.EnumKind:
		return append(strconv.AppendInt(dst, int64(v.Enum()), 10), ',')
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return append(strconv.AppendInt(dst, v.Int(), 10), ',')
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return append(strconv.AppendUint(dst, v.Uint(), 10), ',')
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return append(strconv.AppendInt(append(dst, '"'), v.Int(), 10), `",`...)
	default: // Uint64Kind and Fixed64Kind are left
		return append(strconv.AppendUint(append(dst, '"'), v.Uint(), 10), `",`...)
	}
}

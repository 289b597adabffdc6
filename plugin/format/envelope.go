package format

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"out_kafka_reconnect/plugin/accessor"
	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/reconnect"
)

// EnvelopeConfig is what an [Envelope] is made of. Empty texts are not used.
type EnvelopeConfig struct {
	// TopicField points to the value that picks the topic, as RouterConfig.TopicKey does.
	TopicField string
	// TopicTemplate makes the name of the topic, in place of TopicField.
	TopicTemplate string
	// KeyField points to the value that is the message key.
	KeyField string
	// KeyTemplate makes the message key, in place of KeyField.
	KeyTemplate string
	// PartitionField points to the number of the partition.
	PartitionField string
	// Headers are on every message; their values are templates.
	Headers []HeaderConfig
	// HeadersField points to a map whose entries become headers.
	HeadersField string
}

// HeaderConfig is one header.
type HeaderConfig struct{ Name, Value string }

// topicLife is how often a router whose names have a date in them forgets those that were
// not met since the time before.
const topicLife = 24 * time.Hour

// Envelope makes what goes with the value of a message and is more than [Router] can: topic
// and key from values at any depth or from templates, the partition, and headers. For each
// chunk Begin comes first, for each record Read, then the others in any order, and End at the
// end of the chunk. It is used by one goroutine at a time, and what it hands out is valid until
// the next record.
type Envelope struct {
	router *Router
	fields accessor.Fields
	record *chunk.Entry
	ageAt  time.Time // the next time that the router forgets; zero before the first chunk

	topic, key     *template // nil: not made here
	topicGap       bool      // a gap in the topic is worth telling
	keyGap         bool      // the same for the key
	topicBuf       []byte
	keyBuf         []byte
	partition      accessor.Ref
	headersField   accessor.Ref
	headers        []header
	hasPartition   bool
	hasHeaderField bool
	// json writes the values of headers that are arrays or maps.
	json    *JSON
	jsonBuf []byte
}

type header struct {
	name  string
	value *template
}

// NewEnvelope returns an envelope whose topics the router judges, or nil if c asks for
// nothing. The error says which text can't be understood.
func NewEnvelope(c EnvelopeConfig, r *Router) (*Envelope, error) {
	v := &Envelope{router: r, topicGap: c.TopicTemplate != "", keyGap: c.KeyTemplate != "", json: NewJSON(JSONConfig{})}
	v.jsonBuf = []byte{} // nil would be a null header
	var err error
	if v.topic, err = v.parse("topic", c.TopicField, c.TopicTemplate); err != nil {
		return nil, err
	}
	if v.key, err = v.parse("key", c.KeyField, c.KeyTemplate); err != nil {
		return nil, err
	}
	if v.partition, v.hasPartition, err = v.add("partition", c.PartitionField); err != nil {
		return nil, err
	}
	if v.headersField, v.hasHeaderField, err = v.add("headers", c.HeadersField); err != nil {
		return nil, err
	}
	for _, h := range c.Headers {
		t, err := accessor.ParseTemplate(h.Value)
		if err != nil {
			return nil, fmt.Errorf("format: header %s: %q %w", h.Name, h.Value, err)
		}
		v.headers = append(v.headers, header{h.Name, newTemplate(t, &v.fields)})
	}
	if v.topic == nil && v.key == nil && !v.hasPartition && !v.hasHeaderField && len(v.headers) == 0 {
		return nil, nil
	}
	return v, nil
}

// parse makes a template of one of two texts; nil if both are empty.
func (v *Envelope) parse(what, field, text string) (*template, error) {
	switch {
	case text != "":
		t, err := accessor.ParseTemplate(text)
		if err != nil {
			return nil, fmt.Errorf("format: template of the %s: %q %w", what, text, err)
		}
		return newTemplate(t, &v.fields), nil
	case field != "":
		p, err := accessor.ParseField(field)
		if err != nil {
			return nil, fmt.Errorf("format: field of the %s: %q %w", what, field, err)
		}
		return newTemplate(accessor.Template{{Kind: accessor.Field, Path: p}}, &v.fields), nil
	}
	return nil, nil
}

// add makes a field known; false if there is no text.
func (v *Envelope) add(what, field string) (accessor.Ref, bool, error) {
	if field == "" {
		return 0, false, nil
	}
	p, err := accessor.ParseField(field)
	if err != nil {
		return 0, false, fmt.Errorf("format: field of the %s: %q %w", what, field, err)
	}
	return v.fields.Add(p), true, nil
}

// Begin prepares for the records of a chunk.
func (v *Envelope) Begin(tag string, now time.Time) {
	for _, t := range []*template{v.topic, v.key} {
		if t != nil {
			t.begin(tag)
		}
	}
	for _, h := range v.headers {
		h.value.begin(tag)
	}
	if v.topic == nil || !v.topic.hasDate {
		return
	}
	if !v.ageAt.IsZero() && now.Before(v.ageAt) {
		return
	}
	if !v.ageAt.IsZero() {
		v.router.age()
	}
	v.ageAt = now.Add(topicLife)
}

// End lets go of the chunk.
func (v *Envelope) End() {
	v.record = nil
	v.fields.Forget()
}

// Read looks at a record. An error says that it is none that a [chunk.Walker] gives.
func (v *Envelope) Read(e *chunk.Entry) error {
	v.record = e
	return v.fields.Read(e)
}

// Address puts topic and key into a route that the router has filled in.
func (v *Envelope) Address(out *Route) {
	if v.topic != nil {
		var ok bool
		v.topicBuf, ok = v.topic.append(v.topicBuf[:0], v.record.Sec, &v.fields)
		switch {
		case ok && len(v.topicBuf) > 0:
			v.router.pickTopic(v.topicBuf, out)
		case v.topicGap:
			out.Refusal = RefusedGap
		}
	}
	if v.key != nil {
		var ok bool
		v.keyBuf, ok = v.key.append(v.keyBuf[:0], v.record.Sec, &v.fields)
		if ok {
			out.Key, out.HasKey = v.keyBuf, true
		}
		out.KeyGap = !ok && v.keyGap
	}
}

// Partition returns the partition that the record names, or [reconnect.PartitionAny] if it
// names none. It is false for a value that can be none.
func (v *Envelope) Partition() (int32, bool) {
	if !v.hasPartition {
		return reconnect.PartitionAny, true
	}
	b, pos, ok := v.fields.Value(v.partition)
	if !ok {
		return reconnect.PartitionAny, true
	}
	h, p := chunk.ReadHead(b, pos)
	n := int64(-1)
	switch h.Type {
	case chunk.Nil:
		return reconnect.PartitionAny, true
	case chunk.Uint:
		n = int64(min(h.N, math.MaxInt64))
	case chunk.Float: // as Lua leaves a whole number
		if f := h.Float(); f == math.Trunc(f) && f >= 0 && f <= math.MaxInt32 {
			n = int64(f)
		}
	case chunk.Str:
		n = decimal(b[p : p+int(h.N)])
	default: // no number
	}
	if n < 0 || n > math.MaxInt32 {
		return reconnect.PartitionAny, false
	}
	return int32(n), true
}

// decimal reads a number of digits only, -1 if it is none.
func decimal(text []byte) int64 {
	if len(text) == 0 || len(text) > 10 || text[0] == '+' || text[0] == '-' {
		return -1
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// AppendHeaders appends the headers of the message as [reconnect.AppendHeader] writes them. A
// header whose template has a gap that the record does not fill is left out.
func (v *Envelope) AppendHeaders(dst []byte) []byte {
	for i := range v.headers {
		h := &v.headers[i]
		if ref, ok := h.value.field(); ok {
			b, pos, ok := v.fields.Value(ref)
			if ok {
				dst = appendHeader(v, dst, h.name, b, pos, false)
			}
			continue
		}
		var ok bool
		if v.jsonBuf, ok = h.value.append(v.jsonBuf[:0], v.record.Sec, &v.fields); ok {
			dst = reconnect.AppendHeader(dst, h.name, v.jsonBuf)
		}
	}
	if !v.hasHeaderField {
		return dst
	}
	if b, pos, ok := v.fields.Value(v.headersField); ok {
		accessor.Pairs(b, pos, func(name []byte, value int) {
			dst = appendHeader(v, dst, name, b, value, true)
		})
	}
	return dst
}

// appendHeader appends a header with the value at b[pos:]: text and bin as they are, all
// others as in JSON, without the quotes of a text. Null is a null value, or no header.
func appendHeader[N ~string | ~[]byte](v *Envelope, dst []byte, name N, b []byte, pos int, null bool) []byte {
	h, p := chunk.ReadHead(b, pos)
	switch h.Type {
	case chunk.Str, chunk.Bin:
		return reconnect.AppendHeader(dst, name, b[p:p+int(h.N):p+int(h.N)])
	case chunk.Nil:
		if !null {
			return dst
		}
		return reconnect.AppendHeader(dst, name, nil)
	default: // JSON
	}
	text, err := v.json.appendAny(v.jsonBuf[:0], b, pos)
	if err != nil { // too deep for the value as well, which tells of it
		return dst
	}
	v.jsonBuf = text
	if h.Type == chunk.Ext && len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1] // an event time: its text needs no escapes
	}
	return reconnect.AppendHeader(dst, name, text)
}

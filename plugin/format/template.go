package format

import (
	"math"
	"time"

	"out_kafka_reconnect/plugin/accessor"
	"out_kafka_reconnect/plugin/chunk"
)

// template is a text with gaps, ready to be filled in for one record after the other.
type template struct {
	segments []segment
	hasDate  bool
}

// segment is a piece of a template that changes at the same time: with the chunk, with the
// second, or with the record.
type segment struct {
	kind  segmentKind
	text  []byte          // what was appended last; not used for a field
	ok    bool            // text is valid; false for a part that the tag has not
	index int             // of a tag part
	date  []accessor.Part // literals and elements of the date
	sec   int64           // that text was made for
	field accessor.Ref
}

type segmentKind uint8

const (
	segmentText segmentKind = iota
	segmentTag
	segmentTagPart
	segmentDate
	segmentField
)

// newTemplate prepares a template whose fields are looked up with fields.
func newTemplate(t accessor.Template, fields *accessor.Fields) *template {
	out := &template{hasDate: t.HasDate()}
	for _, p := range t {
		switch p.Kind {
		case accessor.Tag:
			out.segments = append(out.segments, segment{kind: segmentTag})
		case accessor.TagPart:
			out.segments = append(out.segments, segment{kind: segmentTagPart, index: p.Index})
		case accessor.Field:
			out.segments = append(out.segments, segment{kind: segmentField, field: fields.Add(p.Path)})
		case accessor.Date:
			out.addDate(p)
		default:
			out.addText(p)
		}
	}
	return out
}

// addText adds a literal, to a date if one stands before it.
func (t *template) addText(p accessor.Part) {
	if n := len(t.segments); n > 0 && t.segments[n-1].kind == segmentDate {
		t.segments[n-1].date = append(t.segments[n-1].date, p)
		return
	}
	t.segments = append(t.segments, segment{kind: segmentText, text: []byte(p.Text), ok: true})
}

// addDate adds an element of the date, to the one before it if there is one.
func (t *template) addDate(p accessor.Part) {
	if n := len(t.segments); n > 0 && t.segments[n-1].kind == segmentDate {
		t.segments[n-1].date = append(t.segments[n-1].date, p)
		return
	}
	t.segments = append(t.segments, segment{kind: segmentDate, date: []accessor.Part{p}})
}

// begin fills in what depends on the tag.
func (t *template) begin(tag string) {
	for i := range t.segments {
		s := &t.segments[i]
		switch s.kind {
		case segmentTag:
			s.text, s.ok = append(s.text[:0], tag...), true
		case segmentTagPart:
			part, ok := accessor.TagAt(tag, s.index)
			s.text, s.ok = append(s.text[:0], part...), ok
		default: // does not depend on it
		}
	}
}

// append appends the text for a record that fields has read. It is false if the record or its
// tag has no text for one of the gaps; what was appended then means nothing.
func (t *template) append(dst []byte, sec int64, fields *accessor.Fields) ([]byte, bool) {
	for i := range t.segments {
		s := &t.segments[i]
		switch s.kind {
		case segmentField:
			b, pos, ok := fields.Value(s.field)
			if !ok {
				return dst, false
			}
			if dst, ok = appendPlain(dst, b, pos); !ok {
				return dst, false
			}
			continue
		case segmentDate:
			if !s.ok || s.sec != sec {
				s.setDate(sec)
			}
		default:
			if !s.ok {
				return dst, false
			}
		}
		dst = append(dst, s.text...)
	}
	return dst, true
}

func (s *segment) setDate(sec int64) {
	at := time.Unix(sec, 0).UTC()
	s.text, s.sec, s.ok = s.text[:0], sec, true
	for i := range s.date {
		if p := &s.date[i]; p.Kind == accessor.Literal {
			s.text = append(s.text, p.Text...)
		} else {
			s.text = p.AppendDate(s.text, at)
		}
	}
}

// field returns the only gap of a template that is nothing but a field.
func (t *template) field() (accessor.Ref, bool) {
	if len(t.segments) == 1 && t.segments[0].kind == segmentField {
		return t.segments[0].field, true
	}
	return 0, false
}

// appendPlain appends the text of a value: text and bin as they are, numbers and booleans as
// in JSON. Other values have none.
func appendPlain(dst, b []byte, pos int) ([]byte, bool) {
	h, p := chunk.ReadHead(b, pos)
	switch h.Type {
	case chunk.Str, chunk.Bin:
		return append(dst, b[p:p+int(h.N)]...), true
	case chunk.Float:
		if f := h.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return dst, false
		}
	case chunk.Bool, chunk.Uint, chunk.Int:
	default:
		return dst, false
	}
	dst, _ = appendScalar(dst, b, p, h)
	return dst, true
}

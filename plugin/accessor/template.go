package accessor

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// PartKind says what a [Part] stands for.
type PartKind uint8

const (
	// Literal is text.
	Literal PartKind = iota
	// Tag is the whole tag.
	Tag
	// TagPart is one of the parts of the tag, which dots separate; the first is 0.
	TagPart
	// Date is one element of the record's time in UTC.
	Date
	// Field is a value of the record.
	Field
)

// Part is a piece of a [Template].
type Part struct {
	Path  Path   // of a Field
	Text  string // of a Literal
	Index int    // of a TagPart
	Kind  PartKind
	date  byte // the letter of a Date
}

// Template is a text with gaps.
type Template []Part

// ParseTemplate reads a template: text with $TAG, $TAG[n], paths as [ParsePath] takes them, and %Y and its like. $$ and
// %% stand for the signs themselves. The error continues the sentence `option: "text" …`.
func ParseTemplate(text string) (Template, error) {
	var t Template
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t = append(t, Part{Kind: Literal, Text: literal.String()})
			literal.Reset()
		}
	}
	for s := (scanner{text: text}); s.pos < len(text); {
		c := text[s.pos]
		s.pos++
		if c != '$' && c != '%' || s.skip(c) {
			literal.WriteByte(c)
			continue
		}
		flush()
		read := s.gap
		if c == '%' {
			read = s.directive
		}
		part, err := read()
		if err != nil {
			return nil, err
		}
		t = append(t, part)
	}
	flush()
	return t, nil
}

// gap takes what stands behind a "$". The tag is known by how the name begins, as in Fluent
// Bit: $TAG_x is the tag and "_x".
func (s *scanner) gap() (Part, error) {
	if strings.HasPrefix(s.rest(), tagName) {
		s.pos += len(tagName)
		if !s.skip('[') {
			return Part{Kind: Tag}, nil
		}
		n, err := s.index()
		if err == nil && !s.skip(']') {
			err = fmt.Errorf("has no ] behind %q", s.text[:s.pos])
		}
		return Part{Kind: TagPart, Index: n}, err
	}
	from := s.pos
	path, err := s.path()
	if err == nil && s.text[s.pos-1] == '_' {
		name := s.text[from:s.pos]
		err = fmt.Errorf("has the name %q, which ends in \"_\"; write $['%s']_ or $['%s'] to tell which is meant",
			name, strings.TrimRight(name, "_"), name)
	}
	return Part{Kind: Field, Path: path}, err
}

// directives are the letters behind a "%", as strftime has them.
const directives = "YymdjHMSGVFs"

// directive takes the letter behind a "%".
func (s *scanner) directive() (Part, error) {
	if s.pos == len(s.text) || strings.IndexByte(directives, s.text[s.pos]) < 0 {
		return Part{}, errors.New(`has a "%" that begins no date; allowed behind it: ` +
			strings.Join(strings.Split(directives, ""), ", ") + " and %")
	}
	s.pos++
	return Part{Kind: Date, date: s.text[s.pos-1]}, nil
}

// AppendDate appends what a Date stands for.
func (p *Part) AppendDate(dst []byte, t time.Time) []byte {
	switch p.date {
	case 'Y':
		return digits(dst, t.Year(), 4)
	case 'y':
		return digits(dst, t.Year()%100, 2)
	case 'm':
		return digits(dst, int(t.Month()), 2)
	case 'd':
		return digits(dst, t.Day(), 2)
	case 'j':
		return digits(dst, t.YearDay(), 3)
	case 'H':
		return digits(dst, t.Hour(), 2)
	case 'M':
		return digits(dst, t.Minute(), 2)
	case 'S':
		return digits(dst, t.Second(), 2)
	case 'G':
		year, _ := t.ISOWeek()
		return digits(dst, year, 4)
	case 'V':
		_, week := t.ISOWeek()
		return digits(dst, week, 2)
	case 's':
		return digits(dst, int(t.Unix()), 1)
	default: // F
		return t.AppendFormat(dst, time.DateOnly)
	}
}

// digits appends n, which is not negative, with zeros in front up to a width.
func digits(dst []byte, n, width int) []byte {
	return fmt.Appendf(dst, "%0*d", width, n)
}

// HasDate tells whether the text depends on the time.
func (t Template) HasDate() bool { return t.has(Date) }

// Constant tells whether the text is the same for every record.
func (t Template) Constant() bool { return !t.has(Tag, TagPart, Date, Field) }

func (t Template) has(kinds ...PartKind) bool {
	for _, p := range t {
		for _, k := range kinds {
			if p.Kind == k {
				return true
			}
		}
	}
	return false
}

// TagAt returns a part of a tag, and false if it has not as many.
func TagAt(tag string, index int) (string, bool) {
	for ; index > 0; index-- {
		_, rest, ok := strings.Cut(tag, ".")
		if !ok {
			return "", false
		}
		tag = rest
	}
	part, _, _ := strings.Cut(tag, ".")
	return part, true
}

package accessor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Path points to a value of a record, or of the metadata beside it.
type Path struct {
	// metadata tells that the steps begin at the metadata and not at the record.
	metadata bool
	steps    []step
}

// step is one level down: the element of an array if key is empty and isIndex is set, else
// the value of a key.
type step struct {
	key     string
	index   int
	isIndex bool
}

const (
	tagName      = "TAG"
	metadataName = "METADATA"
	// maxIndex bounds an index; no log record has an array of that length.
	maxIndex = 1 << 20
)

var (
	errNoName   = errors.New(`has a "$" without a name; a field is written $name or $['name'], the sign itself $$`)
	errNoRecord = errors.New(`is no record accessor; that begins with "$"`)
	errTag      = errors.New("names the tag, which only templates can hold; a key that begins like it is written $['TAG…']")
)

// Is tells whether a text is meant as a path: it begins with "$".
func Is(text string) bool { return strings.HasPrefix(text, "$") }

// Key is the path of a top-level key, taken literally.
func Key(name string) Path { return Path{steps: []step{{key: name}}} }

// ParsePath reads a path: $key, $key['sub'], $key[0], $['odd key'], $METADATA['key'] and so on. The error continues
// the sentence `option: "text" …`.
func ParsePath(text string) (Path, error) {
	s := scanner{text: text}
	if !s.skip('$') {
		return Path{}, errNoRecord
	}
	if strings.HasPrefix(s.rest(), tagName) {
		return Path{}, errTag
	}
	p, err := s.path()
	if err == nil && s.rest() != "" {
		err = fmt.Errorf("does not end behind %q; a sub-key is written ['%s']", s.text[:s.pos],
			strings.TrimLeft(s.rest(), ".-/"))
	}
	return p, err
}

// ParseField reads what names a field: a path, or the name of a top-level key as it is.
func ParseField(text string) (Path, error) {
	if Is(text) {
		return ParsePath(text)
	}
	return Key(text), nil
}

// scanner reads a text from left to right.
type scanner struct {
	text string
	pos  int
}

func (s *scanner) rest() string { return s.text[s.pos:] }

// skip takes one byte if it is the one that is wanted.
func (s *scanner) skip(c byte) bool {
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// isName tells whether the byte at i is part of a name that stands without quotes. Fluent Bit
// also takes "-" and "/"; here they end the name, so that they can stand between two of them.
func isName(text string, i int) bool {
	if i >= len(text) {
		return false
	}
	c := text[i]
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// name takes a name, which does not begin with a digit: $1 is the capture of a regular
// expression in Fluent Bit.
func (s *scanner) name() string {
	from := s.pos
	if s.pos < len(s.text) && '0' <= s.text[s.pos] && s.text[s.pos] <= '9' {
		return ""
	}
	for isName(s.text, s.pos) {
		s.pos++
	}
	return s.text[from:s.pos]
}

// path takes what stands behind the "$" of a path.
func (s *scanner) path() (Path, error) {
	var p Path
	switch name := s.name(); {
	case name == metadataName:
		p.metadata = true
	case name != "":
		p.steps = append(p.steps, step{key: name})
	case s.pos == len(s.text) || s.text[s.pos] != '[':
		return p, errNoName
	}
	for s.skip('[') {
		st, err := s.step()
		if err != nil {
			return p, err
		}
		if st.isIndex && len(p.steps) == 0 {
			return p, errors.New("has an index where a key must stand: a record has no order to count by")
		}
		p.steps = append(p.steps, st)
	}
	return p, nil
}

// step takes what stands behind a "[", and the "]".
func (s *scanner) step() (step, error) {
	var st step
	if s.skip('\'') {
		key, ok := s.quoted()
		if !ok {
			return st, errors.New("has a key without its closing quote; a quote inside a key is written ''")
		}
		st.key = key
	} else {
		n, err := s.index()
		if err != nil {
			return st, err
		}
		st.index, st.isIndex = n, true
	}
	if !s.skip(']') {
		return st, fmt.Errorf("has no ] behind %q", s.text[:s.pos])
	}
	return st, nil
}

// quoted takes a text up to its closing quote; two quotes stand for one.
func (s *scanner) quoted() (string, bool) {
	var b strings.Builder
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		if c == '\'' && !s.skip('\'') {
			return b.String(), true
		}
		b.WriteByte(c)
	}
	return "", false
}

// index takes a number.
func (s *scanner) index() (int, error) {
	from := s.pos
	for s.pos < len(s.text) && '0' <= s.text[s.pos] && s.text[s.pos] <= '9' {
		s.pos++
	}
	if from == s.pos {
		return 0, fmt.Errorf("has neither a quoted key nor a number behind %q", s.text[:from])
	}
	n, err := strconv.Atoi(s.text[from:s.pos])
	if err != nil || n > maxIndex {
		return 0, fmt.Errorf("has an index above %d", maxIndex)
	}
	return n, nil
}

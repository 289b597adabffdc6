package parity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A node is a value of something that wants to be JSON. The built-in output writes much that is not: keys without quotes,
// nan, \x escapes, unescaped quotes (those can't be read at all).
type node struct {
	kind byte // '"' for a text, 'w' for a bare word or number, '[' and '{'
	// raw is the text or word as it is written.
	raw string
	// parts are the elements, or the keys and values in turn.
	parts []node
}

// maxNest is how deep a tree may be.
const maxNest = 1000

// parseTree reads a value, as far as it can be told where things begin and end.
func parseTree(text string) (node, error) {
	p := &parser{text: text}
	n := p.value(0)
	if p.err == nil && p.pos != len(text) {
		p.fail("something follows")
	}
	return n, p.err
}

type parser struct {
	text string
	pos  int
	err  error
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("at %d: %s", p.pos, what)
	}
}

// skip passes blanks and returns what comes next, 0 at the end.
func (p *parser) skip() byte {
	for p.pos < len(p.text) && p.text[p.pos] == ' ' {
		p.pos++
	}
	if p.pos == len(p.text) || p.err != nil {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) value(depth int) node {
	switch c := p.skip(); {
	case depth > maxNest:
		p.fail("too deep")
	case c == '"':
		return node{kind: '"', raw: p.quoted()}
	case c == '[':
		return node{kind: '[', parts: p.list(']', func(parts []node) []node { return append(parts, p.value(depth+1)) })}
	case c == '{':
		return node{kind: '{', parts: p.list('}', func(parts []node) []node {
			key := p.value(depth + 1)
			if p.skip() != ':' {
				p.fail("no colon")
				return nil
			}
			p.pos++
			return append(parts, key, p.value(depth+1))
		})}
	default:
		end := p.pos + strings.IndexAny(p.text[p.pos:]+",", ",:]} ")
		word := p.text[p.pos:end]
		if word == "" {
			p.fail("no value")
		}
		p.pos = end
		return node{kind: 'w', raw: word}
	}
	return node{}
}

// quoted reads a text with its quotes.
func (p *parser) quoted() string {
	for i := p.pos + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '"':
			raw := p.text[p.pos : i+1]
			p.pos = i + 1
			return raw
		}
	}
	p.fail("a text without end")
	return ""
}

// list reads what stands between brackets, and commas between.
func (p *parser) list(end byte, item func([]node) []node) (parts []node) {
	p.pos++
	if p.skip() == end {
		p.pos++
		return nil
	}
	for p.err == nil {
		parts = item(parts)
		switch p.skip() {
		case ',':
			p.pos++
		case end:
			p.pos++
			return parts
		default:
			p.fail("neither comma nor end")
		}
	}
	return nil
}

var errNotText = errors.New("not a text")

// text is what a JSON reader gets from a text.
func (n node) text() (string, error) {
	if n.kind != '"' {
		return "", errNotText
	}
	var s string
	err := json.Unmarshal([]byte(n.raw), &s)
	return s, err
}

// String writes the tree again.
func (n node) String() string {
	var parts []string
	switch n.kind {
	case '[':
		for _, p := range n.parts {
			parts = append(parts, p.String())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case '{':
		for i := 0; i < len(n.parts); i += 2 {
			parts = append(parts, n.parts[i].String()+":"+n.parts[i+1].String())
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return n.raw
}

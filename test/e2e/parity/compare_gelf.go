package parity

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// gelf compares two values in GELF.
func (c *comparison) gelf(b, o string) bool {
	if !readable("gelf", []byte(o)) {
		return false
	}
	to, err := parseTree(o)
	if err != nil {
		return false
	}
	if tb, err := parseTree(b); err == nil && utf8.ValidString(b) && c.gelfFields(tb.parts, to.parts) {
		return true
	}
	c.reasons = nil
	return c.traits.textInList && c.gelfUnescaped(perByte(b), to.parts)
}

// perByte puts U+FFFD in the place of each bad byte.
func perByte(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// gelfUnescaped follows our fields through a value of the built-in output that can't be read: texts inside lists stand there
// as they are, quotes and all. Bad bytes in them are U+FFFD in both by now.
func (c *comparison) gelfUnescaped(b string, fields []node) bool {
	for i := 0; i < len(fields); i += 2 {
		var ok bool
		start := `{` + fields[i].raw + `:`
		if i > 0 {
			start = `, ` + fields[i].raw + `:`
		}
		if b, ok = strings.CutPrefix(b, start); !ok {
			return false
		}
		if b, ok = c.gelfText(b, fields[i+1]); !ok {
			return false
		}
	}
	return b == "}"
}

// gelfText takes from b what stands there for one of our values.
func (c *comparison) gelfText(b string, o node) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(b, o.raw); ok {
		return rest, true
	}
	text, err := o.text()
	if err != nil {
		return "", false
	}
	if rest, ok = strings.CutPrefix(b, `"`+text+`"`); ok {
		return rest, c.because(quotes, o.raw != `"`+text+`"`) || c.because(badText, c.traits.badText)
	}
	end := strings.Index(b, `", "`)
	if end < 0 {
		end = len(b) - len(`"}`)
	}
	theirs, err := node{kind: '"', raw: b[:end+1]}.text()
	return b[end+1:], err == nil && c.because(badText, c.traits.badText && keepsGood(theirs, text))
}

// gelfFields compares the fields in order. Either output may lack one.
func (c *comparison) gelfFields(b, o []node) bool {
	if c.renamed() {
		b, o = c.dropRenamed(b), c.dropRenamed(o)
	}
	for len(b) > 0 || len(o) > 0 {
		switch {
		case len(b) > 0 && len(o) > 0 && b[0].raw == o[0].raw && (c.gelfValue(b[1], o[1])):
			b, o = b[2:], o[2:]
		case len(b) > 0 && b[1].kind == 'w' && slices.Contains([]string{"nan", "inf", "-inf"}, b[1].raw):
			if !c.because(oddFloats, c.traits.oddFloat) {
				return false
			}
			b = b[2:]
		case len(o) > len(b) && c.traits.oddKey:
			c.because(oddNames, true)
			o = o[2:]
		case len(o) > len(b) && c.traits.single:
			c.because(singles, true)
			o = o[2:]
		default:
			return false
		}
	}
	return true
}

// base64Text is how we write an ext, and RFC 3339 an event time.
var base64Text = regexp.MustCompile(`^"([A-Za-z0-9+/]*=*|\d{4}-\d\d-\d\dT[0-9:.]+Z)"$`)

func (c *comparison) gelfValue(b, o node) bool {
	if b.String() == o.String() {
		return true
	}
	if b.kind == '"' && o.kind == '"' && c.traits.mapInList && strings.ReplaceAll(b.raw, " ", "") == strings.ReplaceAll(o.raw, " ", "") {
		return c.because(blanks, true)
	}
	if b.kind == '"' && o.kind == '"' && strings.Contains(b.raw, `\x`) {
		return c.because(exts, c.traits.ext && (base64Text.MatchString(o.raw) || c.traits.textInList))
	}
	return c.tree(b, o)
}

// renamed tells whether the section names the two fields whose names the built-in output ignores.
func (c *comparison) renamed() bool {
	return slices.ContainsFunc(c.section.Keys, func(k Key) bool { return k.Name == "gelf_host_key" })
}

// dropRenamed leaves out host and time under all their names.
func (c *comparison) dropRenamed(pairs []node) (left []node) {
	about := regexp.MustCompile(`^"_*(host|node|timestamp|at)(_a)?"$`)
	for i := 0; i < len(pairs); i += 2 {
		if about.MatchString(pairs[i].raw) {
			c.because(names, pairs[i].raw != `"timestamp"` || pairs[i+1].kind == '"')
			continue
		}
		left = append(left, pairs[i], pairs[i+1])
	}
	return left
}

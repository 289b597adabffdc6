package parity

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// gelf compares two values in GELF.
func (c *comparison) gelf(b, o string) bool {
	if !c.readable([]byte(o)) {
		return false
	}
	to, err := parseTree(o)
	if err != nil || gelfText(to) != o {
		return false
	}
	if tb, err := parseTree(b); err == nil && utf8.ValidString(b) && c.gelfFields(tb.parts, to.parts) {
		return true
	}
	c.reasons = nil
	whole := perByte(b)
	return c.traits.textInList && c.gelfUnescaped(whole, to.parts) && (whole == b || c.because(badText, c.traits.badText))
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
		if b, ok = c.gelfUnescapedText(b, fields[i+1]); !ok {
			return false
		}
	}
	return b == "}"
}

// gelfUnescapedText takes from b what stands there for one of our values.
func (c *comparison) gelfUnescapedText(b string, o node) (rest string, ok bool) {
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

// gelfText writes the fields as GELF has them: a blank behind each comma.
func gelfText(n node) string {
	var fields []string
	for i := 0; i < len(n.parts); i += 2 {
		fields = append(fields, n.parts[i].raw+":"+n.parts[i+1].String())
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// gelfFields compares the fields in order. Either output may lack one.
func (c *comparison) gelfFields(b, o []node) bool {
	if c.section.key("gelf_host_key") != "" {
		renamed, own := withoutNoon(c.rename(b)), withoutNoon(o)
		c.because(names, (len(renamed) == len(b)) != (len(own) == len(o))) // which field has the time is what makes them add one
		b, o = renamed, own
	}
	for len(b) > 0 || len(o) > 0 {
		switch {
		case len(b) > 0 && len(o) > 0 && b[0].raw == o[0].raw && c.gelfValue(b[1], o[1]):
			b, o = b[2:], o[2:]
		case len(b) > 0 && b[1].kind == 'w' && slices.Contains([]string{"nan", "inf", "-inf"}, b[1].raw):
			if !c.because(oddFloats, c.traits.oddFloat) {
				return false
			}
			b = b[2:]
		case len(o) > len(b) && c.because(singles, c.traits.single && c.sixDigits(o[1].raw)):
			o = o[2:]
		case len(o) > len(b) && c.because(oddNames, c.traits.oddKey && strings.HasPrefix(o[0].raw, `"_`)):
			o = o[2:]
		default:
			return false
		}
	}
	return true
}

// sixDigits tells whether a number is one of the record's floats as GELF has them.
func (c *comparison) sixDigits(number string) bool {
	return slices.ContainsFunc(c.traits.floats, func(f float64) bool { return strconv.FormatFloat(f, 'f', 6, 64) == number })
}

func (c *comparison) gelfValue(b, o node) bool {
	switch {
	case b.String() == o.String():
		return true
	case b.kind != '"' || o.kind != '"':
		return false
	case strings.Contains(b.raw, `\x`):
		return c.because(exts, c.traits.ext && (extsAsBase64(b.raw) == o.raw || eventTimes(b.raw, o.raw)))
	case c.traits.mapInList && strings.ReplaceAll(b.raw, " ", "") == strings.ReplaceAll(o.raw, " ", "") && len(o.raw) > len(b.raw):
		return c.because(blanks, true)
	}
	return c.texts(b, o)
}

// renamed are the names that our fields have in place of the built-in output's, when the section names host and time. That
// one reads them from the fields host and timestamp all the same.
var renamed = map[string]string{
	`"host"`: `"_host"`, `"_node"`: `"host"`, `"_node_a"`: `"_host_a"`, `"timestamp"`: `"_timestamp"`, `"_at"`: `"timestamp"`, `"_at_a"`: `"_timestamp_a"`,
}

// noonGELF is the time that either output adds to a record without one of its own.
const noonGELF = "1700000000.123"

// rename gives the fields of the built-in output our names.
func (c *comparison) rename(pairs []node) (all []node) {
	for i := 0; i < len(pairs); i += 2 {
		if name, ok := renamed[pairs[i].raw]; ok && pairs[i+1].raw != noonGELF {
			c.because(names, true)
			pairs[i].raw = name
		}
		all = append(all, pairs[i], pairs[i+1])
	}
	return all
}

// withoutNoon leaves out the time that was added.
func withoutNoon(pairs []node) []node {
	if n := len(pairs); n > 1 && pairs[n-2].raw == `"timestamp"` && pairs[n-1].raw == noonGELF {
		return pairs[:n-2]
	}
	return pairs
}

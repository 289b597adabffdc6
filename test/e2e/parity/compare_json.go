package parity

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readable tells whether a reader of the format takes a value.
func (c *comparison) readable(value []byte) bool {
	switch format := c.section.format(); format {
	case "raw":
		return true
	case "otlp_proto":
		_, err := readLogs(format, value)
		return err == nil
	case "avro":
		_, err := c.readAvro(value)
		return err == nil
	}
	return json.Valid(value) && utf8.Valid(value)
}

// json compares two values in JSON.
func (c *comparison) json(b, o string) bool {
	tb, err := parseTree(b)
	if err != nil || !c.readable([]byte(o)) {
		return false
	}
	to, err := parseTree(o)
	return err == nil && to.String() == o && c.tree(tb, to)
}

// tree compares two values. What differs must have a reason.
func (c *comparison) tree(b, o node) bool {
	switch {
	case b.String() == o.String():
		return true
	case b.kind == '"' && o.kind == '"':
		return c.texts(b, o)
	case b.kind == 'w' && o.kind == 'w':
		return c.words(b.raw, o.raw)
	case b.kind == '[' && o.kind == '[' && len(b.parts) == len(o.parts):
		for i := range b.parts {
			if !c.tree(b.parts[i], o.parts[i]) {
				return false
			}
		}
		return true
	case b.kind == '{' && o.kind == '{':
		return c.maps(b.parts, o.parts)
	case b.kind == '"' && o.kind == '{': // {"type":5,"data":"AQI="}
		return c.because(exts, c.traits.ext && len(o.parts) == 4 && o.parts[0].raw == `"type"` && o.parts[2].raw == `"data"` &&
			hexBytes.MatchString(b.raw) && extsAsBase64(b.raw) == o.parts[3].raw)
	}
	return false
}

// maps compares keys and values in turn.
func (c *comparison) maps(b, o []node) bool {
	if len(b) > len(o) && c.traits.oddKey {
		b = once(b)
		c.because(duplicates, len(b) == len(o))
	}
	if len(b) != len(o) {
		return false
	}
	for i := 0; i < len(b); i += 2 {
		if !c.keys(b[i], o[i]) || !c.tree(b[i+1], o[i+1]) {
			return false
		}
	}
	return true
}

// once leaves the last of the pairs whose keys read the same.
func once(pairs []node) (left []node) {
	for i := 0; i < len(pairs); i += 2 {
		twice := false
		for j := i + 2; j < len(pairs); j += 2 {
			twice = twice || strings.Trim(pairs[i].raw, `"`) == strings.Trim(pairs[j].raw, `"`)
		}
		if !twice {
			left = append(left, pairs[i], pairs[i+1])
		}
	}
	return left
}

// keys compares two keys. Ours is a text, which may hold the JSON of something that is none.
func (c *comparison) keys(b, o node) bool {
	if b.String() == o.String() {
		return true
	}
	text, err := o.text()
	if err != nil || !c.traits.oddKey {
		return c.tree(b, o)
	}
	inner, err := parseTree(text)
	return err == nil && c.tree(b, inner) && c.because(oddNames, true) || c.tree(b, o)
}

var (
	escape   = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)
	hexBytes = regexp.MustCompile(`^"(\\x[0-9a-f]+)*"$`)
	hexByte  = regexp.MustCompile(`\\x(?:ffffff)?([0-9a-f]{2})`)
	hexRun   = regexp.MustCompile(`(?:\\x(?:ffffff)?[0-9a-f]{2})+`)
	timeText = regexp.MustCompile(`^"\d{4}-\d\d-\d\dT[0-9:.]+Z"$`)
)

// timeBytes is how long an event time is.
const timeBytes = 8

// extsAsBase64 puts base64 in the place of the bytes of exts, which the built-in output writes in hex.
func extsAsBase64(text string) string {
	return hexRun.ReplaceAllStringFunc(text, func(run string) string {
		var data []byte
		for _, match := range hexByte.FindAllStringSubmatch(run, -1) {
			n, _ := strconv.ParseUint(match[1], 16, 8) // two digits
			data = append(data, byte(n))
		}
		return base64.StdEncoding.EncodeToString(data)
	})
}

// eventTimes tells whether a text of the built-in output is the eight bytes of an event time, and ours the time.
func eventTimes(b, o string) bool {
	return hexBytes.MatchString(b) && len(hexByte.FindAllString(b, -1)) == timeBytes && timeText.MatchString(o)
}

// texts compares two texts.
func (c *comparison) texts(b, o node) bool {
	to, err := o.text()
	if err != nil {
		return false
	}
	tb, err := b.text()
	switch {
	case err != nil: // \x: only an ext has these
		return c.because(exts, c.traits.ext && eventTimes(b.raw, o.raw))
	case tb == to && utf8.ValidString(b.raw):
		wide := slices.ContainsFunc(escape.FindAllString(b.raw, -1), func(e string) bool { return e[2:] >= "0080" })
		if wide {
			return c.because(escapes, true)
		}
		return c.because(spelling, true)
	}
	return c.because(badText, c.traits.badText && keepsGood(tb, to))
}

// keepsGood tells whether ours is the built-in output's text with U+FFFD in place of what that made of bad bytes: what is good
// in ours is in its text too, in order.
func keepsGood(builtin, ours string) bool {
	rest := []rune(builtin)
	bad := 0
	for _, r := range ours {
		if r == utf8.RuneError {
			bad++
			continue
		}
		i := slices.Index(rest, r)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return bad > 0
}

// words compares numbers, and what stands in the place of a number.
func (c *comparison) words(b, o string) bool {
	if b == "nan" || b == "inf" || b == "-inf" {
		return c.because(oddFloats, c.traits.oddFloat && o == "null")
	}
	return c.numbers(b, o)
}

func (c *comparison) numbers(b, o string) bool {
	fb, errB := strconv.ParseFloat(b, 64)
	fo, errO := strconv.ParseFloat(o, 64)
	switch {
	case errors.Is(errB, strconv.ErrRange): // 16 digits of the largest float are more than it
		return c.because(digits, slices.Contains(c.traits.floats, fo))
	case errB != nil || errO != nil || !c.traits.float:
		return false
	case fb == fo && math.Signbit(fb) == math.Signbit(fo):
		return c.because(spelling, significant(o) == significant(strconv.FormatFloat(fo, 'e', -1, 64)))
	}
	if c.because(singleDigits, slices.Contains(c.traits.singles, fo) && float32(fb) == float32(fo)) {
		return true
	}
	// Ours is one of the record's own floats, and theirs is what 16 digits leave of it.
	return c.because(digits, fb != fo && slices.Contains(c.traits.floats, fo) && math.Abs(fb-fo) <= math.Abs(fo)*1e-15)
}

// significant are the digits of a number without its zeros at both ends.
func significant(number string) string {
	mantissa, _, _ := strings.Cut(strings.TrimPrefix(number, "-"), "e")
	return strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "0")
}

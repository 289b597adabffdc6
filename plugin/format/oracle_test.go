package format

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// This file is a second, plain implementation of the same rules for the fuzz test to
// compare with: it reads into a tree, recurses, and builds strings. It shares no code
// with the package.

type pair struct{ key, value node }

// node is a msgpack value: nil, bool, uint64, int64, float64, string (str and bin),
// []node, []pair or extNode.
type node any

type extNode struct {
	typ     int8
	payload string
}

// readNode reads the value at the start of b, which is known to be whole.
func readNode(b []byte) (node, []byte) {
	c, b := b[0], b[1:]
	number := func(width int) uint64 {
		var v uint64
		for _, x := range b[:width] {
			v = v<<8 | uint64(x)
		}
		b = b[width:]
		return v
	}
	switch {
	case c < 0x80:
		return uint64(c), b
	case c < 0x90:
		return readPairs(b, int(c&15))
	case c < 0xa0:
		return readElements(b, int(c&15))
	case c < 0xc0:
		return readText(b, int(c&31))
	case c == 0xc0:
		return nil, b
	case c == 0xc2 || c == 0xc3:
		return c == 0xc3, b
	case c >= 0xc4 && c <= 0xc6:
		n := int(number(1 << (c - 0xc4)))
		return readText(b, n)
	case c >= 0xc7 && c <= 0xc9:
		n := int(number(1 << (c - 0xc7)))
		return extNode{int8(b[0]), string(b[1 : 1+n])}, b[1+n:]
	case c == 0xca:
		return float64(math.Float32frombits(uint32(number(4)))), b
	case c == 0xcb:
		return math.Float64frombits(number(8)), b
	case c >= 0xcc && c <= 0xcf:
		return number(1 << (c - 0xcc)), b
	case c == 0xd0:
		return int64(int8(number(1))), b
	case c == 0xd1:
		return int64(int16(number(2))), b
	case c == 0xd2:
		return int64(int32(number(4))), b
	case c == 0xd3:
		return int64(number(8)), b
	case c >= 0xd4 && c <= 0xd8:
		n := 1 << (c - 0xd4)
		return extNode{int8(b[0]), string(b[1 : 1+n])}, b[1+n:]
	case c >= 0xd9 && c <= 0xdb:
		n := int(number(1 << (c - 0xd9)))
		return readText(b, n)
	case c == 0xdc || c == 0xdd:
		n := int(number(2 << (c - 0xdc)))
		return readElements(b, n)
	case c == 0xde || c == 0xdf:
		n := int(number(2 << (c - 0xde)))
		return readPairs(b, n)
	}
	return int64(int8(c)), b
}

func readText(b []byte, n int) (node, []byte) { return string(b[:n]), b[n:] }

func readElements(b []byte, n int) (node, []byte) {
	elements := make([]node, n)
	for i := range elements {
		elements[i], b = readNode(b)
	}
	return elements, b
}

func readPairs(b []byte, n int) (node, []byte) {
	pairs := make([]pair, n)
	for i := range pairs {
		pairs[i].key, b = readNode(b)
		pairs[i].value, b = readNode(b)
	}
	return pairs, b
}

// rawJSON is a text that is JSON already.
type rawJSON string

// oracleJSON is the value of a record whose time field has the given JSON.
func oracleJSON(body []byte, timeKey, timeValue string) string {
	n, _ := readNode(body)
	return oracleValue(append([]pair{{timeKey, rawJSON(timeValue)}}, n.([]pair)...))
}

func oracleValue(n node) string {
	switch v := n.(type) {
	case nil:
		return "null"
	case rawJSON:
		return string(v)
	case bool, uint64, int64:
		return fmt.Sprint(v)
	case float64:
		return oracleFloat(v)
	case string:
		return oracleText(v)
	case extNode:
		if p := []byte(v.payload); v.typ == 0 && len(p) == 8 {
			t := time.Unix(int64(binary.BigEndian.Uint32(p)), int64(binary.BigEndian.Uint32(p[4:]))).UTC()
			return t.Format(`"2006-01-02T15:04:05.000000000Z"`)
		}
		return fmt.Sprintf(`{"type":%d,"data":"%s"}`, v.typ, base64.StdEncoding.EncodeToString([]byte(v.payload)))
	case []node:
		texts := make([]string, len(v))
		for i, e := range v {
			texts[i] = oracleValue(e)
		}
		return "[" + strings.Join(texts, ",") + "]"
	case []pair:
		return oracleMap(v)
	}
	panic(fmt.Sprintf("node of type %T", n))
}

func oracleMap(pairs []pair) string {
	last := map[string]int{}
	keys := make([]string, len(pairs))
	for i, p := range pairs {
		keys[i] = oracleValue(p.key)
		if keys[i][0] != '"' {
			keys[i] = oracleText(keys[i])
		}
		last[keys[i]] = i
	}
	var texts []string
	for i, p := range pairs {
		if last[keys[i]] == i {
			texts = append(texts, keys[i]+":"+oracleValue(p.value))
		}
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func oracleText(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteString("\uFFFD")
		case r == '"' || r == '\\':
			b.WriteString("\\" + string(r))
		case strings.ContainsRune("\n\r\t\b\f", r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

func oracleFloat(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "null"
	}
	if f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63 {
		return fmt.Sprintf("%.1f", f)
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	if v, err := strconv.ParseFloat(text, 64); v != f || err != nil {
		panic(fmt.Sprintf("%s does not read back as %b", text, f))
	}
	if exponent, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:]); exponent < -4 || exponent >= 16 {
		return text
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

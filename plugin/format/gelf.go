package format

import (
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"

	"out_kafka_reconnect/plugin/chunk"
)

// GELFConfig names the fields of a record that become the fields of GELF.
type GELFConfig struct {
	HostKey, TimestampKey, ShortMessageKey, FullMessageKey, LevelKey string
	// NoTimestamp leaves the timestamp out unless the record brings it.
	NoTimestamp bool
}

var (
	// ErrNoShortMessage says that a record lacks the one field that GELF demands. A null or a map there counts as one, as in
	// the built-in output.
	ErrNoShortMessage = errors.New("format: the record has no field for GELF's short_message")
	// ErrLevel says that the level of a record is none that the built-in output takes, nor null or a map.
	ErrLevel = errors.New("format: the GELF level is neither a non-negative integer nor a text")
	// ErrInflated says that a record, its maps flattened, would grow out of all proportion.
	ErrInflated = errors.New("format: the record grows too much when its maps are flattened")
)

const (
	// maxFlat is the number of arrays and maps inside each other that are flattened. No
	// reader of GELF goes nearly as deep.
	maxFlat = 128
	// Flattening repeats the names of the outer maps for each inner value. A record may
	// become maxGrowth times its size, and something for small ones.
	maxGrowth = 64
	minRoom   = 4096
)

// gelfField is a field that GELF knows.
type gelfField uint8

const (
	gelfHost gelfField = iota
	gelfShortMessage
	gelfTimestamp
	gelfLevel
	gelfFullMessage
	numGELFFields
	gelfCustom // every other field
)

// gelfNames are the fields as GELF calls them.
var gelfNames = [numGELFFields]string{"host", "short_message", "timestamp", "level", "full_message"}

// gelfLevels are the keywords of the level, in the order of their numbers.
var gelfLevels = [...]string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}

// GELF writes records in the Graylog Extended Log Format 1.1: one flat JSON object. Maps are
// flattened to fields of joined names, arrays to one text.
type GELF struct {
	keys      [numGELFFields]string // in the record
	timestamp bool
	// prefix holds the joined names of the maps that are open.
	prefix []byte
	// names writes the names that are no text, into name.
	names *JSON
	name  []byte
	// text and inner are the styles of texts by themselves and inside an array's text.
	text, inner textStyle
	limit       int // of the output, for the record at hand
}

// NewGELF returns an encoder.
func NewGELF(c GELFConfig) *GELF {
	return &GELF{
		keys:      [numGELFFields]string{c.HostKey, c.ShortMessageKey, c.TimestampKey, c.LevelKey, c.FullMessageKey},
		timestamp: !c.NoTimestamp,
		text:      textStyle{escape: true},
		names:     NewJSON(JSONConfig{}),
	}
}

// field tells which field of GELF a name of the record stands for.
func (g *GELF) field(name []byte) gelfField {
	for i, key := range &g.keys {
		if string(name) == key {
			return gelfField(i)
		}
	}
	return gelfCustom
}

// AppendValue appends the record as one JSON object. It fails with [ErrNoShortMessage],
// [ErrLevel], [ErrTooDeep] or [ErrInflated].
func (g *GELF) AppendValue(dst []byte, e *chunk.Entry) ([]byte, error) {
	b := e.Body
	pairs, pos, err := readBody(b)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	g.limit = start + minRoom + maxGrowth*len(b)
	dst = append(dst, `{"version":"1.1"`...)
	var found [numGELFFields]bool
	for ; pairs > 0; pairs-- {
		if dst, pos, err = g.appendPair(dst, b, pos, &found); err != nil {
			return dst[:start], err
		}
	}
	switch {
	case pos != len(b):
		return dst[:start], errTrailing
	case !found[gelfShortMessage]:
		return dst[:start], ErrNoShortMessage
	}
	if g.timestamp && !found[gelfTimestamp] {
		dst = append(dst, `, "timestamp":`...)
		dst = append(strconv.AppendInt(dst, e.Sec, 10), '.')
		dst = appendDigits(dst, uint32(e.Nsec)/1e6, 3)
	}
	return append(dst, '}'), nil
}

// appendPair appends the pair of the record's top level at b[pos:].
func (g *GELF) appendPair(dst, b []byte, pos int, found *[numGELFFields]bool) ([]byte, int, error) {
	name, pos, err := g.readName(b, pos)
	if err != nil {
		return dst, pos, err
	}
	field := g.field(name)
	if field == gelfCustom {
		if string(name) == "id" { // GELF forbids _id
			pos, err = chunk.Skip(b, pos)
			return dst, pos, err
		}
		g.prefix = append(append(g.prefix[:0], '_'), name...)
	} else {
		if found[field] { // the first one stays
			pos, err = chunk.Skip(b, pos)
			return dst, pos, err
		}
		found[field] = true
		g.prefix = append(g.prefix[:0], gelfNames[field]...)
	}
	h, at := chunk.ReadHead(b, pos)
	switch {
	case h.Type == chunk.Invalid:
		return dst, pos, chunk.HeadError(b, pos)
	case isNull(h): // GELF has no null
		return dst, at, nil
	case h.Type == chunk.Map:
		if field != gelfCustom {
			g.prefix = append(append(g.prefix[:0], '_'), gelfNames[field]...)
		}
		return g.appendMap(dst, b, at, h.N, gelfPlace{}, 1)
	case field == gelfLevel:
		return g.appendLevel(dst, b, at, h)
	}
	dst = appendGELFName(dst, g.prefix)
	return g.appendSingle(dst, b, at, h, 1)
}

// isNull tells of a value that has no form in GELF.
func isNull(h chunk.Head) bool {
	return h.Type == chunk.Nil || h.Type == chunk.Float && (math.IsNaN(h.Float()) || math.IsInf(h.Float(), 0))
}

// readName returns the name at b[pos:], which is JSON if it is no text, and the position
// behind it. It is valid until the next call.
func (g *GELF) readName(b []byte, pos int) ([]byte, int, error) {
	h, at := chunk.ReadHead(b, pos)
	if h.Type == chunk.Str || h.Type == chunk.Bin {
		end := at + int(h.N)
		return b[at:end], end, nil
	}
	g.names.reset()
	var err error
	g.name, pos, err = g.names.appendKey(g.name[:0], b, pos)
	g.names.release()
	if err != nil {
		return nil, pos, err
	}
	return g.name[1 : len(g.name)-1], pos, nil // without the quotes
}

// appendGELFName appends what stands before a value: the comma and the name, in which every
// byte that GELF does not allow is an underscore.
func appendGELFName(dst, name []byte) []byte {
	dst = append(dst, `, "`...)
	return append(appendCleaned(dst, name), `":`...)
}

func appendCleaned(dst, name []byte) []byte {
	start := len(dst)
	dst = append(dst, name...)
	for i, c := range dst[start:] {
		if !gelfAllowed[c] {
			dst[start+i] = '_'
		}
	}
	return dst
}

// gelfAllowed holds the bytes that a name may have.
var gelfAllowed = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-' || c == '_'
	}
	return t
}()

// appendLevel appends the level: a number as it is, a keyword as its number, any other text
// as it is.
func (g *GELF) appendLevel(dst, b []byte, pos int, h chunk.Head) ([]byte, int, error) {
	switch h.Type {
	case chunk.Uint:
	case chunk.Str:
		text := b[pos : pos+int(h.N)]
		if n, ok := levelNumber(text); ok {
			dst = append(appendGELFName(dst, g.prefix), byte('0'+n))
			return dst, pos + len(text), nil
		}
	default:
		return dst, pos, ErrLevel
	}
	dst = appendGELFName(dst, g.prefix)
	return g.appendSingle(dst, b, pos, h, 1)
}

func levelNumber(text []byte) (int, bool) {
	if len(text) == 1 && text[0] >= '0' && text[0] <= '7' {
		return int(text[0] - '0'), true
	}
	for n, word := range gelfLevels {
		if len(text) == len(word) && strings.EqualFold(string(text), word) {
			return n, true
		}
	}
	return 0, false
}

// gelfPlace is where the pairs of a map go: the zero value is the message, whose fields they become.
type gelfPlace struct {
	// inText says that they become a part of an array's text, which begins at start: name=value
	// with blanks between them. The names of the maps in it are in the prefix from the given place on.
	inText      bool
	from, start int
}

// appendMap appends the pairs of a map, their names behind g.prefix.
func (g *GELF) appendMap(dst, b []byte, pos int, pairs uint64, to gelfPlace, depth int) ([]byte, int, error) {
	if depth > maxFlat {
		return dst, pos, ErrTooDeep
	}
	base := len(g.prefix)
	for ; pairs > 0; pairs-- {
		var name []byte
		var err error
		if name, pos, err = g.readName(b, pos); err != nil {
			return dst, pos, err
		}
		g.prefix = g.prefix[:base]
		if base > to.from {
			g.prefix = append(g.prefix, '_')
		}
		g.prefix = append(g.prefix, name...)
		h, at := chunk.ReadHead(b, pos)
		switch {
		case h.Type == chunk.Map:
			dst, pos, err = g.appendMap(dst, b, at, h.N, to, depth+1)
		case to.inText:
			if len(dst) > to.start {
				dst = append(dst, ' ')
			}
			dst = append(appendCleaned(dst, g.prefix[to.from:]), '=')
			dst, pos, err = g.appendInner(dst, b, at, h, depth+1)
		default:
			dst, pos, err = g.appendSingle(appendGELFName(dst, g.prefix), b, at, h, depth+1)
		}
		if err != nil {
			return dst, pos, err
		}
		if len(dst) > g.limit {
			return dst, pos, ErrInflated
		}
	}
	g.prefix = g.prefix[:base]
	return dst, pos, nil
}

// appendSingle appends a value that is no map; pos is behind its head.
func (g *GELF) appendSingle(dst, b []byte, pos int, h chunk.Head, depth int) ([]byte, int, error) {
	switch h.Type {
	case chunk.Invalid:
		return dst, pos, chunk.ErrTruncated
	case chunk.Str, chunk.Bin:
		return appendText(dst, b, pos, int(h.N), &g.text), pos + int(h.N), nil
	case chunk.Uint, chunk.Int, chunk.Float, chunk.Nil:
		dst, pos = appendGELFScalar(dst, b, pos, h)
		return dst, pos, nil
	case chunk.Array:
		dst, pos, err := g.appendElements(append(dst, '"'), b, pos, h.N, depth)
		return append(dst, '"'), pos, err
	default: // a boolean or an ext: text
		dst, pos = appendGELFScalar(append(dst, '"'), b, pos, h)
		return append(dst, '"'), pos, nil
	}
}

// appendGELFScalar appends a value that is neither a text nor an array or map, without
// quotes.
func appendGELFScalar(dst, b []byte, pos int, h chunk.Head) ([]byte, int) {
	switch {
	case h.Type == chunk.Float && !isNull(h):
		return strconv.AppendFloat(dst, h.Float(), 'f', 6, 64), pos
	case h.Type == chunk.Ext:
		end := pos + int(h.N)
		if h.ExtType == 0 && h.N == 8 {
			start := len(dst)
			dst = appendExt(dst, 0, b[pos:end])
			return append(dst[:start], dst[start+1:len(dst)-1]...), end // without the quotes
		}
		return base64.StdEncoding.AppendEncode(dst, b[pos:end]), end
	}
	return appendScalar(dst, b, pos, h)
}

// appendElements appends the elements of an array as the inside of a text.
func (g *GELF) appendElements(dst, b []byte, pos int, n uint64, depth int) ([]byte, int, error) {
	if depth > maxFlat {
		return dst, pos, ErrTooDeep
	}
	for i := range n {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		h, at := chunk.ReadHead(b, pos)
		var err error
		if h.Type == chunk.Map {
			dst, pos, err = g.appendMap(dst, b, at, h.N, gelfPlace{inText: true, from: len(g.prefix), start: len(dst)}, depth+1)
		} else {
			dst, pos, err = g.appendInner(dst, b, at, h, depth+1)
		}
		if err != nil {
			return dst, pos, err
		}
		if len(dst) > g.limit {
			return dst, pos, ErrInflated
		}
	}
	return dst, pos, nil
}

// appendInner appends a value that is no map as a part of an array's text.
func (g *GELF) appendInner(dst, b []byte, pos int, h chunk.Head, depth int) ([]byte, int, error) {
	switch h.Type {
	case chunk.Invalid:
		return dst, pos, chunk.ErrTruncated
	case chunk.Str, chunk.Bin:
		start := len(dst)
		dst = appendText(dst, b, pos, int(h.N), &g.inner)
		return append(dst[:start], dst[start+1:len(dst)-1]...), pos + int(h.N), nil // without the quotes
	case chunk.Array:
		return g.appendElements(dst, b, pos, h.N, depth)
	default:
		dst, pos = appendGELFScalar(dst, b, pos, h)
		return dst, pos, nil
	}
}

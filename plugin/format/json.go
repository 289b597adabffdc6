package format

import (
	"errors"
	"hash/maphash"
	"slices"

	"out_kafka_reconnect/plugin/chunk"
)

// The limits of a record. They bound the scratch memory and the work that a hostile
// record can cause; a record beyond them is refused with [ErrTooDeep].
const (
	// maxDepth is the number of arrays and maps inside each other, the record
	// included. It is the depth at which encoding/json stops reading, and no reader
	// known to us goes deeper by default.
	maxDepth = 10000
	// maxKeyDepth is the number of arrays and maps used as keys inside each other.
	// Each level escapes the escapes of the one below and can double the text.
	maxKeyDepth = 4
	// maxKeptKeys is the number of keys whose scratch (about 4 MB) is kept for the
	// next record; what a larger map needed is given back.
	maxKeptKeys = 1 << 17
)

// ErrTooDeep says that a record has more levels than any consumer would read.
var ErrTooDeep = errors.New("format: record nested too deeply")

// ErrInvalidUTF8 says that a record has text that is not UTF-8, where [InvalidRefuse] rules.
var ErrInvalidUTF8 = errors.New("format: the record has text that is not UTF-8")

// JSONConfig is what a [JSON] writes besides the record itself, and how it writes texts.
type JSONConfig struct {
	// TimestampKey is where the time of the record goes, in front of its own entries.
	// Empty: the time is not written.
	TimestampKey    string
	TimestampFormat TimestampFormat
	// EscapeUnicode writes text that is not ASCII as \u escapes, as Fluent Bit does by
	// default.
	EscapeUnicode bool
	// InvalidUTF8 says what becomes of bytes that are no UTF-8.
	InvalidUTF8 InvalidUTF8
	// TagKey and MetadataKey are where the tag and the metadata of the record go, behind the
	// time. They differ from each other and from TimestampKey. Empty: they are not written.
	TagKey, MetadataKey string
}

// JSON writes records as JSON objects. It is used by one goroutine at a time, because
// it keeps its scratch memory from record to record.
type JSON struct {
	time timeField
	text textStyle
	own  ownFields
	// stack holds the arrays and maps that are open, the innermost last. An explicit
	// stack instead of recursion keeps a deep record from growing the goroutine's.
	stack []frame
	// keys holds the keys of the open maps, and slots the hash tables over them. Each
	// frame owns the part from its own base on.
	keys  []keyText
	slots []uint32
	// seed makes the hash of a key different in each process, so that nobody can
	// prepare a record whose keys collide.
	seed     maphash.Seed
	timeHash uint32
	// keyDepth counts the keys being written that are arrays or maps.
	keyDepth int
	predict  prediction
}

// frame is one array or map being written.
type frame struct {
	left    int  // elements or pairs not yet begun
	due     int  // values that the frames around this one still expect
	keys    int  // index of the map's first key in JSON.keys
	slots   int  // index of the map's hash table in JSON.slots
	mask    int  // size of that table less one; zero if the keys need no comparing
	dead    int  // entries that a later entry of the same key replaces
	isMap   bool // else an array
	started bool // something stands before, so a comma is due
}

// NewJSON returns an encoder.
func NewJSON(c JSONConfig) *JSON {
	j := &JSON{seed: maphash.MakeSeed(), text: textStyle{escape: c.EscapeUnicode, invalid: c.InvalidUTF8}}
	if c.TimestampKey != "" {
		key := []byte(c.TimestampKey)
		j.time = timeField{key: appendText(nil, key, 0, len(key), &j.text), format: c.TimestampFormat}
		j.timeHash = j.hash(j.time.key)
	}
	j.own = ownFields{tag: j.newOwnField(c.TagKey), metadata: j.newOwnField(c.MetadataKey), used: c.TagKey+c.MetadataKey != ""}
	j.SetTag("")
	return j
}

// AppendValue appends the record as one JSON object, without a newline. A record that came
// from a [chunk.Walker] can fail with [ErrTooDeep], and with [ErrInvalidUTF8] where that is
// refused.
func (j *JSON) AppendValue(dst []byte, e *chunk.Entry) ([]byte, error) {
	b := e.Body
	if out, n, ok := j.AppendPredicted(dst, e); ok && n == len(b) {
		return out, nil
	}
	pairs, pos, err := readBody(b)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst, ours, err := j.appendOurs(dst, e)
	if err != nil {
		return dst[:start], err
	}
	j.stack = append(j.stack, frame{left: int(pairs), isMap: true, started: ours > 0})
	if f := &j.stack[0]; ours > 0 && pairs > 0 {
		j.track(f, int(pairs)+ours)
		if j.time.key != nil {
			j.keys = append(j.keys, keyText{start: start + 1, end: start + 1 + len(j.time.key), hash: j.timeHash})
			j.place(f, 0)
		}
		j.placeOwnKeys(f)
	} else if pairs > 1 {
		j.track(f, int(pairs))
	}
	if j.predictable() {
		j.predict.begin()
	}
	dst, pos, err = j.run(dst, b, pos, 0)
	j.predict.end()
	j.release()
	if err == nil && pos != len(b) {
		err = errTrailing
	}
	if err == nil && j.text.bad && j.text.invalid == InvalidRefuse {
		err = ErrInvalidUTF8
	}
	if err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// Predicts implements [Predictor].
func (j *JSON) Predicts() bool { return j.predictable() && j.predict.ready() }

// AppendPredicted implements [Predictor].
func (j *JSON) AppendPredicted(dst []byte, e *chunk.Entry) (out []byte, n int, ok bool) {
	if !j.Predicts() {
		return dst, 0, false
	}
	pairs, pos, err := readBody(e.Body)
	if err != nil {
		return dst, 0, false
	}
	out, ours, err := j.appendOurs(dst, e)
	if err == nil {
		out, n, ok = j.runPredicted(out, e.Body, pos, int(pairs), ours)
	}
	if !ok || j.text.bad && j.text.invalid == InvalidRefuse {
		j.predict.failed()
		return out[:len(dst)], 0, false
	}
	j.predict.kept()
	return out, n, true
}

// predictable tells whether records can be predicted: with metadata our own keys are not the same in each.
func (j *JSON) predictable() bool { return j.own.metadata.key == nil }

// appendOurs begins the object of a record with the fields of ours, and returns how many these are.
func (j *JSON) appendOurs(dst []byte, e *chunk.Entry) (out []byte, ours int, err error) {
	j.reset()
	j.text.bad = false
	dst = j.time.append(dst, e.Sec, e.Nsec)
	if j.own.used {
		dst, err = j.appendOwn(dst, e)
		ours = len(j.own.keys)
	}
	if j.time.key != nil {
		ours++
	}
	return dst, ours, err
}

// reset makes the scratch memory ready for a value.
func (j *JSON) reset() {
	j.stack, j.keys, j.slots, j.keyDepth = j.stack[:0], j.keys[:0], j.slots[:0], 0
}

// release gives back what only a very large map needs.
func (j *JSON) release() {
	if cap(j.keys) > maxKeptKeys || cap(j.slots) > 4*maxKeptKeys {
		j.keys, j.slots = nil, nil
	}
}

// run writes until no more than base frames are open and returns the position in b
// that it has reached.
func (j *JSON) run(dst, b []byte, pos, base int) ([]byte, int, error) {
	f := &j.stack[len(j.stack)-1]
	for {
		if f.left == 0 {
			dst = j.closeFrame(dst, f)
			if len(j.stack) == base {
				return dst, pos, nil
			}
			f = &j.stack[len(j.stack)-1]
			continue
		}
		f.left--
		if f.started {
			dst = append(dst, ',')
		}
		f.started = true
		if f.isMap {
			var err error
			from, start := pos, len(dst)
			if dst, pos, err = j.appendKey(dst, b, pos); err != nil {
				return dst, pos, err
			}
			// A key can be a map, and writing it may have moved the stack.
			f = &j.stack[len(j.stack)-1]
			if j.predict.learn && j.keyDepth == 0 {
				place := keyPlace{int32(len(j.stack) - 1), int32(len(j.keys) - f.keys)}
				j.predict.add(b[from:pos], dst[start:], place, !j.text.bad)
			}
			if f.mask != 0 {
				j.noteKey(f, dst, start)
			}
			dst = append(dst, ':')
		}
		h, p := chunk.ReadHead(b, pos)
		switch h.Type {
		case chunk.Str, chunk.Bin:
			pos = p + int(h.N)
			dst = appendText(dst, b, p, int(h.N), &j.text)
		case chunk.Array, chunk.Map:
			if err := j.open(h, len(b)-p); err != nil {
				return dst, pos, err
			}
			pos = p
			f = &j.stack[len(j.stack)-1]
			dst = append(dst, opener(f.isMap))
		case chunk.Invalid:
			return dst, pos, chunk.HeadError(b, pos)
		default:
			dst, pos = appendScalar(dst, b, p, h)
		}
	}
}

// open pushes the frame of an array or map, behind whose head there are room bytes.
func (j *JSON) open(h chunk.Head, room int) error {
	if len(j.stack) >= maxDepth {
		return ErrTooDeep
	}
	f := frame{left: int(h.N), isMap: h.Type == chunk.Map, keys: len(j.keys), slots: len(j.slots)}
	if n := len(j.stack); n > 0 {
		f.due = j.stack[n-1].due + j.stack[n-1].left
	}
	// What is due takes one byte for each value at least. The walker has seen to
	// that; without it, maps inside each other that each announce as much as the
	// bytes could hold would need a table of that size each.
	if f.due+f.left > room {
		return chunk.ErrTruncated
	}
	j.stack = append(j.stack, f)
	if f.isMap && f.left > 1 {
		j.track(&j.stack[len(j.stack)-1], f.left)
	}
	return nil
}

// closeFrame ends the innermost array or map.
func (j *JSON) closeFrame(dst []byte, f *frame) []byte {
	if f.dead > 0 {
		dst = j.dropDead(dst, f)
	}
	end := closer(f.isMap)
	j.keys, j.slots = j.keys[:f.keys], j.slots[:f.slots]
	j.stack = j.stack[:len(j.stack)-1]
	return append(dst, end)
}

func opener(isMap bool) byte {
	if isMap {
		return '{'
	}
	return '['
}

func closer(isMap bool) byte { return opener(isMap) + 2 }

// appendKey appends the key at b[pos:] as a JSON string.
func (j *JSON) appendKey(dst, b []byte, pos int) ([]byte, int, error) {
	h, p := chunk.ReadHead(b, pos)
	switch h.Type {
	case chunk.Str, chunk.Bin:
		return appendText(dst, b, p, int(h.N), &j.text), p + int(h.N), nil
	case chunk.Array, chunk.Map:
		return j.appendCompositeKey(dst, b, p, h)
	case chunk.Invalid:
		return dst, pos, chunk.HeadError(b, pos)
	default:
		start := len(dst)
		dst, pos = appendScalar(dst, b, p, h)
		if dst[start] != '"' {
			dst = quote(dst, start)
		}
		return dst, pos, nil
	}
}

// appendCompositeKey appends an array or map as a key. It is the one place where the
// encoder calls itself, at most maxKeyDepth times.
func (j *JSON) appendCompositeKey(dst, b []byte, pos int, h chunk.Head) ([]byte, int, error) {
	if j.keyDepth == maxKeyDepth {
		return dst, pos, ErrTooDeep
	}
	base := len(j.stack)
	if err := j.open(h, len(b)-pos); err != nil {
		return dst, pos, err
	}
	start := len(dst)
	dst = append(dst, opener(h.Type == chunk.Map))
	j.keyDepth++
	// What is not ASCII is escaped in the end, or a reader would find the escapes in the key.
	escape := j.text.escape
	j.text.escape = false
	dst, pos, err := j.run(dst, b, pos, base)
	j.text.escape = escape
	if err != nil {
		return dst, pos, err
	}
	j.keyDepth--
	dst = quote(dst, start)
	if escape {
		dst = escapeUnicode(dst, start)
	}
	return dst, pos, nil
}

// quote makes dst[start:], which is JSON, the contents of a JSON string. JSON without
// blanks has no control bytes, so only the quotes and backslashes need escaping.
func quote(dst []byte, start int) []byte {
	escapes := 0
	for _, c := range dst[start:] {
		if c == '"' || c == '\\' {
			escapes++
		}
	}
	from := len(dst) - 1
	dst = slices.Grow(dst, escapes+2)[:len(dst)+escapes+2]
	// From the back, so that nothing is overwritten before it has been moved.
	to := len(dst) - 1
	dst[to] = '"'
	for ; from >= start; from-- {
		to--
		dst[to] = dst[from]
		if c := dst[from]; c == '"' || c == '\\' {
			to--
			dst[to] = '\\'
		}
	}
	dst[start] = '"'
	return dst
}

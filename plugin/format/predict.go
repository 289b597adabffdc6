package format

import (
	"slices"

	"out_kafka_reconnect/plugin/chunk"
)

// The limits of what is remembered of a record: the bytes of a key, as msgpack and as JSON with comma and colon, the
// number of keys, and of the arrays and maps inside each other.
const (
	maxRaw   = 94
	maxText  = 96
	maxKnown = 256
	maxLevel = 32
)

// maxRest is how many records at most are written without a prediction after some in a row that were not as predicted.
const maxRest = 31

// prediction expects a record to have the keys of the one before, in their order, as most logs do. A key that is as
// expected is copied from what was written then; and as all of them are, no two of a map are equal, as they were not
// then: so they need no comparing. A record that is not as predicted is written once more from its beginning.
type prediction struct {
	known []knownKey // of the record before, in the order in which they were written; empty if it is no example
	on    bool       // the record at hand is no rest
	learn bool       // its keys are to be remembered
	rest  int        // records to come that are not predicted
	pause int        // as long as the last rest
}

// knownKey is a key of a record before.
type knownKey struct {
	raw             [maxRaw]byte
	text            [maxText]byte // with its quotes, a comma in front and a colon behind
	rawLen, textLen uint8
	place           keyPlace
}

// keyPlace is where a key stands: the depth of its map, and its number in the map. The places of the keys of a record, in
// their order, tell which of them belong to the same map.
type keyPlace struct{ depth, number int32 }

// level is an array or map that is being written as predicted.
type level struct {
	left   int   // elements or pairs not yet begun
	number int32 // of the next key
	isMap  bool
}

// ready tells whether the next record is predicted.
func (p *prediction) ready() bool { return p.rest == 0 && len(p.known) > 0 }

// kept is called when a record was as predicted, failed when it was not and is to be written otherwise.
func (p *prediction) kept()   { p.pause = 0 }
func (p *prediction) failed() { p.known = p.known[:0] }

// begin is called before the keys of a record that is not predicted.
func (p *prediction) begin() {
	if p.on = p.rest == 0; !p.on {
		p.rest--
	}
	p.learn = p.on && len(p.known) == 0
}

// end is called behind them. Records that are not alike cost more than they gain, so there is a rest after such.
func (p *prediction) end() {
	if p.on {
		p.rest = p.pause
		p.pause = min(2*p.pause+1, maxRest)
	}
	p.on, p.learn = false, false
}

// forget drops what is known, as the record at hand is no example.
func (p *prediction) forget() { p.known, p.learn = p.known[:0], false }

// add remembers a key, which is raw in the record. A sound one has no byte that was replaced.
func (p *prediction) add(raw, text []byte, place keyPlace, sound bool) {
	if len(p.known) == maxKnown || len(raw) > maxRaw || len(text)+2 > maxText || !sound {
		p.forget()
		return
	}
	p.known = append(p.known, knownKey{rawLen: uint8(len(raw)), textLen: uint8(len(text)) + 2, place: place})
	k := &p.known[len(p.known)-1]
	copy(k.raw[:], raw)
	k.text[0] = ','
	copy(k.text[1:], text)
	k.text[len(text)+1] = ':'
}

// is tells whether b[pos:] begins with the key, at its place.
func (k *knownKey) is(b []byte, pos int, place keyPlace) bool {
	n := int(k.rawLen)
	return len(b)-pos >= n && string(k.raw[:n]) == string(b[pos:pos+n]) && k.place == place
}

// append appends the key with its colon, and with a comma in front unless it is the first of its map.
func (k *knownKey) append(dst []byte, first bool) []byte {
	dst = slices.Grow(dst, maxText)
	to := dst[len(dst) : len(dst)+maxText]
	skip := 0
	if first {
		skip = 1
	}
	// A move of a fixed size costs less than a call to copy as many as there are.
	*(*[32]byte)(to) = *(*[32]byte)(k.text[skip:])
	if k.textLen > 32 {
		copy(to[32:], k.text[32+skip:])
	}
	return dst[:len(dst)+int(k.textLen)-skip]
}

// runPredicted writes the pairs of the record at b[pos:], behind as many keys of ours, as far as they are as predicted. It
// returns the position in b that it has reached, and whether that is the end.
func (j *JSON) runPredicted(dst, b []byte, pos, pairs, ours int) ([]byte, int, bool) {
	var (
		outer [maxLevel]level
		depth = 0
		in    = level{left: pairs, number: int32(ours), isMap: true}
		first = ours == 0
		known = j.predict.known
		next  = 0 // of them
	)
	for {
		if in.left == 0 {
			dst = append(dst, closer(in.isMap))
			if depth == 0 {
				return dst, pos, true
			}
			depth--
			in, first = outer[depth], false
			continue
		}
		in.left--
		if in.isMap {
			if next == len(known) {
				return dst, pos, false
			}
			k := &known[next]
			if !k.is(b, pos, keyPlace{int32(depth), in.number}) {
				return dst, pos, false
			}
			dst = k.append(dst, first)
			pos += int(k.rawLen)
			next++
			in.number++
		} else if !first {
			dst = append(dst, ',')
		}
		first = false
		h, p := chunk.ReadHead(b, pos)
		switch h.Type {
		case chunk.Str, chunk.Bin:
			pos = p + int(h.N)
			dst = appendText(dst, b, p, int(h.N), &j.text)
		case chunk.Array, chunk.Map:
			if depth == maxLevel {
				return dst, pos, false
			}
			outer[depth] = in
			depth++
			pos, first = p, true
			in = level{left: int(h.N), isMap: h.Type == chunk.Map}
			dst = append(dst, opener(in.isMap))
		case chunk.Invalid:
			return dst, pos, false
		default:
			dst, pos = appendScalar(dst, b, p, h)
		}
	}
}

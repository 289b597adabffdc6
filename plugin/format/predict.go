package format

// The limits of what is remembered of a record: the bytes of a key, as msgpack and as JSON, and the number of keys.
const (
	maxRaw   = 62
	maxText  = 64
	maxKnown = 256
)

// maxRest is how many records at most are written without a prediction after some in a row that were not as predicted.
const maxRest = 31

// prediction expects a record to have the keys of the one before, in their order, as most logs do. A key that is as
// expected is copied from what was written then; and as long as all of them are, no two of a map are equal, as they were not
// then: so they need no comparing.
type prediction struct {
	known []knownKey // of the record before, in the order in which they were written
	next  int        // the one that is expected
	kept  bool       // every key of this record so far was as expected
	on    bool       // this record is predicted, or at least remembered for the next one
	rest  int        // records to come that are not
	pause int        // as long as the last rest
}

// knownKey is a key of a record before.
type knownKey struct {
	raw             [maxRaw]byte
	text            [maxText]byte // with its quotes
	rawLen, textLen uint8         // 0: it is too long to be remembered
	depth, index    int32         // of its map, and in its map
}

// begin is called before the keys of a record.
func (p *prediction) begin() {
	p.on = p.rest == 0
	if !p.on {
		p.rest--
	}
	p.next, p.kept = 0, p.on
}

// end is called behind them. Records that are not alike cost more than they gain, so there is a rest after such.
func (p *prediction) end() {
	switch {
	case !p.on:
	case p.kept:
		p.pause = 0
	default:
		p.rest = p.pause
		p.pause = min(2*p.pause+1, maxRest)
	}
	p.on = false
}

// match returns the expected key if b[pos:] begins with it, at that place; else nil. It is called while all keys are kept.
func (p *prediction) match(b []byte, pos int, depth, index int) *knownKey {
	if p.next >= len(p.known) {
		return nil
	}
	k := &p.known[p.next]
	n := int(k.rawLen)
	if n == 0 || len(b)-pos < n || string(k.raw[:n]) != string(b[pos:pos+n]) || int(k.depth) != depth || int(k.index) != index {
		return nil
	}
	p.next++
	return k
}

// learn remembers a key that was not expected, of a record that is to be remembered. What was known to follow belongs to
// another one.
func (p *prediction) learn(raw, text []byte, depth, index int, sound bool) {
	if p.next >= maxKnown {
		return
	}
	p.known = append(p.known[:p.next], knownKey{})
	k := &p.known[p.next]
	p.next++
	if len(raw) > maxRaw || len(text) > maxText || !sound {
		return
	}
	copy(k.raw[:], raw)
	copy(k.text[:], text)
	k.rawLen, k.textLen, k.depth, k.index = uint8(len(raw)), uint8(len(text)), int32(depth), int32(index)
}

// forget drops what is known, as the record at hand is no example.
func (p *prediction) forget() { p.known, p.on, p.kept = p.known[:0], false, false }

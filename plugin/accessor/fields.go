package accessor

import (
	"errors"

	"out_kafka_reconnect/plugin/chunk"
)

// Ref is a path that [Fields] knows.
type Ref int

// Fields finds the values that a number of paths point to. It is used by one goroutine at a
// time; the zero value knows no path.
//
// If a map has a key twice, the last one counts, as in the JSON value and in Fluent Bit's own
// record accessor. A bin counts as text for a key.
type Fields struct {
	paths          []Path
	root           []int // of each path, index in body or metadata; not used for all of the metadata
	body, metadata level
}

// level is the outermost map, whose values are looked up for all paths at once.
type level struct {
	bytes []byte
	keys  []string
	at    []int // of the value of each key, or -1
}

var errNotMap = errors.New("accessor: the record is not a map")

// Add makes a path known.
func (f *Fields) Add(p Path) Ref {
	root := 0
	if len(p.steps) > 0 {
		root = f.level(p).add(p.steps[0].key)
	}
	f.paths, f.root = append(f.paths, p), append(f.root, root)
	return Ref(len(f.paths) - 1)
}

func (f *Fields) level(p Path) *level {
	if p.metadata {
		return &f.metadata
	}
	return &f.body
}

func (l *level) add(key string) int {
	for i, k := range l.keys {
		if k == key {
			return i
		}
	}
	l.keys, l.at = append(l.keys, key), append(l.at, -1)
	return len(l.keys) - 1
}

// Read looks at a record. An error says that it is none that a [chunk.Walker] gives.
func (f *Fields) Read(e *chunk.Entry) error {
	if err := f.metadata.read(e.Metadata); err != nil {
		return err
	}
	return f.body.read(e.Body)
}

// Forget lets go of the record that was read.
func (f *Fields) Forget() { _ = f.Read(&chunk.Entry{}) } // it has nothing that could be wrong

func (l *level) read(b []byte) error {
	l.bytes = b
	for i := range l.at {
		l.at[i] = -1
	}
	if len(l.keys) == 0 || len(b) == 0 {
		return nil
	}
	h, pos := chunk.ReadHead(b, 0)
	if h.Type != chunk.Map {
		return errNotMap
	}
	for range h.N {
		name, value, err := ReadKey(b, pos)
		if err != nil {
			return err
		}
		if pos, err = chunk.Skip(b, value); err != nil {
			return err
		}
		for i, k := range l.keys {
			if name != nil && string(name) == k {
				l.at[i] = value
				break
			}
		}
	}
	return nil
}

// ReadKey returns the key at b[pos:] if it is text, or nil, and the position of its value. A
// bin counts as text, as it does in the built-in output.
func ReadKey(b []byte, pos int) ([]byte, int, error) {
	h, at := chunk.ReadHead(b, pos)
	if h.Type == chunk.Str || h.Type == chunk.Bin {
		end := at + int(h.N)
		return b[at:end:end], end, nil
	}
	end, err := chunk.Skip(b, pos)
	return nil, end, err
}

// Value returns the bytes and the position in them of the value that a path points to in the
// record that was read, and whether there is one.
func (f *Fields) Value(r Ref) (b []byte, pos int, ok bool) {
	p := &f.paths[r]
	l := f.level(*p)
	if len(p.steps) == 0 {
		return l.bytes, 0, len(l.bytes) > 0
	}
	pos = l.at[f.root[r]]
	for _, s := range p.steps[1:] {
		if pos < 0 {
			break
		}
		pos = s.from(l.bytes, pos)
	}
	return l.bytes, pos, pos >= 0
}

// from goes one level down from the value at b[pos:]; -1 means that there is nothing.
func (s *step) from(b []byte, pos int) int {
	h, pos := chunk.ReadHead(b, pos)
	switch {
	case s.isIndex && h.Type == chunk.Array && uint64(s.index) < h.N:
		for range s.index {
			pos, _ = chunk.Skip(b, pos) // the record was read to its end before
		}
		return pos
	case !s.isIndex && h.Type == chunk.Map:
		return last(b, pos, h.N, s.key)
	}
	return -1
}

// last finds the last value of a key among n pairs, or -1.
func last(b []byte, pos int, n uint64, name string) int {
	found := -1
	for range n {
		k, value, err := ReadKey(b, pos)
		if err != nil {
			return -1
		}
		if k != nil && string(k) == name {
			found = value
		}
		if pos, err = chunk.Skip(b, value); err != nil {
			return -1
		}
	}
	return found
}

// Pairs calls f for the pairs of the map at b[pos:] whose key is text, in their order. It
// tells whether there is a map.
func Pairs(b []byte, pos int, f func(key []byte, value int)) bool {
	h, pos := chunk.ReadHead(b, pos)
	if h.Type != chunk.Map {
		return false
	}
	for range h.N {
		k, value, err := ReadKey(b, pos)
		if err != nil {
			return false
		}
		if pos, err = chunk.Skip(b, value); err != nil {
			return false
		}
		if k != nil {
			f(k, value)
		}
	}
	return true
}

package chunk

// Kind says what an [Entry] is.
type Kind uint8

// The kinds of entries.
const (
	// Record is a log record; it becomes one message.
	Record Kind = iota
	// GroupStart opens a group of records, as Fluent Bit's OpenTelemetry input writes
	// them: the metadata and body describe the group. It is not a record.
	GroupStart
	// GroupEnd closes a group. It is not a record.
	GroupEnd
	// Undecodable is a stretch of bytes that is no record; Reason says why.
	Undecodable
)

// String returns the kind in words, also for a value that is none.
func (k Kind) String() string {
	switch k {
	case Record:
		return "record"
	case GroupStart:
		return "group start"
	case GroupEnd:
		return "group end"
	case Undecodable:
		return "undecodable"
	}
	return "unknown"
}

// Entry is one stretch of a chunk. Its slices point into the chunk.
type Entry struct {
	// Metadata is the msgpack map beside the time, nil in the legacy layout
	// [time, body], which has none.
	Metadata []byte
	// Body is the msgpack map of the record or of the group, nil if undecodable.
	Body []byte
	// Reason is set for an Undecodable entry only, and wraps [ErrNotRecord] or
	// [ErrCorrupt].
	Reason error
	// Offset is the position of the entry's first byte in the chunk.
	Offset int
	// Len is the number of bytes of the entry, at least one.
	Len int
	// Sec is the time of the record in seconds since 1970 (UTC), and Nsec the
	// nanoseconds, 0 to 999,999,999. Both are zero if TimeOK is false.
	Sec  int64
	Nsec int32
	// Kind says what the entry is.
	Kind Kind
	// TimeOK says that the time could be read. A record without a usable time
	// (negative, not a number, past the year 9999, or of an unknown type) is still a
	// record: the caller puts the time of the flush in its place and warns.
	TimeOK bool
}

// Walker goes over the entries of one chunk. It is used by one goroutine at a time;
// the zero value walks over nothing.
type Walker struct {
	chunk []byte
	pos   int
}

// NewWalker returns a walker that stands before the first entry of the chunk.
func NewWalker(chunk []byte) *Walker { return &Walker{chunk: chunk} }

// Reset puts the walker before the first entry of another chunk.
func (w *Walker) Reset(chunk []byte) { w.chunk, w.pos = chunk, 0 }

// Next fills e with the next entry and reports whether there was one. It does so for
// every byte of the chunk before it returns false; an empty chunk has no entry.
func (w *Walker) Next(e *Entry) bool {
	start := w.pos
	if start >= len(w.chunk) {
		return false
	}
	*e = Entry{Offset: start}
	end, err := Skip(w.chunk, start)
	if err != nil {
		end = len(w.chunk)
		e.undecodable(err)
	} else {
		e.decode(w.chunk[start:end:end])
	}
	e.Len = end - start
	w.pos = end
	return true
}

// Peek fills e with the record that the walker stands at as far as it is known without going through its body, which
// reaches to the end of the chunk here and may be cut off. It reports false if there is no record, and changes nothing:
// go on with Take where the end of the body is known, else with Next.
func (w *Walker) Peek(e *Entry) bool {
	*e = Entry{Offset: w.pos}
	e.decode(w.chunk[w.pos:])
	return e.Kind == Record
}

// Take completes the record that Peek has found: the first n bytes of the body are one complete map.
func (w *Walker) Take(e *Entry, n int) {
	w.pos = len(w.chunk) - len(e.Body) + n
	e.Body, e.Len = e.Body[:n:n], w.pos-e.Offset
}

func (e *Entry) undecodable(reason error) {
	e.Kind, e.Reason = Undecodable, reason
}

// decode reads the entry that v begins with. The body is taken to be the rest of v.
func (e *Entry) decode(v []byte) {
	h, pos := ReadHead(v, 0)
	switch {
	case h.Type != Array:
		e.undecodable(errNotArray)
		return
	case h.N != 2:
		e.undecodable(errArrayLen)
		return
	}
	timePos := pos
	if h, inner := ReadHead(v, pos); h.Type == Array {
		if h.N != 2 {
			e.undecodable(errHeaderLen)
			return
		}
		timePos = inner
		metadataPos, err := Skip(v, inner)
		if err == nil {
			pos, err = Skip(v, metadataPos)
		}
		if err != nil {
			e.undecodable(err)
			return
		}
		if m, _ := ReadHead(v, metadataPos); m.Type != Map {
			e.undecodable(errMetadataType)
			return
		}
		e.Metadata = v[metadataPos:pos:pos]
	} else {
		var err error
		if pos, err = Skip(v, pos); err != nil {
			e.undecodable(err)
			return
		}
	}
	if h, _ := ReadHead(v, pos); h.Type != Map {
		e.Metadata = nil
		e.undecodable(errBodyType)
		return
	}
	// The body is the last element, so it ends where the entry does: the largest
	// part of a record is skipped once and not again here.
	e.Body = v[pos:]
	e.readTime(v, timePos)
}

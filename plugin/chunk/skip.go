package chunk

// Skip returns the position behind the whole value at b[pos:], insides included. It
// counts the values that are still due instead of descending, so depth costs
// nothing. The error is [ErrTruncated] or [ErrReserved].
func Skip(b []byte, pos int) (int, error) {
	due := uint64(1)
	for due > 0 {
		if uint(pos) >= uint(len(b)) {
			return pos, ErrTruncated
		}
		c := b[pos]
		if c&0xe0 == 0xa0 {
			// Short texts are most of what is skipped, and their length is had sooner
			// from the byte than from the table.
			pos += 1 + int(c&0x1f)
			due--
			continue
		}
		if s := shapes[c]; s.size != 0 {
			// A payload that goes past the end puts pos there too; the next turn, or
			// the check behind the loop, sees it.
			pos += int(s.size)
			due += uint64(s.elements) - 1
			continue
		}
		size, elements := longShape(c, b, pos)
		if size == 0 {
			return pos, HeadError(b, pos)
		}
		if size > uint64(len(b)-pos) {
			return pos, ErrTruncated
		}
		pos += int(size)
		due += elements - 1
		// Each value due takes one byte at least. Giving up here keeps the counter
		// from overflowing and the loop from running through a hostile array.
		if due > uint64(len(b)-pos) {
			return pos, ErrTruncated
		}
	}
	if pos > len(b) {
		return pos, ErrTruncated
	}
	return pos, nil
}

// longShape returns the size of a value whose length is written behind its first
// byte c, and the number of elements that follow it. The size is 0 if the length
// itself is cut off or c is the reserved byte.
func longShape(c byte, b []byte, pos int) (size, elements uint64) {
	if c == 0xc1 {
		return 0, 0
	}
	width := int(widths[c-0xc0])
	if len(b)-pos-1 < width {
		return 0, 0
	}
	n := bigEndian(b[pos+1 : pos+1+width])
	size = uint64(1 + width)
	switch c {
	case 0xc4, 0xc5, 0xc6, 0xd9, 0xda, 0xdb:
		return size + n, 0
	case 0xc7, 0xc8, 0xc9:
		return size + 1 + n, 0
	case 0xde, 0xdf:
		return size, 2 * n
	}
	return size, n
}

// shape is what the first byte of a value tells about the rest of it.
type shape struct {
	size     uint8 // bytes of the value without its elements; 0 if a length must be read
	elements uint8 // values that follow as its elements
}

// shapes maps a first byte to the shape of its value.
var shapes = func() (t [256]shape) {
	for c := range t {
		switch {
		case c < 0x80 || c >= 0xe0:
			t[c] = shape{size: 1}
		case c < 0x90:
			t[c] = shape{size: 1, elements: uint8(2 * (c & 0x0f))}
		case c < 0xa0:
			t[c] = shape{size: 1, elements: uint8(c & 0x0f)}
		case c < 0xc0:
			t[c] = shape{size: uint8(1 + c&0x1f)}
		case c == 0xc0 || c == 0xc2 || c == 0xc3:
			t[c] = shape{size: 1}
		case c >= 0xca && c <= 0xd3:
			t[c] = shape{size: 1 + widths[c-0xc0]}
		case c >= 0xd4 && c <= 0xd8:
			t[c] = shape{size: 2 + 1<<(c-0xd4)}
		}
	}
	return t
}()

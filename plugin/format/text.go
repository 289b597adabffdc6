package format

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// InvalidUTF8 says what becomes of a byte of a text that is not part of valid UTF-8.
type InvalidUTF8 uint8

const (
	// InvalidReplace writes U+FFFD for each such byte.
	InvalidReplace InvalidUTF8 = iota
	// InvalidRemove leaves it out.
	InvalidRemove
	// InvalidRefuse makes the record fail.
	InvalidRefuse
)

// textStyle is how texts are written.
type textStyle struct {
	escape  bool // what is not ASCII becomes \u escapes
	invalid InvalidUTF8
	bad     bool // a byte was not part of valid UTF-8; set here, cleared by the user
}

// slack is the room behind the text being written: a word is stored whole even if
// only its first bytes count, and the longest escape has twelve bytes.
const slack = 16

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special returns a word whose lowest set bit lies in the first byte of w that cannot
// be copied as it is: a control byte, a quote, a backslash, 0x7f, or one that is not
// ASCII. It is zero if there is none. Bits above the lowest can be false, because
// borrows and carries run into the bytes behind a special one.
func special(w uint64) uint64 {
	return (w | // not ASCII
		(w - 0x20*lows) | // below the blank
		(w ^ '"'*lows - lows) |
		(w ^ '\\'*lows - lows) |
		(w + lows)) & highs // 0x7f
}

// appendText appends the n bytes of b at pos as a JSON string. It takes the whole of
// b to read a short text with one load that may reach into what follows.
func appendText(dst, b []byte, pos, n int, style *textStyle) []byte {
	dst = slices.Grow(dst, n+slack)
	start := len(dst) + 1
	out := dst[:start+n+slack-1]
	out[start-1] = '"'
	src, to := b[pos:pos+n], out[start:]
	var i int
	switch {
	case n >= 16:
		i = copyBlocks(&to[0], &src[0], n)
	case n >= 8:
		i = copyWords(to, src)
	default:
		w := shortWord(b, pos, n)
		binary.LittleEndian.PutUint64(to, w)
		if i = n; special(w) != 0 {
			i = 0
		}
	}
	if i < n {
		return appendSpecial(out[:start], src, i, style)
	}
	to[n] = '"'
	return out[:start+n+1]
}

// copyWords is copyBlocks for eight bytes or more.
func copyWords(dst, src []byte) int {
	last := len(src) - 8 // the last word overlaps the one before it
	for i := 0; ; i = min(i+8, last) {
		w := binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(dst[i:], w)
		if s := special(w); s != 0 {
			return i + bits.TrailingZeros64(s)>>3
		}
		if i == last {
			return len(src)
		}
	}
}

// shortWord returns the n bytes of b at pos, fewer than eight, with blanks behind them.
func shortWord(b []byte, pos, n int) uint64 {
	const blanks = 0x20 * lows
	if pos+8 <= len(b) {
		mask := uint64(1)<<(8*n) - 1
		return binary.LittleEndian.Uint64(b[pos:])&mask | blanks&^mask
	}
	w := uint64(blanks)
	for _, c := range slices.Backward(b[pos : pos+n]) {
		w = w<<8 | uint64(c)
	}
	return w
}

// appendSpecial appends the rest of a text that needs more than copying, and the
// closing quote. The first done bytes need no care and may stand behind dst already.
func appendSpecial(dst, src []byte, done int, style *textStyle) []byte {
	dst = append(dst, src[:done]...)
	for i := done; i < len(src); {
		// The room is for one word and one escape, and is checked in each turn because
		// what is written can be longer than what is read.
		if cap(dst)-len(dst) < slack {
			dst = slices.Grow(dst, len(src)-i+slack)
		}
		n := len(dst)
		c := src[i]
		if c < utf8.RuneSelf && len(src)-i >= 8 {
			w := binary.LittleEndian.Uint64(src[i:])
			out := dst[n : n+slack]
			binary.LittleEndian.PutUint64(out, w)
			s := special(w)
			if s == 0 {
				dst = dst[:n+8]
				i += 8
				if rest := len(src) - i; rest >= 16 && cap(dst)-len(dst) >= rest {
					plain := copyBlocks(&dst[:n+9][n+8], &src[i], rest)
					dst = dst[:n+8+plain]
					i += plain
				}
				continue
			}
			bit := bits.TrailingZeros64(s) &^ 7
			plain := bit >> 3
			c = byte(w >> bit)
			if c < utf8.RuneSelf && escapes[c] != 0 { // in the same turn, as these are common
				binary.LittleEndian.PutUint16(out[plain:], '\\'|uint16(escapes[c])<<8)
				dst = dst[:n+plain+2]
				i += plain + 1
				continue
			}
			dst = dst[:n+plain]
			i += plain
		}
		if c < utf8.RuneSelf {
			dst = appendEscaped(dst, c)
			i++
			continue
		}
		var size int
		dst, size = appendRune(dst, src[i:], style)
		i += size
	}
	return append(dst, '"')
}

// appendRune appends the character that src begins with, which is not ASCII, or deals with
// its first byte as one that is not valid, and returns the number of bytes that it stands
// for. The bytes are appended one by one because a call to copy so few costs more.
func appendRune(dst, src []byte, style *textStyle) ([]byte, int) {
	r, size := utf8.DecodeRune(src)
	if size == 1 {
		style.bad = true
		if style.invalid == InvalidRemove {
			return dst, 1
		}
	}
	switch {
	case style.escape:
		return appendUnicode(dst, r), size
	case size == 2:
		return append(dst, src[0], src[1]), size
	case size == 3:
		return append(dst, src[0], src[1], src[2]), size
	case size == 4:
		return append(dst, src[0], src[1], src[2], src[3]), size
	}
	return append(dst, "\uFFFD"...), 1
}

// appendUnicode appends a character as one \u escape, or as the two of a surrogate pair.
func appendUnicode(dst []byte, r rune) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		dst, r = appendUnicode(dst, high), low
	}
	w := '\\' | 'u'<<8 | uint64(hexPairs[r>>8])<<16 | uint64(hexPairs[r&0xff])<<32
	dst = binary.LittleEndian.AppendUint64(dst, w) // one store, of which six bytes count
	return dst[:len(dst)-2]
}

// escapeUnicode writes the characters of dst[start:] that are not ASCII, all of them valid, as
// \u escapes.
func escapeUnicode(dst []byte, start int) []byte {
	end := len(dst)
	for i := start; i < end; { // the new text grows behind the old one
		r, size := utf8.DecodeRune(dst[i:end])
		if r < utf8.RuneSelf {
			dst = append(dst, byte(r))
		} else {
			dst = appendUnicode(dst, r)
		}
		i += size
	}
	return append(dst[:start], dst[end:]...)
}

// appendCounted appends a text behind the number of its bytes, with U+FFFD for each byte that is
// not part of valid UTF-8.
func appendCounted(dst, text []byte, count func([]byte, int) []byte) []byte {
	if utf8.Valid(text) {
		return append(count(dst, len(text)), text...)
	}
	n := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		n += utf8.RuneLen(r)
		i += size
	}
	dst = count(dst, n)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		dst = utf8.AppendRune(dst, r)
		i += size
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// hexPairs holds the two digits of a byte, the first one in the low bits.
var hexPairs = func() (pairs [256]uint16) {
	for i := range pairs {
		pairs[i] = uint16(hexDigits[i>>4]) | uint16(hexDigits[i&0x0f])<<8
	}
	return pairs
}()

// appendEscaped appends one ASCII byte as the inside of a JSON string.
func appendEscaped(dst []byte, c byte) []byte {
	if e := escapes[c]; e != 0 {
		return append(dst, '\\', e)
	}
	if c >= 0x20 && c != 0x7f {
		return append(dst, c)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0x0f])
}

// escapes holds the letter behind the backslash for the bytes that have a short
// escape. The slash has one too but needs none.
var escapes = [utf8.RuneSelf]byte{
	'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f',
}

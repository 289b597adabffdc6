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

// slack is the room behind the text being written: whole blocks are stored even if only their first bytes count, and the
// longest escape has twelve bytes.
const slack = 48

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
// b to read the end of a text with a load that may reach into what follows.
func appendText(dst, b []byte, pos, n int, style *textStyle) []byte {
	dst = slices.Grow(dst, n+slack)
	start := len(dst) + 1
	out := dst[:cap(dst)]
	out[start-1] = '"'
	read, wrote := escapeSome(out[start:], b, pos, n, !style.escape)
	if read < n {
		return appendCareful(out[:start+wrote], b, pos+read, n-read, style)
	}
	out[start+wrote] = '"'
	return out[:start+wrote+1]
}

// appendCareful appends the rest of a text that needs more than copying, and the closing quote.
func appendCareful(dst, b []byte, pos, n int, style *textStyle) []byte {
	for end := pos + n; pos < end; {
		// Checked in each turn because what is written can be longer than what is read.
		if cap(dst)-len(dst) < slack {
			dst = slices.Grow(dst, end-pos+slack)
		}
		at := len(dst)
		read, wrote := escapeSome(dst[at:cap(dst)], b, pos, end-pos, !style.escape)
		dst = dst[:at+wrote]
		if pos += read; pos == end {
			break
		}
		if c := b[pos]; c < utf8.RuneSelf {
			dst = appendEscaped(dst, c)
			pos++
			continue
		}
		for pos < end && b[pos] >= utf8.RuneSelf { // such characters stand in a row
			var size int
			dst, size = appendRune(dst, b[pos:end], style)
			pos += size
		}
	}
	return append(dst, '"')
}

// copyWords copies the n bytes of b at pos to dst, up to the first one that is special, and returns how many these are. It
// stops sooner where less than slack is left of dst.
func copyWords(dst, b []byte, pos, n int) int {
	for i := 0; i < n; i += 8 {
		if len(dst)-i < slack {
			return i
		}
		var w uint64
		if n-i >= 8 {
			w = binary.LittleEndian.Uint64(b[pos+i:])
		} else {
			w = shortWord(b, pos+i, n-i)
		}
		binary.LittleEndian.PutUint64(dst[i:], w)
		if s := special(w); s != 0 {
			return i + bits.TrailingZeros64(s)>>3
		}
	}
	return n
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

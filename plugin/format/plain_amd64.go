package format

import "unsafe"

// escapeSome writes the text of n bytes that b[pos:] begins with to dst, from its beginning to the first byte that needs
// more care than a short escape or, with pass, a character of two or three bytes that is valid. It may stop sooner. It
// returns how many bytes it has read and written.
func escapeSome(dst, b []byte, pos, n int, pass bool) (read, wrote int) {
	read, wrote = escapeBlocks(unsafe.SliceData(dst), unsafe.SliceData(b[pos:]), n, len(b)-pos, len(dst), pass)
	if read < n && len(b)-pos-read < 16 { // the end of a text that nothing follows
		plain := copyWords(dst[wrote:], b, pos+read, n-read)
		read, wrote = read+plain, wrote+plain
	}
	return read, wrote
}

// escapeBlocks is escapeSome. It stops where fewer than 16 of the readable bytes at src are left, or 32 of the room at dst.
//
//go:noescape
func escapeBlocks(dst, src *byte, n, readable, room int, pass bool) (read, wrote int)

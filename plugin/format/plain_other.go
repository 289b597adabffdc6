//go:build !amd64

package format

// escapeSome writes the text of n bytes that b[pos:] begins with to dst, from its beginning to the first byte that cannot be
// copied as it is. It returns how many bytes it has read and written.
func escapeSome(dst, b []byte, pos, n int, _ bool) (read, wrote int) {
	read = copyWords(dst, b, pos, n)
	return read, read
}

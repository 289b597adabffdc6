//go:build !amd64

package format

import "unsafe"

// copyBlocks copies the n bytes at src to dst, 16 or more, up to the first one that is special, and returns its index; n
// if there is none. It may write behind that byte, but no more than n bytes.
func copyBlocks(dst, src *byte, n int) int {
	return copyWords(unsafe.Slice(dst, n), unsafe.Slice(src, n))
}

package format

// copyBlocks copies the n bytes at src to dst, 16 or more, up to the first one that is special, and returns its index; n
// if there is none. It may write behind that byte, but no more than n bytes.
//
//go:noescape
func copyBlocks(dst, src *byte, n int) int

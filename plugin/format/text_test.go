package format

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// Every length from the shortest on, and every byte at every place: what is copied, where it ends, and that nothing is
// written behind the room.
func TestCopyBlocks(t *testing.T) {
	ways := map[string]func(dst, src []byte) int{
		"blocks": func(dst, src []byte) int { return copyBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), len(src)) },
		"words":  copyWords,
	}
	special := func(c byte) bool { return c < ' ' || c == '"' || c == '\\' || c >= 0x7f }
	rng := rand.New(rand.NewPCG(1, 1))
	for name, copyPlain := range ways {
		for n := 16; n < 100; n++ {
			for at := range n + 1 {
				src := make([]byte, n)
				for i := range src {
					for src[i] = '"'; special(src[i]); src[i] = byte(rng.IntN(256)) {
					}
				}
				if at < n {
					src[at] = byte(rng.IntN(256))
				}
				want := bytes.IndexFunc(src, func(r rune) bool { return r >= 0x7f || special(byte(r)) })
				if want < 0 {
					want = n
				}
				dst := bytes.Repeat([]byte{0xee}, n+16)
				if got := copyPlain(dst[:n:n], src); got != want {
					t.Fatalf("%s: %d for %q, want %d", name, got, src, want)
				}
				if !bytes.Equal(dst[:want], src[:want]) || !bytes.Equal(dst[n:], bytes.Repeat([]byte{0xee}, 16)) {
					t.Fatalf("%s: %q became %q", name, src, dst)
				}
			}
		}
	}
	for c := range 256 { // each byte
		src := bytes.Repeat([]byte("a"), 40)
		src[20] = byte(c)
		want := 40
		if special(byte(c)) {
			want = 20
		}
		for name, copyPlain := range ways {
			if got := copyPlain(make([]byte, 40), src); got != want {
				t.Errorf("%s: %d for the byte %#x, want %d", name, got, c, want)
			}
		}
	}
}

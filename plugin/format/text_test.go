package format

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"unicode/utf8"
)

// byCharacter is appendText without any haste.
func byCharacter(dst, text []byte, style *textStyle) []byte {
	dst = append(dst, '"')
	for len(text) > 0 {
		size := 1
		if text[0] < utf8.RuneSelf {
			dst = appendEscaped(dst, text[0])
		} else {
			dst, size = appendRune(dst, text, style)
		}
		text = text[size:]
	}
	return append(dst, '"')
}

// someText is a text of about n bytes: plain stretches, and what is not plain, alone and in a row.
func someText(rng *rand.Rand, n int) []byte {
	odd := []string{
		"\"", "\\", "\n", "\t", "\r", "\b", "\f", "\x00", "\x1f", "\x7f", "\u0080", "ü", "\u07ff", "\u0800", "€", "\ud7ff", "\ue000", "\uffff",
		"\U00010000", "😀", "\U0010ffff", "\xc0\x80", "\xc1\xbf", "\xc2", "\xdf", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\x80", "\xff",
	}
	var text []byte
	for len(text) < n {
		for range rng.IntN(1 + rng.IntN(40)) {
			text = append(text, byte(0x20+rng.IntN(0x5f)))
		}
		for range rng.IntN(3) {
			text = append(text, odd[rng.IntN(len(odd))]...)
		}
		if rng.IntN(8) == 0 {
			text = append(text, byte(rng.IntN(256)))
		}
	}
	return text[:n]
}

// Texts of all lengths, at the end of what can be read and before it, to where there is room and where there is little.
func TestAppendText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 200_000 {
		text := someText(rng, rng.IntN(1+rng.IntN(200)))
		want := textStyle{escape: rng.IntN(4) == 0, invalid: InvalidUTF8(rng.IntN(3))}
		got := want
		before, behind := rng.IntN(20), rng.IntN(2)*rng.IntN(40)
		b := slices.Concat(bytes.Repeat([]byte{'"'}, before), text, bytes.Repeat([]byte{0x80}, behind))
		b = b[:len(b):len(b)]
		room := 2 + rng.IntN(2)*rng.IntN(10*len(text)+100)
		memory := make([]byte, room+100)
		out := appendText(memory[:2:room], b, before, len(text), &got)
		wanted := byCharacter([]byte{0, 0}, text, &want)
		if !bytes.Equal(out, wanted) || got != want {
			t.Fatalf("%d: %q: %q, %+v; want %q, %+v", i, text, out, got, wanted, want)
		}
		if !bytes.Equal(memory[room:], make([]byte, 100)) {
			t.Fatalf("%q: written behind the room", text)
		}
	}
}

// Neither is anything read behind the bytes that there are, nor written behind the room, wherever both end.
func TestEscapeSome_KeepsToItsBytes(t *testing.T) {
	src, dst := guarded(t), guarded(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		text := someText(rng, 1+rng.IntN(100))
		b := src[len(src)-len(text)-rng.IntN(20):]
		copy(b, text)
		room := dst[len(dst)-rng.IntN(200):]
		if read, wrote := escapeSome(room, b, 0, len(text), rng.IntN(2) == 0); read > len(text) || wrote > len(room) {
			t.Fatalf("read %d of %d, wrote %d of %d", read, len(text), wrote, len(room))
		}
	}
}

// guarded is memory behind which there is none.
func guarded(t *testing.T) []byte {
	t.Helper()
	size := os.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, 2*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err == nil {
		err = syscall.Mprotect(memory[size:], syscall.PROT_NONE)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(memory) })
	return memory[:size:size]
}

// Every byte, at every place, in texts of all lengths.
func TestCopyWords(t *testing.T) {
	for n := range 40 {
		for at := range n {
			for c := range 256 {
				b := bytes.Repeat([]byte{'a'}, n)
				b[at] = byte(c)
				want := n
				if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
					want = at
				}
				for _, b := range [][]byte{b[:n:n], append(b, "\"and more"...)} {
					dst := make([]byte, n+slack)
					if got := copyWords(dst, b, 0, n); got != want || !bytes.Equal(dst[:got], b[:got]) {
						t.Fatalf("%d of %q: %d, %q; want %d", n, b, got, dst[:got], want)
					}
				}
			}
		}
	}
}

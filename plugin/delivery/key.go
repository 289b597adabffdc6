package delivery

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Key identifies a chunk by its tag and its bytes: Fluent Bit hands the same ones over at
// every attempt, also after a restart.
type Key struct {
	hash xxh3.Uint128
	size int
}

// KeyOf returns the key of a chunk. It reads every byte, about 0.1 ms for a megabyte.
func KeyOf(tag string, chunk []byte) Key {
	h := xxh3.New()
	_, _ = h.WriteString(tag)
	_, _ = h.Write([]byte{0}) // a tag holds no NUL: "ab"+"c" is not "a"+"bc"
	_, _ = h.Write(chunk)
	return Key{h.Sum128(), len(chunk)}
}

// KeyFrom makes the key that has this hash and size.
func KeyFrom(hash [16]byte, size int) Key {
	return Key{xxh3.Uint128{Hi: binary.BigEndian.Uint64(hash[:8]), Lo: binary.BigEndian.Uint64(hash[8:])}, size}
}

// Hash is the hash of the tag and the bytes.
func (k Key) Hash() [16]byte { return k.hash.Bytes() }

// Size is the number of bytes of the chunk.
func (k Key) Size() int { return k.size }

// Glimpse is what can be told of a chunk without reading it all: two chunks with different
// glimpses differ, two with the same are probably one.
type Glimpse uint64

// glimpsed is how much of either end of a chunk is looked at.
const glimpsed = 256

// GlimpseOf returns the glimpse of a chunk in a fraction of a microsecond.
func GlimpseOf(tag string, chunk []byte) Glimpse {
	head, tail := chunk, chunk
	if len(chunk) > glimpsed {
		head, tail = chunk[:glimpsed], chunk[len(chunk)-glimpsed:]
	}
	h := xxh3.HashStringSeed(tag, uint64(len(chunk)))
	return Glimpse(xxh3.HashSeed(tail, xxh3.HashSeed(head, h)))
}

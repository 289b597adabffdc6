package format

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
)

// keyText is a key of an open map: its place in the output, where its text can be
// compared with, and its hash.
type keyText struct {
	start, end int // of the text with its quotes
	hash       uint32
	dead       bool // a later entry has the same key
}

func (j *JSON) hash(key []byte) uint32 { return uint32(maphash.Bytes(j.seed, key)) }

// track gives a map a hash table with room for n keys. Its cost follows the number of
// pairs, so it pays for small maps and stays linear for a map of a million keys.
func (j *JSON) track(f *frame, n int) {
	size := 1 << bits.Len(uint(2*n-1))
	f.mask = size - 1
	end := f.slots + size
	j.slots = slices.Grow(j.slots, size)[:end]
	clear(j.slots[f.slots:end])
}

// noteKey remembers the key that begins at start and ends where dst does. An earlier
// entry with the same text is marked dead: the last one of a key is the one that
// stays. The slots hold the index of a key in its map plus one.
func (j *JSON) noteKey(f *frame, dst []byte, start int) {
	key := dst[start:]
	hash := j.hash(key)
	slots := j.slots[f.slots : f.slots+f.mask+1]
	number := uint32(len(j.keys) - f.keys + 1)
	i := int(hash) & f.mask
	for slots[i] != 0 {
		old := &j.keys[f.keys+int(slots[i])-1]
		if old.hash == hash && bytes.Equal(dst[old.start:old.end], key) {
			old.dead = true
			f.dead++
			j.predict.forget()
			break
		}
		i = (i + 1) & f.mask
	}
	slots[i] = number
	j.keys = append(j.keys, keyText{start: start, end: len(dst), hash: hash})
}

// place puts a key into the hash table of its map, in which no key is equal to it.
func (j *JSON) place(f *frame, number int) {
	i := int(j.keys[number].hash) & f.mask
	for j.slots[f.slots+i] != 0 {
		i = (i + 1) & f.mask
	}
	j.slots[f.slots+i] = uint32(number - f.keys + 1)
}

// placeOwnKeys remembers the keys of our own fields behind the time. They are the first of
// their text.
func (j *JSON) placeOwnKeys(f *frame) {
	for _, k := range j.own.keys {
		j.keys = append(j.keys, k)
		j.place(f, len(j.keys)-1)
	}
}

// dropDead closes the gaps of the dead entries of the innermost map. Each entry is
// moved together with the comma behind it. The last entry has none and is never dead,
// because nothing comes after it; so the commas stay right.
func (j *JSON) dropDead(dst []byte, f *frame) []byte {
	keys := j.keys[f.keys:]
	to := keys[0].start
	for i, k := range keys {
		if k.dead {
			continue
		}
		end := len(dst)
		if i+1 < len(keys) {
			end = keys[i+1].start
		}
		to += copy(dst[to:], dst[k.start:end])
	}
	return dst[:to]
}

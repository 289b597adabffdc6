package parity

import (
	"math/rand/v2"

	"out_kafka_reconnect/plugin/chunk/chunktest"
)

// The functions of this file write msgpack values, as strings that go together.

func str(s string) string           { return string(chunktest.Str(nil, s)) }
func bin(s string) string           { return string(chunktest.Bin(nil, s)) }
func num(n int64) string            { return string(chunktest.Int(nil, n)) }
func unsigned(n uint64) string      { return string(chunktest.Uint(nil, n)) }
func double(f float64) string       { return string(chunktest.Float64(nil, f)) }
func single(f float32) string       { return string(chunktest.Float32(nil, f)) }
func ext(typ int8, s string) string { return string(chunktest.Ext(nil, typ, s)) }

const (
	null = "\xc0"
	no   = "\xc2"
	yes  = "\xc3"
)

// list is an array of values.
func list(values ...string) string { return join(chunktest.Array(nil, len(values)), values) }

// dict is a map of keys and values in turn.
func dict(pairs ...string) string { return join(chunktest.Map(nil, len(pairs)/2), pairs) }

// named is a map whose keys are texts.
func named(pairs ...string) string { return dict(keyed(pairs)...) }

// keyed makes texts of the names before the values.
func keyed(pairs []string) []string {
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = str(pairs[i])
	}
	return pairs
}

func join(head []byte, parts []string) string {
	for _, p := range parts {
		head = append(head, p...)
	}
	return string(head)
}

// noon is the time of records that are not about time.
const (
	noonSec  = 1_700_000_000
	noonNsec = 123_456_789
)

func eventTime(sec, nsec uint32) string { return string(chunktest.Time(nil, sec, nsec)) }

// entry is a record in the present layout, at noon.
func entry(body string) string { return entryAt(eventTime(noonSec, noonNsec), body) }

func entryAt(time, body string) string { return list(list(time, dict()), body) }

// describedEntry is a record with metadata.
func describedEntry(metadata, body string) string {
	return list(list(eventTime(noonSec, noonNsec), metadata), body)
}

// someValue is a value of any kind, for records that nobody thought of.
func someValue(r *rand.Rand, depth int) string {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}
	switch r.IntN(kinds) {
	case 0:
		return []string{null, yes, no}[r.IntN(3)]
	case 1:
		return num(int64(r.Uint64()) >> r.IntN(64))
	case 2:
		return double(float64(r.Int64()>>r.IntN(64)) / float64(int64(1)<<r.IntN(60)))
	case 3:
		return single(float32(r.IntN(1000)) / 7)
	case 4:
		return str(someText(r))
	case 5:
		return bin(someText(r))
	case 6:
		return ext(int8(1+r.IntN(100)), someText(r))
	case 7:
		values := make([]string, r.IntN(4))
		for i := range values {
			values[i] = someValue(r, depth-1)
		}
		return list(values...)
	}
	var pairs []string
	for i := range r.IntN(4) {
		pairs = append(pairs, string(rune('a'+i))+someText(r), someValue(r, depth-1))
	}
	return named(pairs...)
}

// someText is a text of odd letters, valid or not.
func someText(r *rand.Rand) string {
	pieces := []string{"a", "Z9", " ", "\"", "\\", "/", "\n", "\x00", "\x1f", "\x7f", "é", "日", "😀", "\u2028", "\xff", "\xed\xa0\x80", "\xe6\x97"}
	var text string
	for range r.IntN(6) {
		text += pieces[r.IntN(len(pieces))]
	}
	return text
}

package format

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
)

// keysOfRecords are few, so that they are repeated within a map, at other places and at other depths.
var keysOfRecords = []string{"a", "b", "c", "kubernetes", "ä\"", strings.Repeat("k", 70), "bad\xff", "@timestamp", "tag"}

// randomValue appends any value of few keys.
func randomValue(b []byte, rng *rand.Rand, depth int) []byte {
	switch kind := rng.IntN(6); {
	case kind == 0 && depth < 4:
		n := rng.IntN(4)
		b = chunktest.Map(b, n)
		for range n {
			b = randomValue(randomKey(b, rng, depth+1), rng, depth+1)
		}
		return b
	case kind == 1 && depth < 4:
		n := rng.IntN(3)
		b = chunktest.Array(b, n)
		for range n {
			b = randomValue(b, rng, depth+1)
		}
		return b
	}
	return chunktest.Uint(b, uint64(rng.IntN(100)))
}

func randomKey(b []byte, rng *rand.Rand, depth int) []byte {
	switch rng.IntN(40) {
	case 0:
		return chunktest.Uint(b, 7)
	case 1:
		return randomValue(b, rng, depth)
	}
	return chunktest.Str(b, keysOfRecords[rng.IntN(len(keysOfRecords))])
}

// A record is written as if there had been none before it, whatever its predecessors were.
func TestJSON_PredictionChangesNothing(t *testing.T) {
	configs := []JSONConfig{
		{},
		{TimestampKey: "@timestamp", EscapeUnicode: true, InvalidUTF8: InvalidRefuse},
		{TimestampKey: "@timestamp", TagKey: "tag"},
		{TagKey: "tag", MetadataKey: "a", InvalidUTF8: InvalidRemove},
	}
	for i, c := range configs {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		used := NewJSON(c)
		predicted := 0
		var recent [][]byte // records of some shapes, which come again and again
		for range 30_000 {
			var body []byte
			if len(recent) > 0 && rng.IntN(4) > 0 {
				body = slices.Clone(recent[rng.IntN(len(recent))])
			} else {
				n := rng.IntN(6)
				body = chunktest.Map(nil, n)
				for range n {
					body = randomValue(randomKey(body, rng, 1), rng, 1)
				}
				recent = append(recent, body)
				recent = recent[max(0, len(recent)-2):]
			}
			e := &chunk.Entry{Body: body, Sec: 1, TimeOK: true, Metadata: chunktest.Map(nil, 0)}
			if rng.IntN(3) == 0 {
				e.Metadata = chunktest.Uint(chunktest.Str(chunktest.Map(nil, 1), "m"), 1)
			}
			if rng.IntN(4) > 0 {
				used.predict.rest = 0
			}
			got, gotErr := used.AppendValue(nil, e)
			want, wantErr := NewJSON(c).AppendValue(nil, e)
			if string(got) != string(want) || gotErr != wantErr { //nolint:errorlint // they are the same variables
				t.Fatalf("%+v, %x:\n got %s, %v\nwant %s, %v", c, body, got, gotErr, want, wantErr)
			}
			if used.predict.pause == 0 && used.predict.rest == 0 && len(used.predict.known) > 2 {
				predicted++
			}
		}
		if c.MetadataKey == "" && predicted < 200 {
			t.Errorf("%+v: only %d records were as predicted: nothing is shown", c, predicted)
		}
	}
}

// Keys that each map has once at its place must not hide that another map has one twice.
func TestJSON_PredictionFindsDuplicates(t *testing.T) {
	str, num := chunktest.Str, chunktest.Uint
	one := func(keys ...string) []byte { // a map of numbers
		b := chunktest.Map(nil, len(keys))
		for i, k := range keys {
			b = num(str(b, k), uint64(i))
		}
		return b
	}
	list := func(maps ...[]byte) []byte { // {"l":[…]}
		b := chunktest.Array(str(chunktest.Map(nil, 1), "l"), len(maps))
		return slices.Concat(append([][]byte{b}, maps...)...)
	}
	for _, test := range []struct {
		before [][]byte
		body   []byte
		want   string
	}{
		{[][]byte{list(one("x"), one("x"))}, list(one("x", "x")), `{"l":[{"x":1}]}`},
		{[][]byte{list(one("x"), one("y", "x"))}, list(one("x", "y", "x")), `{"l":[{"y":1,"x":2}]}`},
		{[][]byte{one("a", "b", "c", "d"), one("a", "d")}, one("a", "d", "c", "d"), `{"a":0,"c":2,"d":3}`},
		{[][]byte{one("a", "b"), one("a", "b")}, one("a", "b", "a"), `{"b":1,"a":2}`},
		{[][]byte{one("a", "a"), one("a", "a")}, one("a", "a"), `{"a":1}`},
	} {
		j := NewJSON(JSONConfig{})
		for _, body := range append(test.before, test.body) {
			got, err := j.AppendValue(nil, &chunk.Entry{Body: body})
			if err != nil {
				t.Fatal(err)
			}
			if &body[0] == &test.body[0] && string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		}
	}
}

// Records at the limits of what is remembered are written as any other, and those within them are predicted.
func TestJSON_PredictionLimits(t *testing.T) {
	str, num := chunktest.Str, chunktest.Uint
	long := func(k string) []byte { // it stands first and second
		b := num(str(chunktest.Map(nil, 2), k), 1)
		return num(str(b, k+"2"), 2)
	}
	many := func(n int) []byte {
		b := chunktest.Map(nil, n)
		for i := range n {
			b = num(str(b, strconv.Itoa(i)), uint64(i))
		}
		return b
	}
	deep := func(n int) []byte {
		b := []byte(nil)
		for range n {
			b = str(chunktest.Map(b, 1), "k")
		}
		return num(b, 1)
	}
	heavy := func(n int) []byte { // the key has a head of five bytes
		b := binary.BigEndian.AppendUint32(append(chunktest.Map(nil, 1), 0xdb), uint32(n))
		return num(append(b, strings.Repeat("k", n)...), 1)
	}
	type shape struct {
		name      string
		body      []byte
		predicted bool
	}
	var shapes []shape
	for n := range 110 {
		// A text has quotes, a comma and a colon more than the key.
		shapes = append(shapes, shape{fmt.Sprintf("a key of %d", n), long(strings.Repeat("k", n)), n+1+4 <= maxText && n+1+2 <= maxRaw})
		shapes = append(shapes, shape{fmt.Sprintf("a key of %d quotes", n), long(strings.Repeat(`"`, n)), 2*n+1+4 <= maxText})
		shapes = append(shapes, shape{fmt.Sprintf("a key of %d with a long head", n), heavy(n), n+5 <= maxRaw})
	}
	for n := maxKnown - 2; n <= maxKnown+2; n++ {
		shapes = append(shapes, shape{fmt.Sprintf("%d keys", n), many(n), n <= maxKnown})
	}
	for n := maxLevel - 2; n <= maxLevel+3; n++ {
		shapes = append(shapes, shape{fmt.Sprintf("depth %d", n), deep(n), n <= maxLevel+1})
	}
	for _, s := range shapes {
		want, err := NewJSON(JSONConfig{}).AppendValue(nil, &chunk.Entry{Body: s.body})
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		used := NewJSON(JSONConfig{})
		for range 4 {
			used.predict.rest = 0
			got, err := used.AppendValue(nil, &chunk.Entry{Body: s.body})
			if err != nil || string(got) != string(want) {
				t.Fatalf("%s:\n got %s, %v\nwant %s", s.name, got, err, want)
			}
		}
		if got := used.predict.pause == 0 && used.predict.ready(); got != s.predicted {
			t.Errorf("%s: predicted %t, want %t", s.name, got, s.predicted)
		}
	}
}

package plugin

import (
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
)

// lender counts what is lent and not returned.
type lender struct {
	t   *testing.T
	out map[*byte]bool
}

func (l *lender) Lend(size int) []byte {
	b := make([]byte, 0, size)
	l.out[&b[:1][0]] = true
	return b
}

func (l *lender) Return(b []byte) {
	at := &b[:1][0]
	if !l.out[at] {
		l.t.Error("something comes back that is not lent")
	}
	delete(l.out, at)
}

// keep does what a client does that keeps the bytes of a batch.
func (l *lender) keep(b *reconnect.Batch) {
	delete(l.out, &b.Data[0])
	b.Data, b.Lent = nil, false
}

// What is lent is used again, kept by a client, or given back; whatever a chunk becomes fits.
func TestRoom(t *testing.T) {
	mem := &lender{t, map[*byte]bool{}}
	r, b := room{memory: mem}, &reconnect.Batch{}
	fill := func(size, become int) {
		r.begin(b, size)
		b.Data = append(b.Data, make([]byte, become)...)
		r.end(b, size)
	}
	want := func(when string, lent bool, out int) {
		t.Helper()
		if b.Lent != lent || len(mem.out) != out {
			t.Errorf("%s: lent %v, %d blocks are out; want %v and %d", when, b.Lent, len(mem.out), lent, out)
		}
	}
	fill(100_000, 140_000)
	want("the first chunk", true, 1)
	first := &b.Data[0]
	fill(100_000, 100_000)
	if want("another one, as nobody kept the first", true, 1); &b.Data[0] != first {
		t.Error("the memory is not used again")
	}
	mem.keep(b)
	fill(100_000, 100_000)
	if want("one after the client kept one", true, 1); &b.Data[0] == first {
		t.Error("memory of the client's is used")
	}
	fill(100_000, 900_000)
	want("one that becomes more than was expected", false, 0)
	fill(100_000, 900_000)
	want("the next one of the kind", true, 1)
	mem.keep(b)
	if n := r.drop(b); n != 0 {
		t.Errorf("%d bytes were dropped: a chunk that was more than expected has left a buffer that nothing needs", n)
	}
	fill(100_000, 1_900_000)
	if n := r.drop(b); n < 1_900_000 {
		t.Errorf("%d bytes were dropped, want those of the chunk too that was more than expected", n)
	}
	fill(100_000, 100_000)
	want("after a drop", true, 1)
	r.drop(b)
	want("at the end", false, 0)
}

// What a client keeps is memory of about the size of the messages, which is what counts against queue_limit.
func TestRoom_IsOfTheSizeOfTheMessages(t *testing.T) {
	const small, large = 20_000, 4_000_000
	for name, before := range map[string][2]int{
		"after a large chunk that no client kept":        {large, large},
		"after a chunk that is nearly nothing":           {20, 2_000},
		"after a large chunk of which nothing is usable": {large, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, b := room{memory: &lender{t, map[*byte]bool{}}}, &reconnect.Batch{}
			for _, size := range []int{small, large} {
				r.begin(b, before[0])
				b.Data = append(b.Data, make([]byte, before[1])...)
				r.end(b, before[0])
				r.begin(b, size)
				if n := cap(b.Data); n < size || n > 4*(size+roomMargin) {
					t.Errorf("%d bytes are lent for a chunk of %d", n, size)
				}
				b.Data = append(b.Data, make([]byte, size)...)
				r.end(b, size)
				r.drop(b)
			}
		})
	}
}

// An encoder without memory that is lent writes the same.
func TestEncoder_LentMemoryChangesNothing(t *testing.T) {
	chunk := records(1, 500)
	var texts []string
	for _, mem := range []reconnect.Memory{nil, &lender{t, map[*byte]bool{}}} {
		e, err := newEncoder(decode(t, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		e.room.memory = mem
		for range 3 {
			texts = append(texts, string(e.encode(chunk, "tag", time.Unix(1, 0)).Data))
		}
	}
	for _, text := range texts {
		if text != texts[0] || !strings.Contains(text, "seq") {
			t.Fatalf("%.100s… and %.100s…", texts[0], text)
		}
	}
}

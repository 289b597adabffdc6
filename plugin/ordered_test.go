package plugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/plugin/delivery"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// bigChunk is a chunk of one record that takes more than half of a queue of 1 MiB.
func bigChunk(text string) []byte { return record(strings.Repeat(text, 600_000)) }

// firsts are the first letters of the numbers that were stored, in their order.
func (b *bench) firsts() []string {
	var out []string
	for _, m := range b.net.Messages() {
		_, text, _ := strings.Cut(m.Value, `"seq":"`)
		out = append(out, text[:1])
	}
	return out
}

// bringAll flushes chunks in the order of the list until all are answered with OK, as Fluent Bit does after an outage: in
// any order.
func (b *bench) bringAll(chunks map[string][]byte, order ...string) {
	b.t.Helper()
	for round := 0; len(order) > 0; round++ {
		if round == 100 {
			b.t.Fatalf("chunks %v do not come to their end", order)
		}
		order = slices.DeleteFunc(order, func(name string) bool { return b.Flush(chunks[name], "tag", false) == OK })
		time.Sleep(time.Second)
	}
}

// While all brokers are down, chunks are refused for want of room. They come back in any order, and a small one finds room
// before a large one that came first.
func TestOrdered_RefusedChunksKeepTheirOrder(t *testing.T) {
	for _, mode := range []reconnecttest.Mode{reconnecttest.Down, reconnecttest.Mute} {
		inBubble(t, settings{"ordered": "on", "queue_limit": "1MiB"}, func(b *bench) {
			b.net.Set(mode)
			time.Sleep(5 * time.Second)
			chunks := map[string][]byte{"a": bigChunk("a"), "b": bigChunk("b"), "c": bigChunk("c"), "d": record("d"), "e": record("e")}
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				b.flush(chunks[name], false, Retry)
			}
			b.net.Set(reconnecttest.Serving)
			b.net.Cut()
			time.Sleep(10 * time.Second)
			b.bringAll(chunks, "e", "d", "c", "b", "a")
			if got, want := b.firsts(), []string{"a", "b", "c", "d", "e"}; !slices.Equal(got, want) {
				t.Errorf("mode %v: stored %v, want %v", mode, got, want)
			}
		})
	}
}

// Without the option a chunk that finds room goes first: that is what the option costs.
func TestOrdered_IsAChoice(t *testing.T) {
	inBubble(t, settings{"queue_limit": "1MiB"}, func(b *bench) {
		b.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		chunks := map[string][]byte{"a": bigChunk("a"), "b": bigChunk("b"), "d": record("d")}
		for _, name := range []string{"a", "b", "d"} {
			b.flush(chunks[name], false, Retry)
		}
		b.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		b.bringAll(chunks, "d", "b", "a")
		if got, want := b.firsts(), []string{"a", "d", "b"}; !slices.Equal(got, want) {
			t.Errorf("stored %v, want %v", got, want)
		}
	})
}

// One chunk at a time is in the client's hands: the next one follows the acknowledgement.
func TestOrdered_OneChunkAtATime(t *testing.T) {
	inBubble(t, settings{"ordered": "on"}, func(b *bench) {
		b.net.AckDelay = time.Second
		for i := range 5 {
			b.flush(records(10*i, 10), false, Retry)
			if n := b.sup.Outstanding(); n != 10 {
				t.Errorf("%d records in the client's hands", n)
			}
		}
		time.Sleep(6 * time.Second)
		for i := range 5 {
			b.flush(records(10*i, 10), false, OK)
		}
		b.wantStored(50)
	})
}

// A chunk that does not come back, as its Retry_Limit is reached, holds the others up for ordered_wait and no longer.
func TestOrdered_AChunkThatStaysAwayIsGivenUp(t *testing.T) {
	inBubble(t, settings{"ordered": "on", "queue_limit": "1MiB", "ordered_wait": "1m"}, func(b *bench) {
		b.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		chunks := map[string][]byte{"a": bigChunk("a"), "b": bigChunk("b"), "d": record("d")}
		for _, name := range []string{"a", "b", "d"} {
			b.flush(chunks[name], false, Retry)
		}
		b.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		b.flush(chunks["a"], false, OK)
		b.flush(chunks["d"], false, Retry)
		time.Sleep(time.Minute)
		b.flush(chunks["d"], false, OK)
		if n := b.host.count("are no longer waited for, later ones go first"); n != 1 {
			t.Errorf("%d lines; log %q", n, b.host.lines)
		}
		b.flush(chunks["b"], false, OK) // better late than never
	})
}

func TestLine(t *testing.T) {
	l := delivery.NewLine(time.Hour)
	key := func(n int) delivery.Key { return delivery.KeyOf("tag", fmt.Append(nil, n)) }
	pass := func(n int, want bool) {
		t.Helper()
		if may, skipped := l.Turn(key(n)); may != want || skipped != 0 {
			t.Fatalf("chunk %d: may %v, want %v; %d skipped", n, may, want, skipped)
		}
	}
	pass(1, true) // an empty line holds nobody up
	l.Passed(key(1))
	pass(2, true)
	l.Refused(key(2))
	pass(3, false)
	pass(4, false)
	l.Passed(key(4)) // it was not its turn
	pass(3, false)
	pass(2, true)
	l.Passed(key(2))
	pass(4, false)
	pass(3, true)
	l.Passed(key(3))
	pass(4, true)
	l.Passed(key(4))
	pass(5, true)
}

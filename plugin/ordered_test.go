package plugin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// After an outage with more than fits, new chunks keep coming while the old ones come back one by
// one: it must catch up as soon as those are all back.
func TestOrdered_CatchesUpUnderTraffic(t *testing.T) {
	inBubble(t, settings{"ordered": "on", "queue_limit": "1MiB"}, func(b *bench) {
		b.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		var waiting [][]byte
		next := 0
		tick := func() {
			chunk := records(10*next, 10)
			if next < 5 {
				chunk = bigChunk(fmt.Sprint(next))
			}
			next++
			if b.Flush(chunk, "tag", false) != OK {
				waiting = append(waiting, chunk)
			}
		}
		retry := func() { // in the reverse order
			slices.Reverse(waiting)
			waiting = slices.DeleteFunc(waiting, func(c []byte) bool { return b.Flush(c, "tag", false) == OK })
		}
		for range 15 {
			tick()
			time.Sleep(time.Second)
		}
		b.net.Set(reconnecttest.Serving)
		for second := range 60 {
			tick()
			if second%10 == 9 {
				retry()
			}
			time.Sleep(time.Second)
		}
		retry()
		time.Sleep(5 * time.Second)
		retry()
		if len(waiting) != 0 {
			t.Errorf("%d chunks still wait a minute after the outage", len(waiting))
		}
		last := -1
		for _, m := range b.net.Messages() {
			_, text, _ := strings.Cut(m.Value, `"seq":"`)
			number, err := strconv.Atoi(strings.TrimRight(text, `"}`))
			if err != nil || number < 50 {
				continue // a big one
			}
			if number < last {
				t.Fatalf("%d stands behind %d", number, last)
			}
			last = number
		}
	})
}

// Fluent Bit's default is to give a chunk up after its second attempt. Those that were given up
// must not take the later ones along.
func TestOrdered_LosesNoMoreThanTheHostGivesUp(t *testing.T) {
	inBubble(t, settings{"ordered": "on", "queue_limit": "1MiB", "ordered_wait": "1m"}, func(b *bench) {
		b.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		for i := range 5 { // flushed twice, then dropped
			chunk := bigChunk(fmt.Sprint(i))
			b.flush(chunk, false, Retry)
			b.flush(chunk, false, Retry)
		}
		b.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		for i := range 40 {
			chunk := records(100*i, 10)
			if b.Flush(chunk, "tag", false) != OK {
				b.Flush(chunk, "tag", false)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		if n := len(b.stored()); n < 400 {
			t.Errorf("%d records stored", n)
		}
	})
}

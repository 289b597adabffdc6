package plugin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// account is what a broker and the model know of each content. Every chunk has one content
// in all of its records, and several chunks may have the same.
type account struct {
	mu sync.Mutex
	// copies[v][i] is how often record i of content v was written; all copies of a content
	// have the same records, so that a complete delivery adds one to each.
	copies map[string]int
	// again[v] is how many more copies there may be: the report said "possibly persisted".
	again map[string]int
	// chunks[v] is how many chunks have the content, ok[v] how many were answered with OK.
	chunks, ok map[string]int
}

func newAccount() *account {
	return &account{copies: map[string]int{}, again: map[string]int{}, chunks: map[string]int{}, ok: map[string]int{}}
}

// judge is what the broker makes of a record: mostly it writes it, sometimes it reports one
// of the things that a broker or a client reports.
func (a *account) judge(rng *rand.Rand, m reconnecttest.Message, company bool) *reconnect.Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch n := rng.IntN(100); {
	case n < 80:
		a.copies[m.Value]++
		return nil
	case n < 85: // expired or purged before it was sent
		return &reconnect.Failure{Class: fsm.ClassTransient, Code: -192, Text: "timed out in the queue"}
	case n < 90: // written, and the answer was lost
		a.copies[m.Value]++
		a.again[m.Value]++
		return &reconnect.Failure{Class: fsm.ClassTransient, Code: -151, Status: reconnect.PossiblyPersisted, Text: "purged in flight"}
	case n < 93:
		return &reconnect.Failure{Class: fsm.ClassTopic, Code: 3, Text: "unknown topic"}
	case n < 96 && company: // a batch mate is bad
		return &reconnect.Failure{Class: fsm.ClassRecord, Code: 10, Text: "batch too large"}
	case n < 98: // the broker had it before the connection broke
		a.copies[m.Value]++
		return &reconnect.Failure{Class: fsm.ClassTransient, Code: -151, Status: reconnect.Persisted, Text: "purged in flight"}
	default:
		a.copies[m.Value]++
		return nil
	}
}

const recordsEach = 6

// contentChunk is a chunk of records that all tell the content and their number.
func contentChunk(content, padding int) (chunk []byte, values []string) {
	pad := strings.Repeat("x", padding)
	for i := range recordsEach {
		text := fmt.Sprintf("%d/%d%s", content, i, pad)
		chunk = append(chunk, record(text)...)
		values = append(values, `{"@timestamp":1700000000.0,"seq":"`+text+`"}`)
	}
	return chunk, values
}

// Random interleavings of flush, retry, drop, report, expiry, outage, lost clients and
// reload against a model. Whatever happens, every OK stands for one complete delivery, and
// nothing is written twice unless a report said that it may have been.
func TestProperty_EveryOKIsOneDelivery(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runProperty(t, seed) })
	}
}

func runProperty(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	s := settings{
		"queue_limit": "1MiB", "custody_limit": "1MiB", "receipt_ttl": "2m", "stall_timeout": "20s", "reload_timeout": "5s",
		"ordered": fmt.Sprint(seed%4 == 3), "ordered_wait": "30s",
	}
	inBubble(t, s, func(b *bench) {
		acc := newAccount()
		var judging sync.Mutex // of rng in the broker's goroutine
		broker := rand.New(rand.NewPCG(seed, 7))
		calm := false
		b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			judging.Lock()
			defer judging.Unlock()
			if calm {
				acc.mu.Lock()
				acc.copies[m.Value]++
				acc.mu.Unlock()
				return nil
			}
			return acc.judge(broker, m, b.inFlight() > 1)
		}
		var agents sync.WaitGroup
		for range 40 {
			content, padding := rng.IntN(15), 0
			if content%5 == 0 {
				padding = 30_000 // four of them fill the queue
			}
			chunk, values := contentChunk(content, padding)
			acc.mu.Lock()
			for _, v := range values {
				acc.chunks[v]++
			}
			acc.mu.Unlock()
			attempts := 1 + rng.IntN(60) // Retry_Limit
			if rng.IntN(3) > 0 {
				attempts = 1 << 30
			}
			start := time.Duration(rng.IntN(240)) * time.Second
			between := 100*time.Millisecond + time.Duration(rng.IntN(8000))*time.Millisecond
			worker := rng.IntN(2) == 0
			agents.Go(func() {
				time.Sleep(start)
				for range attempts {
					if b.Flush(chunk, "tag", worker) == OK {
						acc.mu.Lock()
						for _, v := range values {
							acc.ok[v]++
						}
						acc.mu.Unlock()
						return
					}
					time.Sleep(between)
				}
			})
		}
		for range 60 {
			time.Sleep(time.Duration(rng.IntN(8000)) * time.Millisecond)
			switch rng.IntN(10) {
			case 0, 1:
				b.net.Set(reconnecttest.Down)
			case 2:
				b.net.Set(reconnecttest.Mute)
			case 3:
				b.net.Cut()
			case 4:
				if b.reload.Load() == 0 {
					b.expectReload()
				} else {
					b.reload.Store(0)
				}
			case 5:
				b.net.Client().Fatal(fsm.ClassFatal, "out of order sequence number")
			default:
				b.net.Set(reconnecttest.Serving)
			}
			if q := b.courier.Status().Queued; q > 2<<20 {
				t.Errorf("%d bytes are held, above the limit", q)
			}
		}
		judging.Lock()
		calm = true
		judging.Unlock()
		b.net.Set(reconnecttest.Serving)
		agents.Wait()
		time.Sleep(time.Minute)
		acc.check(t)
		if st := b.courier.Status(); st.Open != 0 || st.Queued != 0 || st.Receipts != 0 {
			t.Errorf("left: %+v", st)
		}
	})
}

// check compares at the end.
func (a *account) check(t *testing.T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for v, n := range a.chunks {
		name := v[:min(len(v), 60)]
		if a.copies[v] < a.ok[v] {
			t.Errorf("%s: %d OK for %d copies", name, a.ok[v], a.copies[v])
		}
		if most := n + a.again[v]; a.copies[v] > most {
			t.Errorf("%s: %d copies, %d at most for %d chunks and %d reports that left it open", name, a.copies[v], most, n, a.again[v])
		}
	}
}

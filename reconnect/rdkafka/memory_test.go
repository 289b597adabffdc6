package rdkafka

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// own is the memory of this process that is in no file, in MiB.
func own(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kib); err == nil {
			return kib >> 10
		}
	}
	t.Fatal("there is no RssAnon")
	return 0
}

// openShut opens a client that connects to nothing.
func openShut(t *testing.T) *Client {
	t.Helper()
	c, err := open(Options{Properties: []Property{{"bootstrap.servers", "127.0.0.1:1"}, {"queue.buffering.max.messages", "0"}}}, 1, nil, fsm.ConnShut)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(time.Second) })
	return c
}

// Large chunks lie in memory of their own, which is the system's again when the client is closed.
func TestClient_GivesTheMemoryOfChunksBack(t *testing.T) {
	const chunks, each = 64, 1 << 20
	c := openShut(t)
	batch := &reconnect.Batch{
		Topics: []string{"alpha"}, Data: make([]byte, each),
		Messages: []reconnect.Message{{Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValLen: each / 2}},
	}
	before := own(t)
	for range chunks {
		c.Produce(batch)
	}
	if held := own(t) - before; held < chunks/2 {
		t.Errorf("%d MiB for %d chunks of a MiB: they are not where they are looked for", held, chunks)
	}
	if err := c.Close(time.Second); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		debug.FreeOSMemory() // what was not acknowledged came back as Go's
		left := own(t) - before
		if left < chunks/4 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d MiB are left", left)
		}
	}
}

// Memory that is kept is lent again, but not for much less: a client may keep it for long.
func TestMemory_LendsNoLargeBlockForASmallOne(t *testing.T) {
	openShut(t)
	large := Memory{}.Lend(8 << 20)
	at := unsafe.SliceData(large)
	Memory{}.Return(large)
	const small = 300 << 10
	block := Memory{}.Lend(small)
	if n := cap(block); n > 4*small {
		t.Errorf("a block of %d bytes is lent for %d", n, small)
	}
	Memory{}.Return(block)
	if large = (Memory{}).Lend(7 << 20); unsafe.SliceData(large) != at {
		t.Error("the large block is not lent again")
	}
	Memory{}.Return(large)
}

// What was kept longest goes first: sizes that nobody asks for any more would else keep out those that are.
func TestMemory_KeepsTheNewest(t *testing.T) {
	openShut(t)
	var old [][]byte
	for range 16 { // as much as is kept
		old = append(old, Memory{}.Lend(1<<20-4096))
	}
	for _, block := range old {
		Memory{}.Return(block)
	}
	block := append(Memory{}.Lend(4<<20), 1)
	Memory{}.Return(block)
	if block = (Memory{}).Lend(4 << 20); block[:1][0] != 1 { // a new mapping is all zeros
		t.Error("the newest block is not kept")
	}
	Memory{}.Return(block)
}

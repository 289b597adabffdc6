package delivery

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// chunkKey is the key of the n-th chunk.
func chunkKey(n int) Key { return KeyOf("tag", fmt.Append(nil, n)) }

// lineRig is a line in front of a courier.
type lineRig struct {
	*rig
	l       *Line
	skipped int
}

func inLine(t *testing.T, f func(r *lineRig)) {
	t.Helper()
	inBubble(t, Options{Ordered: true}, func(r *rig) {
		x := &lineRig{rig: r}
		x.l = NewLine(time.Minute, r.Courier, func(n int) { x.skipped += n })
		defer x.l.Close()
		f(x)
	})
}

// bring brings a chunk, which is refused unless there is room.
func (r *lineRig) bring(n int, room bool) *Receipt {
	r.l.Lock()
	defer r.l.Unlock()
	at := r.l.Place(chunkKey(n))
	if !room && !at.Awaited {
		r.l.Refused(chunkKey(n), at)
		return nil
	}
	x := r.Post(at, "tag", batchOf(fmt.Sprintf("t:%d", n)), 0, 1<<30)
	r.l.Passed(chunkKey(n), at, x)
	return x
}

// sent answers what goes out until nothing does, and returns it.
func (r *lineRig) sent() []string {
	var out []string
	for {
		handed := r.s.take()
		if len(handed) == 0 {
			return out
		}
		for _, h := range handed {
			out = append(out, h.texts)
			h.report(nil)
		}
	}
}

func (r *lineRig) want(want ...string) {
	r.t.Helper()
	if got := fmt.Sprint(r.sent()); got != fmt.Sprint(want) {
		r.t.Fatalf("sent %v, want %v", got, want)
	}
}

func TestLine_LaterChunksWaitForThoseThatWereTurnedAway(t *testing.T) {
	inLine(t, func(r *lineRig) {
		r.bring(1, true)
		r.want("t:1") // an empty line holds nobody up
		r.bring(2, false)
		r.bring(3, false)
		x := r.bring(4, true)
		r.bring(5, true)
		r.want()
		if !x.Held() {
			t.Error("4 is not held")
		}
		r.bring(3, true) // back, and not first
		r.want()
		r.bring(2, false) // awaited: room or not
		r.want("t:2", "t:3", "t:4", "t:5")
		r.bring(6, true)
		r.want("t:6")
	})
}

func TestLine_WhatStaysAwayIsSkipped(t *testing.T) {
	inLine(t, func(r *lineRig) {
		r.bring(1, false)
		r.bring(2, true)
		r.bring(3, false)
		r.bring(4, true)
		time.Sleep(50 * time.Second)
		r.bring(3, false) // seen again, and still no room
		r.want()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		r.want("t:2")
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want("t:4")
		if r.skipped != 2 {
			t.Errorf("%d were skipped", r.skipped)
		}
	})
}

func TestLine_AChunkWithNothingInItLeaves(t *testing.T) {
	inLine(t, func(r *lineRig) {
		r.bring(1, false)
		r.bring(2, true)
		r.l.Lock()
		r.l.Passed(chunkKey(1), r.l.Place(chunkKey(1)), nil)
		r.l.Unlock()
		r.want("t:2")
	})
}

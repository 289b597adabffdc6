package delivery

import (
	"slices"
	"testing"
	"time"
)

// numbered makes parts of chunks with these places; index tells parts of one chunk apart.
func numbered(numbers ...uint64) []*part {
	var parts []*part
	for i, n := range numbers {
		parts = append(parts, &part{receipt: &Receipt{number: n}, index: []int{i}})
	}
	return parts
}

func TestEnqueue_OrderedByPlaceThenAsTheyCame(t *testing.T) {
	for _, test := range []struct {
		ordered    bool
		came, want []uint64
		indexes    []int
	}{
		{true, []uint64{1, 2, 3}, []uint64{1, 2, 3}, []int{0, 1, 2}},
		{true, []uint64{3, 1, 2}, []uint64{1, 2, 3}, []int{1, 2, 0}},
		{true, []uint64{2, 1, 2, 1}, []uint64{1, 1, 2, 2}, []int{1, 3, 0, 2}},
		{false, []uint64{3, 1, 2}, []uint64{3, 1, 2}, []int{0, 1, 2}},
	} {
		c := &Courier{o: Options{Ordered: test.ordered}}
		var list []*part
		for _, p := range numbered(test.came...) {
			c.enqueue(&list, p)
		}
		var numbers []uint64
		var indexes []int
		for len(list) > 0 {
			p := takeOut(&list, 0)
			numbers, indexes = append(numbers, p.receipt.number), append(indexes, p.index[0])
		}
		if !slices.Equal(numbers, test.want) || !slices.Equal(indexes, test.indexes) {
			t.Errorf("%v, ordered %v: %v from %v, want %v from %v", test.came, test.ordered, numbers, indexes, test.want, test.indexes)
		}
	}
}

// With a chunk under way only its own parts may go, wherever they stand.
func TestFirstToGo_FindsThePartsOfTheChunkUnderWay(t *testing.T) {
	c := &Courier{o: Options{Ordered: true}}
	list := numbered(1, 2, 2, 3, 4)
	c.current = list[2].receipt
	if i := c.firstToGo(list); i != 2 {
		t.Errorf("part %d goes, want 2", i)
	}
	c.current = &Receipt{number: 2}
	if i := c.firstToGo(list); i != -1 {
		t.Errorf("part %d goes, though none is of the chunk under way", i)
	}
	c.current = nil
	if i := c.firstToGo(list); i != 0 {
		t.Errorf("part %d goes, want the first", i)
	}
}

func TestWakeDelayed_TellsWhenTheNextIsDue(t *testing.T) {
	c := &Courier{}
	now := time.Now()
	for _, wait := range []int{3, 1, 2} {
		p := numbered(0)[0]
		p.due = now.Add(time.Duration(wait) * time.Second)
		c.delayed = append(c.delayed, p)
		c.delayedUntil = earlier(c.delayedUntil, p.due)
	}
	for s, ready := range []int{0, 1, 2, 3} {
		at := c.wakeDelayed(now.Add(time.Duration(s) * time.Second))
		want := now.Add(time.Duration(s+1) * time.Second)
		if ready == 3 {
			want = time.Time{}
		}
		if len(c.ready) != ready || !at.Equal(want) {
			t.Errorf("after %d s %d are ready and the next is due at %s, want %d and %s", s, len(c.ready), at, ready, want)
		}
	}
}

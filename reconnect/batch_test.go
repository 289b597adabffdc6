package reconnect

import (
	"slices"
	"testing"
)

func TestBatch_LeftHoldsExactlyWhatFailed(t *testing.T) {
	b := &Batch{
		Topics: []string{"a", "b", "c"},
		Data:   []byte("k0v0k1v1v2v3"),
		Messages: []Message{
			{Topic: 0, Partition: 3, KeyOff: 0, KeyLen: 2, ValOff: 2, ValLen: 2, Timestamp: 10},
			{Topic: 1, Partition: PartitionAny, KeyOff: 4, KeyLen: 2, ValOff: 6, ValLen: 2, Timestamp: 11},
			{Topic: 2, Partition: PartitionAny, KeyLen: NoKey, ValOff: 8, ValLen: 2, Timestamp: 12},
			{Topic: 2, Partition: PartitionAny, KeyOff: 99, KeyLen: 0, ValLen: NoKey, Timestamp: 13},
		},
	}
	left := b.Left([]Failure{{Index: 3}, {Index: 1}, {Index: 2}})
	clear(b.Data) // the copy must not share it
	want := []Message{
		{Topic: 0, Partition: PartitionAny, KeyLen: 0, ValLen: NoKey, Timestamp: 13},
		{Topic: 1, Partition: PartitionAny, KeyOff: 0, KeyLen: 2, ValOff: 2, ValLen: 2, Timestamp: 11},
		{Topic: 0, Partition: PartitionAny, KeyLen: NoKey, ValOff: 4, ValLen: 2, Timestamp: 12},
	}
	if !slices.Equal(left.Messages, want) || string(left.Data) != "k1v1v2" || !slices.Equal(left.Topics, []string{"c", "b"}) {
		t.Errorf("left %q %q %+v", left.Topics, left.Data, left.Messages)
	}
	if again := left.Pick([]int{1}); string(again.Data) != "k1v1" || !slices.Equal(again.Topics, []string{"b"}) {
		t.Errorf("picked of what is left: %q %q", again.Topics, again.Data)
	}
	if b.Left(nil) != nil {
		t.Error("something is left although nothing failed")
	}
}

package reconnect

import (
	"fmt"
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

func TestHeaders_ComeBackAsTheyWereAppended(t *testing.T) {
	b := &Batch{Topics: []string{"a"}, Data: []byte("before")}
	b.Data = AppendHeader(b.Data, "one", []byte("1"))
	b.Data = AppendHeader(b.Data, "null", nil)
	b.Data = AppendHeader(b.Data, "", []byte{})
	b.Messages = []Message{{}, {HdrOff: 6, HdrLen: int32(len(b.Data)) - 6}}
	for range b.Headers(0) {
		t.Error("a message without headers has one")
	}
	picked := b.Pick([]int{1, 0})
	got := ""
	for name, value := range picked.Headers(0) {
		got += fmt.Sprintf("%s=%q(%v) ", name, value, value == nil)
	}
	if want := `one="1"(false) null=""(true) =""(false) `; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name := range picked.Headers(0) {
		if name != "one" {
			t.Errorf("went on to %q", name)
		}
		break
	}
}

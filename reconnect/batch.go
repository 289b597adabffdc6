package reconnect

import (
	"encoding/binary"
	"iter"
)

// Message is one Kafka message of a Batch. It holds offsets instead of slices so
// that a whole batch crosses into C as two flat arrays; the layout is mirrored by
// okr_msg in reconnect/rdkafka and checked there.
type Message struct {
	// Timestamp is the Kafka record timestamp in milliseconds since the epoch;
	// 0 lets the client stamp the time of producing.
	Timestamp int64
	// Topic indexes Batch.Topics.
	Topic int32
	// Partition is the explicit partition, or PartitionAny.
	Partition int32
	// KeyOff and KeyLen locate the key in Batch.Data; KeyLen NoKey means a null key.
	KeyOff, KeyLen int32
	// ValOff and ValLen locate the value in Batch.Data.
	ValOff, ValLen int32
	// HdrOff and HdrLen locate the headers in Batch.Data, as AppendHeader wrote them;
	// HdrLen 0 means none.
	HdrOff, HdrLen int32
}

const (
	// PartitionAny leaves the choice of the partition to the partitioner.
	PartitionAny = -1
	// NoKey as Message.KeyLen means a null key; 0 is an empty key.
	NoKey = -1
)

// Batch is what one chunk becomes: messages over one block of bytes. The client
// copies what it needs before Produce returns, so the caller may reuse it; lent bytes
// it may keep instead.
type Batch struct {
	Topics   []string
	Data     []byte
	Messages []Message
	// Lent tells that Data was lent by a Memory, whole. A client that keeps it sets Data to nil
	// and Lent to false.
	Lent bool
}

// Memory lends the bytes of batches, so that a client needs no copy of them: it keeps them until
// every message was reported. Its methods may be called from any number of goroutines at once.
type Memory interface {
	// Lend returns an empty slice with room for size bytes at least; nil if there is none, or if so
	// few are copied as easily. An append beyond its capacity leaves it.
	Lend(size int) []byte
	// Return takes back what Lend has returned and no client keeps.
	Return(lent []byte)
}

// headerSizes is what stands before the bytes of a header: the length of the name and that of
// the value, or -1 for a null value.
const headerSizes = 8

// AppendHeader appends one Kafka header to data and returns the extended slice; a nil value is
// null, which is not empty. The headers of a message stand in a row in Batch.Data. Each is the
// length of its name and of its value as 32-bit integers in the byte order of the machine,
// then the bytes of both: C reads it without a copy, and it never leaves the process.
func AppendHeader[N ~string | ~[]byte](data []byte, name N, value []byte) []byte {
	size := int32(len(value))
	if value == nil {
		size = -1
	}
	data = binary.NativeEndian.AppendUint32(data, uint32(len(name)))
	data = binary.NativeEndian.AppendUint32(data, uint32(size))
	data = append(data, name...)
	return append(data, value...)
}

// Headers are the headers of a message in their order. The values lie in b.Data; nil is null.
func (b *Batch) Headers(message int) iter.Seq2[string, []byte] {
	m := &b.Messages[message]
	return func(yield func(string, []byte) bool) {
		for rest := b.Data[m.HdrOff : m.HdrOff+m.HdrLen]; len(rest) > 0; {
			name := int(binary.NativeEndian.Uint32(rest))
			size := int(int32(binary.NativeEndian.Uint32(rest[4:])))
			rest = rest[headerSizes:]
			var value []byte
			if size >= 0 {
				value = rest[name : name+size : name+size]
			}
			if !yield(string(rest[:name]), value) {
				return
			}
			rest = rest[name+max(size, 0):]
		}
	}
}

// Left is the batch of the messages that failed, see Delivery.Left; nil without failures.
func (b *Batch) Left(failures []Failure) *Batch {
	if len(failures) == 0 {
		return nil
	}
	indexes := make([]int, len(failures))
	for i, f := range failures {
		indexes[i] = f.Index
	}
	return b.Pick(indexes)
}

// Pick returns a batch of some messages of b, by index and in that order, with copies of
// their bytes only and their topics only.
func (b *Batch) Pick(indexes []int) *Batch {
	size := 0
	for _, x := range indexes {
		m := &b.Messages[x]
		size += int(max(m.KeyLen, 0)) + int(max(m.ValLen, 0)) + int(m.HdrLen)
	}
	out := &Batch{Data: make([]byte, 0, size), Messages: make([]Message, len(indexes))}
	topics := make(map[int32]int32, len(b.Topics))
	for i, x := range indexes {
		m := b.Messages[x]
		topic, ok := topics[m.Topic]
		if !ok {
			topic = int32(len(out.Topics))
			topics[m.Topic] = topic
			out.Topics = append(out.Topics, b.Topics[m.Topic])
		}
		m.Topic = topic
		m.KeyOff = out.copyFrom(b, m.KeyOff, m.KeyLen)
		m.ValOff = out.copyFrom(b, m.ValOff, m.ValLen)
		m.HdrOff = out.copyFrom(b, m.HdrOff, m.HdrLen)
		out.Messages[i] = m
	}
	return out
}

// copyFrom appends a part of another batch's data and returns where it is now. A part
// without bytes, null or empty, is anywhere.
func (b *Batch) copyFrom(from *Batch, off, n int32) int32 {
	if n <= 0 {
		return 0
	}
	at := int32(len(b.Data))
	b.Data = append(b.Data, from.Data[off:off+n]...)
	return at
}

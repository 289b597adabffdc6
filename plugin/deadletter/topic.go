package deadletter

import (
	"strconv"
	"time"

	"out_kafka_reconnect/reconnect"
)

// The headers of a letter in a topic, beside those that the record had. The prefix follows
// the one of Kafka Connect's dead letter queues (__connect.errors.), which it must not be
// mistaken for. docs/dead-letter.md describes them to users.
const (
	headerPrefix    = "__kafka_reconnect.errors."
	HeaderKind      = headerPrefix + "kind"
	HeaderCode      = headerPrefix + "code"
	HeaderReason    = headerPrefix + "reason"
	HeaderTopic     = headerPrefix + "topic"
	HeaderTag       = headerPrefix + "tag"
	HeaderTime      = headerPrefix + "time"
	HeaderEventTime = headerPrefix + "event_time"
	// HeaderTruncated is there, as "true", when the value, the key or the record's own headers
	// had to be cut to fit; HeaderSize is then the size of the whole value.
	HeaderTruncated = headerPrefix + "truncated"
	HeaderSize      = headerPrefix + "size"
)

const (
	// messageOverhead is more than a message has on the wire beside its key, value and
	// headers; headerOverhead is more than a header has beside its name and value.
	messageOverhead = 64
	headerOverhead  = 10
	// maxText bounds the reason, the topic and the tag, so that they always fit.
	maxText = 1 << 10
)

// Topic makes messages for a dead-letter topic.
type Topic struct {
	Name string
	// MaxBytes is the size that a message of the client may have (message.max.bytes). A letter
	// that is larger is cut: the record would fit into no topic, but its beginning tells what
	// it was.
	MaxBytes int
}

// Batch makes a message of each letter, in their order. Key, value and headers are those of
// the record, and ours come after them.
func (t Topic) Batch(letters []Letter) *reconnect.Batch {
	b := &reconnect.Batch{Topics: []string{t.Name}, Messages: make([]reconnect.Message, len(letters))}
	for i := range letters {
		b.Messages[i] = t.append(b, &letters[i])
	}
	return b
}

func (t Topic) append(b *reconnect.Batch, l *Letter) reconnect.Message {
	own := l.ownHeaders()
	// Room for what tells of the cut as well, whether it is needed or not.
	room := t.MaxBytes - messageOverhead - sizeOf(own) - sizeOf(cutHeaders(len(l.Value)))
	theirs, key, value, truncated := l.fit(room)
	if truncated {
		own = append(own, cutHeaders(len(l.Value))...)
	}
	m := reconnect.Message{Partition: reconnect.PartitionAny}
	m.KeyOff, m.KeyLen = put(b, key)
	m.ValOff, m.ValLen = put(b, value)
	m.HdrOff = int32(len(b.Data))
	for _, h := range theirs {
		b.Data = reconnect.AppendHeader(b.Data, h.Name, h.Value)
	}
	for _, h := range own {
		b.Data = reconnect.AppendHeader(b.Data, h.Name, h.Value)
	}
	m.HdrLen = int32(len(b.Data)) - m.HdrOff
	return m
}

// ownHeaders are what the letter tells.
func (l *Letter) ownHeaders() []Header {
	headers := []Header{
		{HeaderKind, []byte(l.Kind)},
		{HeaderCode, strconv.AppendInt(nil, int64(l.Code), 10)},
		{HeaderReason, atMost([]byte(l.Reason), maxText)},
		{HeaderTopic, atMost([]byte(l.Topic), maxText)},
		{HeaderTag, atMost([]byte(l.Tag), maxText)},
		{HeaderTime, l.Time.UTC().AppendFormat(nil, time.RFC3339Nano)},
	}
	if !l.EventTime.IsZero() {
		headers = append(headers, Header{HeaderEventTime, l.EventTime.UTC().AppendFormat(nil, time.RFC3339Nano)})
	}
	return headers
}

// cutHeaders tell that the record was larger.
func cutHeaders(size int) []Header {
	return []Header{{HeaderTruncated, []byte("true")}, {HeaderSize, strconv.AppendInt(nil, int64(size), 10)}}
}

// sizeOf is at least what the headers take on the wire.
func sizeOf(headers []Header) int {
	n := 0
	for _, h := range headers {
		n += headerOverhead + len(h.Name) + len(h.Value)
	}
	return n
}

// put appends a key or a value to the data of a batch.
func put(b *reconnect.Batch, part []byte) (off, size int32) {
	if part == nil {
		return 0, reconnect.NoKey
	}
	off = int32(len(b.Data))
	b.Data = append(b.Data, part...)
	return off, int32(len(part))
}

package deadletter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"out_kafka_reconnect/reconnect"
)

// Letter is one record that can't be written, and why.
type Letter struct {
	Kind   Kind
	Code   int    // of librdkafka or the Kafka protocol; 0 if none had a part in it
	Reason string // in words, for people
	Topic  string // where the record should have gone; empty if it did not get that far
	Tag    string
	// EventTime is when the event happened, Time when the letter was made. A zero EventTime
	// is not known.
	EventTime, Time time.Time
	// Key and Value are those of the message; nil is null. An entry that could not be decoded
	// or encoded is in Value as Fluent Bit had it (MessagePack).
	Key, Value []byte
	// Headers are those that the message had.
	Headers []Header
}

// Header is a Kafka header; a nil value is null.
type Header struct {
	Name  string
	Value []byte
}

// FromBatch makes the letter of a message that failed with f; the caller sets Tag and Time.
// The letter shares the bytes of the batch.
func FromBatch(b *reconnect.Batch, message int, f reconnect.Failure) Letter {
	m := b.Messages[message]
	l := Letter{Kind: KindOf(f), Code: f.Code, Reason: f.Text, Topic: b.Topics[m.Topic]}
	if m.Timestamp != 0 {
		l.EventTime = time.UnixMilli(m.Timestamp)
	}
	if m.KeyLen >= 0 {
		l.Key = b.Data[m.KeyOff : m.KeyOff+m.KeyLen : m.KeyOff+m.KeyLen]
	}
	if m.ValLen >= 0 {
		l.Value = b.Data[m.ValOff : m.ValOff+m.ValLen : m.ValOff+m.ValLen]
	}
	for name, value := range b.Headers(message) {
		l.Headers = append(l.Headers, Header{name, value})
	}
	return l
}

// line is the JSON of a letter in a file; docs/dead-letter.md describes it to users.
type line struct {
	Time          time.Time    `json:"time"`
	Kind          Kind         `json:"kind"`
	Code          int          `json:"code"`
	Reason        string       `json:"reason"`
	Topic         string       `json:"topic"`
	Tag           string       `json:"tag"`
	EventTime     *time.Time   `json:"event_time,omitempty"`
	Key           *string      `json:"key"`
	KeyEncoding   string       `json:"key_encoding,omitempty"`
	Value         *string      `json:"value"`
	ValueEncoding string       `json:"value_encoding,omitempty"`
	Headers       []lineHeader `json:"headers,omitempty"`
	Truncated     bool         `json:"truncated,omitempty"`
	Size          int          `json:"size,omitempty"`
}

type lineHeader struct {
	Name          string  `json:"name"`
	Value         *string `json:"value"`
	ValueEncoding string  `json:"value_encoding,omitempty"`
}

// fit returns as much of the record as goes into room bytes, and whether that is less than
// all of it. What is small is worth more than the rest of what is large.
func (l *Letter) fit(room int) (headers []Header, key, value []byte, truncated bool) {
	headers = l.Headers
	if sizeOf(headers) > room {
		headers = nil
	}
	room -= sizeOf(headers)
	key = atMost(l.Key, room)
	room -= len(key)
	value = atMost(l.Value, room)
	return headers, key, value, len(headers) < len(l.Headers) || len(key) < len(l.Key) || len(value) < len(l.Value)
}

// appendLine appends the letter as one line, with at most room bytes of the record.
func (l *Letter) appendLine(buf *bytes.Buffer, room int) error {
	headers, key, value, truncated := l.fit(room)
	out := line{
		Time: l.Time.UTC(), Kind: l.Kind, Code: l.Code, Reason: l.Reason, Topic: l.Topic, Tag: l.Tag, Truncated: truncated,
	}
	if truncated {
		out.Size = len(l.Value)
	}
	if !l.EventTime.IsZero() {
		t := l.EventTime.UTC()
		out.EventTime = &t
	}
	out.Key, out.KeyEncoding = text(key)
	out.Value, out.ValueEncoding = text(value)
	for _, h := range headers {
		v, encoding := text(h.Value)
		out.Headers = append(out.Headers, lineHeader{h.Name, v, encoding})
	}
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false) // a person reads it, no browser
	return enc.Encode(out)
}

// text is a field as JSON can carry it: as it is when it is text, else in base64.
func text(b []byte) (value *string, encoding string) {
	if b == nil {
		return nil, ""
	}
	s := string(b)
	if !utf8.Valid(b) {
		s, encoding = base64.StdEncoding.EncodeToString(b), "base64"
	}
	return &s, encoding
}

// atMost is b, or its beginning, cut between two runes if it is text. Null stays null, and
// what is there stays there.
func atMost(b []byte, n int) []byte {
	n = max(n, 0)
	if len(b) <= n {
		return b
	}
	end := n
	for end > 0 && n-end < utf8.UTFMax && !utf8.RuneStart(b[end]) {
		end--
	}
	if !utf8.RuneStart(b[end]) {
		end = n // no text
	}
	return b[:end]
}

package parity

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// A Message is what Kafka has of a record.
type Message struct {
	Topic string
	// Partition counts only for messages with a key: the others go anywhere.
	Partition int32
	// Key is nil if there is none.
	Key, Value []byte
	// Headers are written as name=value.
	Headers []string
	// EventTime says that the timestamp is not the time of producing.
	EventTime bool
}

// keyed tells whether the key decides about the partition.
func (m *Message) keyed() bool { return len(m.Key) > 0 }

// sameAddress tells whether two messages differ in their value at most.
func (m *Message) sameAddress(o *Message) bool {
	return m.Topic == o.Topic && (m.Key == nil) == (o.Key == nil) && bytes.Equal(m.Key, o.Key) &&
		(!m.keyed() || m.Partition == o.Partition) && strings.Join(m.Headers, "\n") == strings.Join(o.Headers, "\n") && m.EventTime == o.EventTime
}

// String has all that is compared.
func (m *Message) String() string {
	key := "-"
	if m.Key != nil {
		key = quote(m.Key)
	}
	partition := "-"
	if m.keyed() {
		partition = strconv.Itoa(int(m.Partition))
	}
	text := fmt.Sprintf("%s\t%s\t%s\t%s", quote([]byte(m.Topic)), partition, key, quote(m.Value))
	for _, h := range m.Headers {
		text += "\t" + quote([]byte(h))
	}
	if m.EventTime {
		text += "\tevent time"
	}
	return text
}

// quote writes bytes as a Go literal of ASCII, in back quotes where that is possible.
func quote(b []byte) string {
	s := string(b)
	if q := strconv.QuoteToASCII(s); q[1:len(q)-1] != s && strconv.CanBackquote(s) && !strings.ContainsFunc(s, func(r rune) bool { return r == '\t' || r > unicode.MaxASCII }) {
		return "`" + s + "`"
	}
	return strconv.QuoteToASCII(s)
}

package format

import (
	"errors"
	"strings"

	"out_kafka_reconnect/plugin/accessor"
	"out_kafka_reconnect/plugin/chunk"
)

// RouterConfig is what a [Router] decides by.
type RouterConfig struct {
	// Topics are the listed topics, at least one; the first is the default. Their
	// names are taken as they stand.
	Topics []string
	// TopicKey names the top-level field whose text picks the topic. Empty: every
	// record goes to the default topic.
	TopicKey string
	// DynamicTopic lets that field also name a topic that is not listed.
	DynamicTopic bool
	// MaxDynamicTopics bounds the number of different names taken in that way during
	// the life of the router, because each costs memory here and in the client and
	// can create a topic in the cluster. Zero: none is taken.
	MaxDynamicTopics int
	// MessageKey is the key of every message that gets none from MessageKeyField.
	// Empty: such a message has no key.
	MessageKey string
	// MessageKeyField names the top-level field whose text is the message key. Empty:
	// no field is looked up.
	MessageKeyField string
}

// Refusal says why the topic that a record names was not used.
type Refusal uint8

const (
	// NotRefused is the normal case; the record may as well have named no topic.
	NotRefused Refusal = iota
	// RefusedName is a name that Kafka does not allow.
	RefusedName
	// RefusedLimit is a new name when MaxDynamicTopics others are known.
	RefusedLimit
	// RefusedGap is no name at all: the record lacks a field of the topic's template.
	RefusedGap
)

// Route is where a record goes.
type Route struct {
	// Topic is never empty.
	Topic string
	// Key is the message key. It points into the record or is shared by all records:
	// the caller neither changes nor keeps it.
	Key []byte
	// Refused is the name that Refusal speaks of, a part of the record.
	Refused []byte
	// HasKey tells an empty key from none; Kafka spreads only the latter.
	HasKey  bool
	Refusal Refusal
	// KeyGap tells that the record lacks a field of the template of the key.
	KeyGap bool
}

// ErrNoTopic says that a router has no topic to send to.
var ErrNoTopic = errors.New("format: no topic listed")

// Router picks topic and key of a message from the fields of its record. It is used by
// one goroutine at a time.
//
// The rules are those of Fluent Bit's own output: only top-level fields count, the
// first one of the name that holds a text decides, and the field stays in the record.
// A bin is not a text here. Two things differ, both with DynamicTopic: a name that
// Kafka would refuse is found out before it is produced and lost, and a name that
// begins like the default topic's is a name of its own, where the built-in output
// compares only as many bytes as the record has.
type Router struct {
	known    map[string]string // listed and dynamic names, to themselves
	old      map[string]string // dynamic names that were not met lately, see age
	listed   []string
	first    string // the default topic
	last     string // the name found last; records of a kind come in rows
	topicKey string
	keyField string
	key      []byte
	room     int // dynamic names still free
	hasKey   bool
	dynamic  bool
}

// NewRouter returns a router, or [ErrNoTopic] if the list of topics is empty.
func NewRouter(c RouterConfig) (*Router, error) {
	if len(c.Topics) == 0 {
		return nil, ErrNoTopic
	}
	// The names are copied: they may be parts of a text that is not ours to keep.
	r := &Router{
		known:    make(map[string]string, len(c.Topics)),
		first:    strings.Clone(c.Topics[0]),
		topicKey: c.TopicKey,
		keyField: c.MessageKeyField,
		key:      []byte(c.MessageKey),
		hasKey:   c.MessageKey != "",
		room:     c.MaxDynamicTopics,
		dynamic:  c.DynamicTopic,
	}
	for _, topic := range c.Topics {
		topic = strings.Clone(topic)
		r.known[topic] = topic
		r.listed = append(r.listed, topic)
	}
	r.last = r.first
	return r, nil
}

// Route fills out with the topic and key of a record. The body comes from an entry of
// a [chunk.Walker]; an error says that it does not, and leaves the defaults in out.
func (r *Router) Route(body []byte, out *Route) error {
	*out = Route{Topic: r.first, HasKey: r.hasKey}
	if r.hasKey {
		out.Key = r.key
	}
	wantTopic, wantKey := r.topicKey != "", r.keyField != ""
	if !wantTopic && !wantKey {
		return nil
	}
	h, pos := chunk.ReadHead(body, 0)
	if h.Type != chunk.Map {
		return errNotMap
	}
	for pairs := h.N; pairs > 0 && (wantTopic || wantKey); pairs-- {
		name, next, err := accessor.ReadKey(body, pos)
		if err != nil {
			return err
		}
		// The end of the value is looked for first: it is needed anyway, and behind it
		// a text value is known to be whole.
		end, err := chunk.Skip(body, next)
		if err != nil {
			return err
		}
		pos = end
		isTopic := wantTopic && string(name) == r.topicKey
		isKey := wantKey && string(name) == r.keyField
		if !isTopic && !isKey {
			continue
		}
		h, at := chunk.ReadHead(body, next)
		if h.Type != chunk.Str {
			continue
		}
		text := body[at:end:end]
		if isTopic {
			wantTopic = false
			r.pickTopic(text, out)
		}
		if isKey {
			wantKey = false
			out.Key, out.HasKey = text, true
		}
	}
	return nil
}

// pickTopic decides by the text of the topic field. An empty one names no topic.
func (r *Router) pickTopic(name []byte, out *Route) {
	if string(name) == r.last {
		out.Topic = r.last
		return
	}
	if topic, ok := r.known[string(name)]; ok {
		r.last, out.Topic = topic, topic
		return
	}
	if topic, ok := r.old[string(name)]; ok {
		delete(r.old, topic)
		r.known[topic] = topic
		r.last, out.Topic = topic, topic
		return
	}
	switch {
	case !r.dynamic || len(name) == 0:
	case !legalTopic(name):
		out.Refusal, out.Refused = RefusedName, name
	case r.room <= 0:
		out.Refusal, out.Refused = RefusedLimit, name
	default:
		r.room--
		topic := string(name)
		r.known[topic] = topic
		r.last, out.Topic = topic, topic
	}
}

// age forgets the dynamic names that were not met since the call before last, so that names
// with a date in them do not use the room up for ever. Those known now are the next to go.
func (r *Router) age() {
	r.room += len(r.old)
	for _, topic := range r.listed {
		delete(r.known, topic)
	}
	r.old, r.known = r.known, make(map[string]string, len(r.listed))
	for _, topic := range r.listed {
		r.known[topic] = topic
	}
	r.last = r.first
}

// maxTopicName is the number of bytes of a topic name that a broker accepts.
const maxTopicName = 249

// legalTopic reports whether a broker would accept the name.
func legalTopic(name []byte) bool {
	if len(name) == 0 || len(name) > maxTopicName || string(name) == "." || string(name) == ".." {
		return false
	}
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

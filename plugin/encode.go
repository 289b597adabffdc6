package plugin

import (
	"time"

	"out_kafka_reconnect/plugin/accessor"
	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/deadletter"
	"out_kafka_reconnect/plugin/format"
	"out_kafka_reconnect/plugin/schema"
	"out_kafka_reconnect/reconnect"
)

// encoder turns chunks into batches. It belongs to one goroutine and is reused, so that a
// record costs no allocation.
type encoder struct {
	// One of the two writes the messages: a record each, or many of them. Neither is there
	// until ready.
	value   format.Encoder
	bundler format.Bundler
	// signals takes chunks that hold no logs, which telemetry reads; nil unless the format has a
	// form for them.
	signals   *format.OTLPSignals
	telemetry Telemetry
	otlp      []byte // scratch
	// predictor is value, if its format predicts records; nil otherwise.
	predictor format.Predictor
	// tagged is value, if its format has a place for the tag; nil otherwise.
	tagged  tagWriter
	schemas *schema.Source // nil unless the format needs a schema
	// avro is value, if that is of this format; refuseUnknown makes it strict.
	avro          *format.Avro
	refuseUnknown bool
	router        *format.Router
	envelope      *format.Envelope // nil: the router is enough
	// ownKeys takes the keys from the bundler instead of the router.
	ownKeys bool
	// eventTime gives the message the time of the record, not of producing.
	eventTime bool

	batch  reconnect.Batch
	room   room             // of batch.Data
	topics map[string]int32 // index in batch.Topics
	faults faults
	// entry is what the walker stands at: a local variable would go to the heap for each
	// chunk, as value is an interface.
	entry chunk.Entry
}

// faults is what was odd about a chunk; each is reported once for the chunk.
type faults struct {
	undecodable       int   // entries that are no records
	undecodableOffset int   // of the first one
	undecodableReason error // of the first one
	unencodable       int   // records that the format can't express
	unencodableOffset int
	unencodableReason error
	// unusable are the entries without a message, undecodable or unencodable.
	unusable      []unusable
	badTimes      int // records that got the time of the flush
	refusedTopics int // records that went to the default topic instead
	refusedTopic  string
	refusedLimit  bool // … because there are too many topics already
	topicGaps     int  // records that went there because they lack a field of topic_template
	keyGaps       int  // records that lack a field of message_key_template
	badPartitions int  // records that name something that is no partition
	leftOut       format.LeftOut
}

// unusable is an entry of a chunk that gives no message.
type unusable struct {
	kind        deadletter.Kind
	offset, len int // in the chunk
	reason      error
}

// newEncoder makes an encoder of a valid configuration. It is to be used when it is ready.
func newEncoder(c *config.Config, schemas *schema.Source) (*encoder, error) {
	rc := format.RouterConfig{
		Topics:           c.Topics,
		DynamicTopic:     c.DynamicTopic || c.TopicTemplate != "",
		MaxDynamicTopics: c.MaxDynamicTopics,
		MessageKey:       c.MessageKey,
	}
	ec := format.EnvelopeConfig{
		TopicTemplate: c.TopicTemplate, KeyTemplate: c.MessageKeyTemplate,
		PartitionField: c.PartitionField, HeadersField: c.HeadersKey,
	}
	// Names of top-level keys are for the router, which has the built-in output's rules.
	*pick(c.TopicKey, &rc.TopicKey, &ec.TopicField) = c.TopicKey
	*pick(c.MessageKeyField, &rc.MessageKeyField, &ec.KeyField) = c.MessageKeyField
	for _, h := range c.Headers {
		ec.Headers = append(ec.Headers, format.HeaderConfig(h))
	}
	router, err := format.NewRouter(rc)
	if err != nil {
		return nil, err
	}
	envelope, err := format.NewEnvelope(ec, router)
	if err != nil {
		return nil, err
	}
	value := newValueEncoder(c)
	tagged, _ := value.(tagWriter)
	predictor, _ := value.(format.Predictor)
	return &encoder{
		value:         value,
		bundler:       newBundler(c),
		signals:       newSignals(c),
		predictor:     predictor,
		tagged:        tagged,
		schemas:       schemas,
		refuseUnknown: c.AvroUnknownFields == config.UnknownReject,
		router:        router,
		envelope:      envelope,
		ownKeys:       c.OTLPPartitionByResource,
		eventTime:     c.MessageTimestamp == config.MessageTimestampEvent,
		topics:        map[string]int32{},
	}, nil
}

// pick returns where the name of a field goes: to the first place, or to the second if it is
// an accessor.
func pick(field string, name, path *string) *string {
	if accessor.Is(field) {
		return path
	}
	return name
}

// encode fills batch with the records of the chunk, in order. The same chunk gives the
// same messages at the same index at every attempt; the batch is valid until the next call, or
// until a client keeps its bytes.
func (e *encoder) encode(data []byte, tag string, now time.Time) *reconnect.Batch {
	b := &e.batch
	b.Topics, b.Messages = b.Topics[:0], b.Messages[:0]
	e.room.begin(b, len(data))
	clear(e.topics)
	e.faults = faults{}
	if e.tagged != nil {
		e.tagged.SetTag(tag)
	}
	if e.envelope != nil {
		e.envelope.Begin(tag, now)
	}
	if signal := chunk.SignalOf(data); signal != chunk.Logs && e.signals != nil {
		e.encodeSignal(signal, data, now)
	} else {
		e.encodeLogs(data, now)
	}
	e.entry = chunk.Entry{} // the chunk is not ours to keep
	if e.envelope != nil {
		e.envelope.End()
	}
	e.room.end(b, len(data))
	return b
}

func (e *encoder) encodeLogs(data []byte, now time.Time) {
	var (
		entry  = &e.entry
		first  chunk.Entry // stands for all records of a bundle
		route  format.Route
		walker = chunk.NewWalker(data)
	)
	if e.bundler != nil {
		e.bundler.Begin()
	}
	for {
		if e.predictor != nil && e.predictor.Predicts() && walker.Peek(entry) {
			date(entry, now)
			start := len(e.batch.Data)
			if value, n, ok := e.predictor.AppendPredicted(e.batch.Data, entry); ok {
				walker.Take(entry, n)
				e.faults.noteTime(entry)
				e.send(start, value, entry, &route)
				continue
			}
		}
		if !walker.Next(entry) {
			break
		}
		switch entry.Kind {
		case chunk.Record:
			date(entry, now)
			e.faults.noteTime(entry)
			if e.bundler == nil {
				e.record(entry, &route)
				continue
			}
			if first.Body == nil {
				first = chunk.Entry{Body: noFields, Sec: entry.Sec, Nsec: entry.Nsec, TimeOK: true}
			}
			e.bundle(entry)
		case chunk.Undecodable:
			e.faults.noteUndecodable(entry)
		default: // group markers are no records
			if e.bundler != nil {
				e.bundle(entry)
			}
		}
	}
	if e.bundler != nil {
		*entry = first
		e.bundles(e.bundler, e.ownKeys, &route)
	}
	if e.avro != nil {
		e.faults.leftOut = e.avro.Left()
	}
}

// date gives a record without a usable time that of the flush.
func date(entry *chunk.Entry, now time.Time) {
	if !entry.TimeOK {
		entry.Sec, entry.Nsec = now.Unix(), int32(now.Nanosecond())
	}
}

// encodeSignal writes the contexts of a chunk of metrics or traces. Their messages have the time
// of the flush, and the key of the section, as no field of theirs is the record's.
func (e *encoder) encodeSignal(signal chunk.Signal, data []byte, now time.Time) {
	e.signals.Begin(signal)
	for at := 0; at < len(data); {
		message, next, err := e.telemetry.AppendOTLP(e.otlp[:0], signal, data, at)
		e.otlp = message
		if next == at {
			e.faults.noteUndecodable(&chunk.Entry{Offset: at, Len: len(data) - at, Reason: err})
			break
		}
		if err == nil {
			err = e.signals.Add(message)
		}
		if err != nil {
			e.faults.noteUnencodable(&chunk.Entry{Offset: at, Len: next - at}, err)
		}
		at = next
	}
	var route format.Route
	e.entry = chunk.Entry{Body: noFields, Sec: now.Unix(), Nsec: int32(now.Nanosecond()), TimeOK: true}
	e.bundles(e.signals, false, &route)
}

// shed drops the buffers that grow with the chunks, and tells whether that is worth a thought.
// What counts, as the router does, stays.
func (e *encoder) shed(c *config.Config) bool {
	dropped := e.room.drop(&e.batch)
	e.faults = faults{}
	if e.bundler != nil {
		e.bundler = newBundler(c)
	}
	return dropped >= shedFrom
}

// noFields is the body of a record without fields.
var noFields = []byte{0x80}

// bundle adds an entry to the messages of the chunk.
func (e *encoder) bundle(entry *chunk.Entry) {
	if err := e.bundler.Add(entry); err != nil {
		e.faults.noteUnencodable(entry, err)
	}
}

// bundled is what has put messages together.
type bundled interface {
	AppendMessage(dst []byte) (out, key []byte, ok bool)
}

// bundles makes messages of what was added. They go where a record goes whose fields say nothing
// about it, at the time of e.entry, which is such a record. With ownKeys the keys are those of from.
func (e *encoder) bundles(from bundled, ownKeys bool, route *format.Route) {
	b, entry := &e.batch, &e.entry
	for {
		start := len(b.Data)
		data, key, ok := from.AppendMessage(b.Data)
		if !ok {
			return
		}
		if err := e.route(entry, route); err != nil { // noFields is a map
			return
		}
		b.Data = data
		if ownKeys {
			route.Key, route.HasKey = key, key != nil
		}
		e.message(start, entry, route)
	}
}

func (e *encoder) record(entry *chunk.Entry, route *format.Route) {
	start := len(e.batch.Data)
	value, err := e.value.AppendValue(e.batch.Data, entry)
	if err != nil {
		e.faults.noteUnencodable(entry, err)
		return
	}
	e.send(start, value, entry, route)
}

// send adds the message of a record, whose value begins at start and ends the data.
func (e *encoder) send(start int, data []byte, entry *chunk.Entry, route *format.Route) {
	if err := e.route(entry, route); err != nil {
		e.faults.noteUnencodable(entry, err)
		return
	}
	e.batch.Data = data
	e.message(start, entry, route)
}

// route finds out where a record goes.
func (e *encoder) route(entry *chunk.Entry, route *format.Route) error {
	err := e.router.Route(entry.Body, route)
	if err == nil && e.envelope != nil {
		err = e.address(entry, route)
	}
	return err
}

// message adds the message whose value begins at start and is the last thing in the batch.
func (e *encoder) message(start int, entry *chunk.Entry, route *format.Route) {
	b := &e.batch
	m := reconnect.Message{
		Topic: e.topic(route.Topic), Partition: reconnect.PartitionAny,
		KeyLen: reconnect.NoKey, ValOff: int32(start), ValLen: int32(len(b.Data) - start),
	}
	if route.HasKey {
		m.KeyOff, m.KeyLen = int32(len(b.Data)), int32(len(route.Key))
		b.Data = append(b.Data, route.Key...)
	}
	if route.Refusal != format.NotRefused {
		e.faults.noteRefusal(route)
	}
	if route.KeyGap {
		e.faults.keyGaps++
	}
	b.Messages = append(b.Messages, m)
	if e.envelope != nil {
		e.seal(&b.Messages[len(b.Messages)-1])
	}
	if e.eventTime {
		b.Messages[len(b.Messages)-1].Timestamp = entry.Sec*1000 + int64(entry.Nsec)/1e6
	}
}

// address lets the envelope have its say on topic and key.
func (e *encoder) address(entry *chunk.Entry, route *format.Route) error {
	if err := e.envelope.Read(entry); err != nil {
		return err
	}
	e.envelope.Address(route)
	return nil
}

// seal adds what else the envelope has for a message.
func (e *encoder) seal(m *reconnect.Message) {
	b := &e.batch
	var ok bool
	if m.Partition, ok = e.envelope.Partition(); !ok {
		e.faults.badPartitions++
	}
	m.HdrOff = int32(len(b.Data))
	b.Data = e.envelope.AppendHeaders(b.Data)
	m.HdrLen = int32(len(b.Data)) - m.HdrOff
}

// topic returns the index of a topic in the batch. Neighbours mostly share their topic.
func (e *encoder) topic(name string) int32 {
	b := &e.batch
	if n := len(b.Topics); n > 0 && b.Topics[n-1] == name {
		return int32(n - 1)
	}
	i, ok := e.topics[name]
	if !ok {
		i = int32(len(b.Topics))
		e.topics[name] = i
		b.Topics = append(b.Topics, name)
	}
	return i
}

func (f *faults) noteTime(entry *chunk.Entry) {
	if !entry.TimeOK {
		f.badTimes++
	}
}

func (f *faults) noteUndecodable(entry *chunk.Entry) {
	if f.undecodable == 0 {
		f.undecodableOffset, f.undecodableReason = entry.Offset, entry.Reason
	}
	f.unusable = append(f.unusable, unusable{deadletter.Undecodable, entry.Offset, entry.Len, entry.Reason})
	f.undecodable++
}

func (f *faults) noteUnencodable(entry *chunk.Entry, err error) {
	if f.unencodable == 0 {
		f.unencodableOffset, f.unencodableReason = entry.Offset, err
	}
	f.unusable = append(f.unusable, unusable{deadletter.Unencodable, entry.Offset, entry.Len, err})
	f.unencodable++
}

func (f *faults) noteRefusal(route *format.Route) {
	if route.Refusal == format.RefusedGap {
		f.topicGaps++
		return
	}
	if f.refusedTopics == 0 {
		f.refusedTopic = string(route.Refused)
		f.refusedLimit = route.Refusal == format.RefusedLimit
	}
	f.refusedTopics++
}

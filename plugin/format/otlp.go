package format

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/zeebo/xxh3"

	"out_kafka_reconnect/plugin/chunk"
)

// OTLPConfig is how an [OTLP] writes its messages.
type OTLPConfig struct {
	// JSON writes JSON instead of protobuf.
	JSON bool
	// ByResource gives each resource messages of its own, with the hash of its attributes as
	// their key.
	ByResource bool
	// MaxBytes bounds the value of a message of several records; a record that is larger has
	// one for itself.
	MaxBytes int
}

// OTLP writes messages of the OpenTelemetry protocol: LogsData, which is what an
// ExportLogsServiceRequest looks like too. The records of a chunk are put together by the
// resource and the scope of their group; those outside of groups have none.
//
// Each record is written on its own first, and the messages are put together from the pieces.
// So a record that can't be written leaves no trace, and where a message ends is a matter of
// adding up sizes.
type OTLP struct {
	config OTLPConfig
	wire   otlpWire

	pieces    []byte // the bytes that the spans below speak of
	resources []otlpGroup
	scopes    []otlpGroup
	records   []otlpPiece
	known     map[string]int // index in resources or scopes by what they are made of
	resource  int            // of the open group
	scope     int
	sorted    bool // all records are there, in the order of the messages
	next      int  // record of the next message

	packer MsgPack
	json   *JSON  // for what has no place in OTLP but as a text
	ident  []byte // scratch
	word   []byte // scratch
}

// span is a part of OTLP.pieces.
type span struct{ from, to int }

func (s span) size() int { return s.to - s.from }

// otlpGroup is a resource or a scope: the fields before and behind what belongs to it.
type otlpGroup struct {
	head, tail span
	key        []byte // of the messages of a resource; nil is none
}

// otlpPiece is a record.
type otlpPiece struct {
	span
	resource, scope int
}

// noGroup stands for the resource and the scope of records outside of groups until there is one.
const noGroup = -1

// otlpFraming is more than what a resource or scope has around its fields, in either encoding.
const otlpFraming = 64

// NewOTLP returns an encoder.
func NewOTLP(c OTLPConfig) *OTLP {
	o := &OTLP{config: c, wire: otlpProto{}, known: map[string]int{}, json: NewJSON(JSONConfig{})}
	if c.JSON {
		o.wire = otlpJSON{style: &textStyle{}}
	}
	o.Begin()
	return o
}

// Begin forgets the chunk before.
func (o *OTLP) Begin() {
	o.pieces, o.resources, o.scopes, o.records = o.pieces[:0], o.resources[:0], o.scopes[:0], o.records[:0]
	clear(o.known)
	o.resource, o.scope = noGroup, noGroup
	o.sorted, o.next = false, 0
}

// Add takes the next record or group marker. It fails for a record with [ErrTooDeep] or
// [ErrOTLPTime], and for a marker with [ErrTooDeep] or [ErrOTLPGroup]; the records of such a
// group count as outside of any.
func (o *OTLP) Add(e *chunk.Entry) error {
	if e.Kind == chunk.Record {
		return o.addRecord(e)
	}
	o.resource, o.scope = noGroup, noGroup
	if e.Kind == chunk.GroupStart {
		return o.openGroup(e)
	}
	return nil
}

func (o *OTLP) addRecord(e *chunk.Entry) error {
	if o.scope == noGroup {
		if err := o.enter(nil, nil, nil, 0, 0); err != nil {
			return err
		}
	}
	start := len(o.pieces)
	pieces, err := o.appendRecord(o.pieces, e)
	if err != nil {
		return err
	}
	o.pieces = pieces
	o.records = append(o.records, otlpPiece{span{start, len(pieces)}, o.resource, o.scope})
	return nil
}

// openGroup enters the resource and scope of a marker. One that is not the OpenTelemetry input's
// has none.
func (o *OTLP) openGroup(e *chunk.Entry) error {
	resourceID, ok := otlpID(e.Metadata, "resource_id")
	scopeID, ok2 := otlpID(e.Metadata, "scope_id")
	if schema, _ := otlpLookup(e.Metadata, "schema"); string(schema) != "\xa4otlp" || !ok || !ok2 {
		return nil
	}
	resource, _ := otlpLookup(e.Body, "resource")
	scope, _ := otlpLookup(e.Body, "scope")
	url, _ := otlpLookup(e.Body, "schema_url")
	if url == nil {
		url, _ = otlpLookup(resource, "schema_url")
	}
	return o.enter(orNil(resource), orNil(scope), url, resourceID, scopeID)
}

// otlpID returns the number under a name, if there is one.
func otlpID(m []byte, name string) (int64, bool) {
	v, _ := otlpLookup(m, name)
	h, _ := chunk.ReadHead(v, 0)
	return h.Int(), h.Type == chunk.Uint || h.Type == chunk.Int
}

// orNil makes a value of none: a group without a resource is something else than no group.
func orNil(v []byte) []byte {
	if v == nil {
		return []byte{0xc0}
	}
	return v
}

// enter makes a resource and a scope the ones of the records that follow. They are told apart
// by their number and their contents, as many requests with the same numbers can be in a chunk.
func (o *OTLP) enter(resource, scope, url []byte, resourceID, scopeID int64) error {
	o.ident = append(append(binary.AppendVarint(append(o.ident[:0], 'r'), resourceID), resource...), url...)
	r, known := o.known[string(o.ident)]
	if !known {
		g, err := o.makeResource(resource, url)
		if err != nil {
			return err
		}
		r = len(o.resources)
		o.resources = append(o.resources, g)
		o.known[string(o.ident)] = r
	}
	o.ident = binary.AppendVarint(binary.AppendUvarint(append(o.ident[:0], 's'), uint64(r)), scopeID)
	o.ident = append(o.ident, scope...)
	s, known := o.known[string(o.ident)]
	if !known {
		g, err := o.makeScope(scope)
		if err != nil {
			return err
		}
		s = len(o.scopes)
		o.scopes = append(o.scopes, g)
		o.known[string(o.ident)] = s
	}
	if resource != nil && o.resources[r].size()+o.scopes[s].size() > o.config.MaxBytes/2 {
		return ErrOTLPGroup
	}
	o.resource, o.scope = r, s
	return nil
}

// makeResource writes what stands around the scopes of a resource.
func (o *OTLP) makeResource(resource, url []byte) (otlpGroup, error) {
	w, start := o.wire, len(o.pieces)
	dst := w.open(o.pieces, otlpResource)
	inside := len(dst)
	dst, err := o.appendGroupAttributes(dst, otlpResourceAttributes, resource)
	if err != nil {
		return otlpGroup{}, err
	}
	dst = w.close(o.appendCount(dst, otlpResourceDropped, resource), inside)
	g := o.group(start, dst, url)
	if o.config.ByResource && resource != nil {
		g.key = o.resourceKey(resource)
	}
	return g, nil
}

// makeScope writes what stands around the records of a scope.
func (o *OTLP) makeScope(scope []byte) (otlpGroup, error) {
	w, start := o.wire, len(o.pieces)
	dst := w.open(o.pieces, otlpScope)
	inside := len(dst)
	dst = o.appendTextField(dst, otlpScopeName, scope, "name")
	dst = o.appendTextField(dst, otlpScopeVersion, scope, "version")
	dst, err := o.appendGroupAttributes(dst, otlpScopeAttributes, scope)
	if err != nil {
		return otlpGroup{}, err
	}
	dst = w.close(o.appendCount(dst, otlpScopeDropped, scope), inside)
	url, _ := otlpLookup(scope, "schema_url")
	return o.group(start, dst, url), nil
}

// group takes what was written from start on as the head of a group, and writes its tail.
func (o *OTLP) group(start int, dst, url []byte) otlpGroup {
	head := len(dst)
	if h, at := chunk.ReadHead(url, 0); h.Type == chunk.Str {
		dst = o.wire.text(dst, otlpSchemaURL, url[at:])
	}
	o.pieces = dst
	return otlpGroup{head: span{start, head}, tail: span{head, len(dst)}}
}

// appendGroupAttributes appends the attributes of a resource or a scope, if it has any.
func (o *OTLP) appendGroupAttributes(dst []byte, f otlpField, m []byte) ([]byte, error) {
	attributes, ok := otlpMapField(m, "attributes")
	if !ok {
		return dst, nil
	}
	dst, _, err := o.appendPairs(o.wire.openList(dst, f), attributes, 0, f, depthAttribute, -1)
	return o.wire.closeList(dst), err
}

// resourceKey is the key of the messages of a resource. It is the one that the built-in output
// makes, so that a resource stays in its partition: the XXH3 of the attributes, packed in the
// shortest form, in hex.
func (o *OTLP) resourceKey(resource []byte) []byte {
	packed := append(o.word[:0], "null"...)
	if attributes, _ := otlpLookup(resource, "attributes"); attributes != nil {
		packed, _, _ = o.packer.appendValues(packed[:0], attributes, 0, 1) // which are whole
	}
	o.word = packed
	return hex.AppendEncode(nil, binary.BigEndian.AppendUint64(nil, xxh3.Hash(packed)))
}

// AppendMessage appends the value of the next message of the chunk to dst and returns it with
// the key of its resource, which is nil unless [OTLPConfig.ByResource]. After the last message
// there is none; all entries of the chunk are added before the first.
func (o *OTLP) AppendMessage(dst []byte) (out, key []byte, ok bool) {
	if !o.sorted {
		slices.SortStableFunc(o.records, func(a, b otlpPiece) int {
			return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.scope, b.scope))
		})
		o.sorted = true
	}
	if o.next == len(o.records) {
		return dst, nil, false
	}
	rest := o.records[o.next:]
	n := o.fitting(rest)
	o.next += n
	return o.appendMessage(dst, rest[:n]), o.resources[rest[0].resource].key, true
}

// fitting returns how many of the records go into one message, at least one.
func (o *OTLP) fitting(records []otlpPiece) int {
	room := o.config.MaxBytes
	last := otlpPiece{resource: noGroup, scope: noGroup}
	for i, r := range records {
		need := r.size()
		if r.resource != last.resource {
			if i > 0 && o.config.ByResource {
				return i
			}
			need += o.resources[r.resource].size()
		}
		if r.scope != last.scope {
			need += o.scopes[r.scope].size()
		}
		if i > 0 && need > room {
			return i
		}
		room -= need
		last = r
	}
	return len(records)
}

// size is more than what the group adds to a message.
func (g *otlpGroup) size() int { return g.head.size() + g.tail.size() + otlpFraming }

// appendMessage puts a message together.
func (o *OTLP) appendMessage(dst []byte, records []otlpPiece) []byte {
	w := o.wire
	dst = w.openList(w.begin(dst), otlpResourceLogs)
	for len(records) > 0 {
		r := records[0].resource
		dst = w.openItem(dst, otlpResourceLogs)
		inResource := len(dst)
		dst = w.openList(o.appendPiece(dst, o.resources[r].head), otlpScopeLogs)
		for len(records) > 0 && records[0].resource == r {
			s := records[0].scope
			dst = w.openItem(dst, otlpScopeLogs)
			inScope := len(dst)
			dst = w.openList(o.appendPiece(dst, o.scopes[s].head), otlpLogRecords)
			for len(records) > 0 && records[0].scope == s {
				dst = o.appendPiece(dst, records[0].span)
				records = records[1:]
			}
			dst = w.close(o.appendPiece(w.closeList(dst), o.scopes[s].tail), inScope)
		}
		dst = w.close(o.appendPiece(w.closeList(dst), o.resources[r].tail), inResource)
	}
	return w.end(w.closeList(dst))
}

func (o *OTLP) appendPiece(dst []byte, s span) []byte { return append(dst, o.pieces[s.from:s.to]...) }

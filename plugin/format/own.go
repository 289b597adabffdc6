package format

import "out_kafka_reconnect/plugin/chunk"

// ownFields are the fields that a JSON value has besides the time and those of the record.
// As with the time, a record that brings the key itself keeps its own value.
type ownFields struct {
	tag, metadata ownField
	keys          []keyText // of the record at hand
	used          bool
}

// ownField is a field of ours; it is not written if its key is nil.
type ownField struct {
	key  []byte // quoted and escaped
	text []byte // the value, if it is the same for the whole chunk
	hash uint32
}

func (j *JSON) newOwnField(key string) ownField {
	if key == "" {
		return ownField{}
	}
	f := ownField{key: appendText(nil, []byte(key), 0, len(key), &j.text)}
	f.hash = j.hash(f.key)
	return f
}

// SetTag is called before the records of a chunk. Bytes of the tag that are not UTF-8 refuse
// no record, as the records are not to blame for them: they become U+FFFD instead.
func (j *JSON) SetTag(tag string) {
	if f := &j.own.tag; f.key != nil {
		f.text = appendText(f.text[:0], []byte(tag), 0, len(tag), &j.text)
	}
}

// appendOwn appends the fields of ours behind the brace or the time. Empty metadata is none.
func (j *JSON) appendOwn(dst []byte, e *chunk.Entry) ([]byte, error) {
	j.own.keys = j.own.keys[:0]
	if f := &j.own.tag; f.key != nil {
		dst = append(j.appendOwnKey(dst, f), f.text...)
	}
	if h, _ := chunk.ReadHead(e.Metadata, 0); j.own.metadata.key == nil || h.N == 0 {
		return dst, nil
	}
	return j.appendAny(j.appendOwnKey(dst, &j.own.metadata), e.Metadata, 0)
}

func (j *JSON) appendOwnKey(dst []byte, f *ownField) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	start := len(dst)
	dst = append(dst, f.key...)
	j.own.keys = append(j.own.keys, keyText{start: start, end: len(dst), hash: f.hash})
	return append(dst, ':')
}

// appendAny appends the value at b[pos:], while no array or map is open.
func (j *JSON) appendAny(dst, b []byte, pos int) ([]byte, error) {
	j.reset()
	h, p := chunk.ReadHead(b, pos)
	switch h.Type {
	case chunk.Str, chunk.Bin:
		return appendText(dst, b, p, int(h.N), &j.text), nil
	case chunk.Array, chunk.Map:
		if err := j.open(h, len(b)-p); err != nil {
			return dst, err
		}
		dst, _, err := j.run(append(dst, opener(h.Type == chunk.Map)), b, p, 0)
		j.release()
		return dst, err
	case chunk.Invalid:
		return dst, chunk.HeadError(b, pos)
	default:
		dst, _ = appendScalar(dst, b, p, h)
		return dst, nil
	}
}

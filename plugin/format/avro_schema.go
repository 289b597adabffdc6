package format

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/avro"
)

// AvroSchema is a parsed Avro schema with the number under which the consumers know it. It
// is read only and may be shared.
type AvroSchema struct {
	id   uint32
	root *avroType
}

// avroKind is the kind of an Avro type.
type avroKind uint8

const (
	avroNull avroKind = iota
	avroBoolean
	avroInt
	avroLong
	avroFloat
	avroDouble
	avroBytes
	avroString
	avroFixed
	avroEnum
	avroArray
	avroMap
	avroRecord
	avroUnion
)

// avroWords are the kinds as a schema names them.
var avroWords = [...]string{
	"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum", "array", "map", "record", "union",
}

// String gives the word of the schema.
func (k avroKind) String() string { return avroWords[k] }

// avroType is one type of a schema, as the encoder wants it.
type avroType struct {
	kind     avroKind
	size     int            // of a fixed
	symbols  map[string]int // of an enum
	item     *avroType      // of an array or map
	branches []*avroType    // of a union
	// mapBranches counts the branches of a union that are records or maps; mapBranch is the
	// last of them.
	mapBranches, mapBranch int
	fields                 []avroField    // of a record
	index                  map[string]int // of the fields by name
}

// avroField is a field of a record.
type avroField struct {
	name string
	typ  *avroType
	// missing is what is written when a record lacks the field: the default of the schema,
	// or null where that is a branch. It is nil if there is neither.
	missing []byte
}

// errNotRecordSchema says that no log record can have the schema.
var errNotRecordSchema = errors.New("the schema is none of a record or map")

// ParseAvro reads a schema in JSON; id is its number in the schema registry.
func ParseAvro(text string, id int) (*AvroSchema, error) {
	schema, err := avro.Parse(text)
	if err != nil {
		return nil, err
	}
	c := avroCompiler{named: map[string]*avroType{}}
	root, err := c.compile(schema.Root(), "")
	if err != nil {
		return nil, err
	}
	if root.kind != avroRecord && root.kind != avroMap && root.mapBranches == 0 {
		return nil, errNotRecordSchema
	}
	return &AvroSchema{id: uint32(id), root: root}, nil
}

// ID is the number of the schema.
func (s *AvroSchema) ID() int { return int(s.id) }

// avroCompiler turns the library's tree into avroTypes.
type avroCompiler struct {
	named map[string]*avroType // by full name; a type may stand inside itself
}

// compile turns one node, which stands in a type of the given namespace.
func (c *avroCompiler) compile(n *avro.SchemaNode, namespace string) (*avroType, error) {
	if t, ok := c.named[fullName(namespace, n.Type)]; ok {
		return t, nil
	}
	if t, ok := c.named[n.Type]; ok {
		return t, nil
	}
	t := &avroType{}
	found := false
	for k, word := range avroWords {
		if word == n.Type {
			t.kind, found = avroKind(k), true
		}
	}
	switch {
	case n.Type == "error":
		t.kind = avroRecord
	case !found:
		return nil, fmt.Errorf("the type %q is not known", n.Type)
	}
	if t.kind == avroRecord || t.kind == avroEnum || t.kind == avroFixed {
		namespace = n.Namespace
		c.named[fullName(namespace, n.Name)] = t
	}
	var err error
	switch t.kind {
	case avroFixed:
		t.size = n.Size
	case avroEnum:
		t.symbols = make(map[string]int, len(n.Symbols))
		for i, s := range n.Symbols {
			t.symbols[s] = i
		}
	case avroArray:
		t.item, err = c.compile(n.Items, namespace)
	case avroMap:
		t.item, err = c.compile(n.Values, namespace)
	case avroUnion:
		t.branches = make([]*avroType, len(n.Branches))
		for i := range n.Branches {
			if t.branches[i], err = c.compile(&n.Branches[i], namespace); err != nil {
				break
			}
			if k := t.branches[i].kind; k == avroRecord || k == avroMap {
				t.mapBranches, t.mapBranch = t.mapBranches+1, i
			}
		}
	case avroRecord:
		err = c.compileFields(t, n.Fields, namespace)
	default: // primitive
	}
	return t, err
}

// fullName is a name with its namespace, if it has none of its own.
func fullName(namespace, name string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

func (c *avroCompiler) compileFields(t *avroType, fields []avro.SchemaField, namespace string) error {
	t.fields = make([]avroField, len(fields))
	t.index = make(map[string]int, len(fields))
	for i := range fields {
		f := &fields[i]
		typ, err := c.compile(&f.Type, namespace)
		if err != nil {
			return err
		}
		missing, err := missingValue(f, typ)
		if err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
		t.fields[i] = avroField{name: f.Name, typ: typ, missing: missing}
		t.index[f.Name] = i
	}
	return nil
}

// missingValue encodes what a record without the field gets, or returns nil.
func missingValue(f *avro.SchemaField, typ *avroType) ([]byte, error) {
	if f.HasDefault {
		schema, err := f.Type.Schema()
		if err != nil {
			return nil, err
		}
		return schema.AppendEncode([]byte{}, f.Default)
	}
	if typ.kind == avroNull {
		return []byte{}, nil
	}
	for i, b := range typ.branches {
		if b.kind == avroNull {
			return appendLong(nil, int64(i)), nil
		}
	}
	return nil, nil
}

package config

import (
	_ "embed"
	"fmt"
	"strings"
)

// namesFile lists the properties that librdkafka knows, as it lists them itself;
// cmd/docgen writes it. Each is a question to the Getter.
//
//go:embed rdkafka_names.txt
var namesFile string

// propertyName is one line of rdkafka_names.txt.
type propertyName struct {
	name string
	// scope is P for producers, C for consumers, * for both.
	scope string
	// kind is librdkafka's word for the type of the value; "api" properties are set by
	// code only, and of "hidden" ones nothing is known.
	kind string
	// alias is the property that this is another name of, or empty.
	alias string
}

// rdkafkaPrefix begins the keys of librdkafka's properties.
const rdkafkaPrefix = "rdkafka."

// The words of rdkafka_names.txt that this package looks at.
const (
	scopeConsumer = "C"
	kindInteger   = "integer"
	kindFloat     = "float"
	kindBoolean   = "boolean"
)

// preferred are aliases that are used in place of the property they stand for, because
// everybody, librdkafka's documentation included, writes them.
var preferred = map[string]string{
	"metadata.broker.list":  "bootstrap.servers",
	"request.required.acks": "acks",
}

// All three are read only. A broken file would be a broken build, which the tests see;
// Decode reports it rather than panic inside Fluent Bit.
var (
	propertyNames, errNames = parseNames(namesFile)
	propertyByName          = indexNames(propertyNames)
)

// parseNames reads lines of the form "name scope level kind [alias]".
func parseNames(file string) ([]propertyName, error) {
	var names []propertyName
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 || len(f) > 5 {
			return nil, fmt.Errorf("%q has %d words; want 4 or 5", line, len(f))
		}
		n := propertyName{name: f[0], scope: f[1], kind: f[3]}
		if len(f) == 5 {
			n.alias = f[4]
		}
		names = append(names, n)
	}
	return names, nil
}

func indexNames(names []propertyName) map[string]propertyName {
	index := make(map[string]propertyName, len(names))
	for _, n := range names {
		index[n.name] = n
	}
	return index
}

// canonical gives the one name under which a property is handed over, whichever of its
// names the section uses. A name that is not known stays as it is.
func canonical(name string) string {
	if n, ok := propertyByName[name]; ok && n.alias != "" {
		name = n.alias
	}
	if p, ok := preferred[name]; ok {
		return p
	}
	return name
}

package config

import (
	"iter"
	"slices"
	"strings"
)

// slip is a name that nobody knows and that a slip of the hand makes of a known one.
type slip struct{ wrong, meant string }

// slips gives those of all names of the tables; some come twice. Fluent Bit has no list of the
// keys of a section, so a misspelt one can be found only by asking for it. What is asked for
// is what happens most: a letter left out, doubled or swapped with its neighbour, an s too
// many, the wrong separator. A wrong letter would be thirty times as many questions.
func slips() iter.Seq[slip] {
	var names []string
	for _, o := range Options() {
		names = append(append(names, o.Name), o.Aliases...)
	}
	for _, k := range Foreign {
		names = append(names, k.Name)
	}
	for _, n := range propertyNames {
		names = append(names, rdkafkaPrefix+n.name)
	}
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
	}
	for _, r := range Misnamed {
		known[rdkafkaPrefix+r.Name] = true
	}
	return func(yield func(slip) bool) {
		for _, name := range names {
			for wrong := range variants(name) {
				if !known[wrong] && !yield(slip{wrong, name}) {
					return
				}
			}
		}
	}
}

// variants gives the slips of one name, and the name itself. The prefix of a property is taken
// to be right.
func variants(name string) iter.Seq[string] {
	prefix, rest := "", name
	if s, ok := strings.CutPrefix(name, rdkafkaPrefix); ok {
		prefix, rest = rdkafkaPrefix, s
	}
	return func(yield func(string) bool) {
		ok := yield(prefix + rest + "s")
		for i := 0; ok && i < len(rest); i++ {
			ok = yield(prefix+rest[:i]+rest[i+1:]) && yield(prefix+rest[:i+1]+rest[i:])
			if ok && i > 0 && rest[i-1] != rest[i] {
				ok = yield(prefix + rest[:i-1] + rest[i:i+1] + rest[i-1:i] + rest[i+1:])
			}
		}
		for _, separator := range []rune{'_', '.', '-', none} {
			ok = ok && yield(prefix+separated(rest, separator))
		}
	}
}

// none drops a rune in strings.Map.
const none = -1

// separated writes a name with other separators.
func separated(name string, separator rune) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '.' {
			return separator
		}
		return r
	}, name)
}

// readMisspelt asks for the slips. The built-in output does not start with a key that is
// unknown to it, and goes on without a property that is unknown to librdkafka.
func (d *decoder) readMisspelt(g Getter) {
	var found []string
	for s := range slips() {
		if g.Get(s.wrong) == "" || slices.Contains(found, s.wrong) {
			continue
		}
		found = append(found, s.wrong)
		text := "is unknown; " + s.meant + " is probably meant"
		if strings.HasPrefix(s.wrong, rdkafkaPrefix) {
			d.oversight(s.wrong, text)
		} else {
			d.fault(s.wrong, text)
		}
	}
}

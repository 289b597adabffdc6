package accessor

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// show writes a path in a form that is easy to compare: rec|a|b|#0.
func show(p Path) string {
	out := []string{"rec"}
	if p.metadata {
		out[0] = "meta"
	}
	for _, s := range p.steps {
		if s.isIndex {
			out = append(out, fmt.Sprint("#", s.index))
		} else {
			out = append(out, s.key)
		}
	}
	return strings.Join(out, "|")
}

func TestParsePath(t *testing.T) {
	for text, want := range map[string]string{
		"$a":                            "rec|a",
		"$_a1":                          "rec|_a1",
		"$level_":                       "rec|level_",
		"$kubernetes['namespace_name']": "rec|kubernetes|namespace_name",
		"$a['b'][0]":                    "rec|a|b|#0",
		"$a[12]['c']":                   "rec|a|#12|c",
		"$['a.b-c']":                    "rec|a.b-c",
		"$['it''s']['']":                "rec|it's|",
		"$a[']']":                       "rec|a|]",
		"$METADATA":                     "meta",
		"$METADATA['otlp'][1]":          "meta|otlp|#1",
		"$METADATAS":                    "rec|METADATAS",
		"$metadata":                     "rec|metadata",
		"$['METADATA']":                 "rec|METADATA",
		"$['TAG']":                      "rec|TAG",
	} {
		p, err := ParsePath(text)
		if err != nil || show(p) != want {
			t.Errorf("%s: %s, %v; want %s", text, show(p), err, want)
		}
	}
}

func TestParsePath_Faults(t *testing.T) {
	for text, want := range map[string]string{
		"":                  `is no record accessor`,
		"a":                 `is no record accessor`,
		"$":                 `has a "$" without a name`,
		"$.a":               `has a "$" without a name`,
		"$1":                `has a "$" without a name`,
		"$$":                `has a "$" without a name`,
		"$TAG":              `names the tag`,
		"$TAG[1]":           `names the tag`,
		"$TAGS":             `names the tag`,
		"$a.b":              `does not end behind "$a"; a sub-key is written ['b']`,
		"$app-name":         `does not end behind "$app"`,
		"$a['b'] ":          `does not end behind "$a['b']"`,
		"$a[":               `has neither a quoted key nor a number behind "$a["`,
		"$a[b]":             `has neither a quoted key nor a number behind "$a["`,
		`$a["b"]`:           `has neither a quoted key nor a number behind "$a["`,
		"$a[-1]":            `has neither a quoted key nor a number behind "$a["`,
		"$a['b]":            `without its closing quote`,
		"$a['b'":            `has no ] behind "$a['b'"`,
		"$a['b'c]":          `has no ] behind "$a['b'"`,
		"$a[1":              `has no ] behind "$a[1"`,
		"$a[1048577]":       `has an index above 1048576`,
		"$a[9999999999999]": `has an index above 1048576`,
		"$[0]":              `has an index where a key must stand`,
		"$METADATA[0]":      `has an index where a key must stand`,
	} {
		if p, err := ParsePath(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %s", text, show(p), err, want)
		}
	}
}

func TestParseField(t *testing.T) {
	for text, want := range map[string]string{"a": "rec|a", "a.b['c']": "rec|a.b['c']", "$a['c']": "rec|a|c", "": "rec|"} {
		if p, err := ParseField(text); err != nil || show(p) != want {
			t.Errorf("%q: %s, %v; want %s", text, show(p), err, want)
		}
	}
	if _, err := ParseField("$a."); err == nil {
		t.Error("$a. is accepted")
	}
}

// FuzzParsePath: no panic, and a path that is written in its longest form reads back as it was.
func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"$a", "$a['b'][0]", "$['it''s']", "$METADATA['x'][0]", "$TAG", "$a[", "$['", "$_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		again, err := ParsePath(written(p))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q is written %q and reads back as %s, %v", text, written(p), show(again), err)
		}
		tmpl, err := ParseTemplate(written(p) + "$$")
		if err != nil || len(tmpl) != 2 || !reflect.DeepEqual(tmpl[0].Path, p) || tmpl[1].Text != "$" {
			t.Errorf("%q is not the same in a template: %+v, %v", written(p), tmpl, err)
		}
	})
}

// written is the longest form of a path.
func written(p Path) string {
	out := "$"
	if p.metadata {
		out += metadataName
	}
	for _, s := range p.steps {
		if s.isIndex {
			out += fmt.Sprintf("[%d]", s.index)
		} else {
			out += "['" + strings.ReplaceAll(s.key, "'", "''") + "']"
		}
	}
	return out
}

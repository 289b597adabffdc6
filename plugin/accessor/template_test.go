package accessor

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// showTemplate writes the parts of a template in a row.
func showTemplate(t Template) string {
	var out []string
	for _, p := range t {
		switch p.Kind {
		case Literal:
			out = append(out, fmt.Sprintf("%q", p.Text))
		case Tag:
			out = append(out, "tag")
		case TagPart:
			out = append(out, fmt.Sprint("tag#", p.Index))
		case Date:
			out = append(out, "%"+string(p.date))
		case Field:
			out = append(out, show(p.Path))
		}
	}
	return strings.Join(out, " ")
}

func TestParseTemplate(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"plain":                        `"plain"`,
		"$TAG":                         "tag",
		"$TAG[2]":                      "tag#2",
		"a.$TAG.b":                     `"a." tag ".b"`,
		"$TAG_x":                       `tag "_x"`,
		"$TAG$TAG[0]":                  "tag tag#0",
		"logs.$kubernetes['ns'].%Y.%m": `"logs." rec|kubernetes|ns "." %Y "." %m`,
		"$a-$b/$c.$d":                  `rec|a "-" rec|b "/" rec|c "." rec|d`,
		"$a['b']_$c":                   `rec|a|b "_" rec|c`,
		"$['a']x":                      `rec|a "x"`,
		"$METADATA['k']":               "meta|k",
		"100%% $$5":                    `"100% $5"`,
		"%Y%y%m%d%j%H%M%S%G%V%F%s":     "%Y %y %m %d %j %H %M %S %G %V %F %s",
		"a]b['c'":                      `"a]b['c'"`,
		"{tag} #{x}":                   `"{tag} #{x}"`,
		"$kubernetes.namespace":        `rec|kubernetes ".namespace"`,
		"\u00e9$a\u00e9":               "\"\u00e9\" rec|a \"\u00e9\"",
		"$a['b']['c'][3]":              "rec|a|b|c|#3",
		"$TAG[0]['x']":                 `tag#0 "['x']"`,
		"$a[0]":                        "rec|a|#0",
		"$_x":                          "rec|_x",
		"%%%Y$$$a":                     `"%" %Y "$" rec|a`,
	} {
		got, err := ParseTemplate(text)
		if err != nil || showTemplate(got) != want {
			t.Errorf("%s: %s, %v; want %s", text, showTemplate(got), err, want)
		}
		if constant := !strings.ContainsAny(strings.NewReplacer("$$", "", "%%", "").Replace(text), "$%"); got.Constant() != constant {
			t.Errorf("%s: constant: %v", text, got.Constant())
		}
		if got.HasDate() != strings.Contains(want, "%Y") {
			t.Errorf("%s: has a date: %v", text, got.HasDate())
		}
	}
}

func TestParseTemplate_Faults(t *testing.T) {
	for text, want := range map[string]string{
		"a$":        `has a "$" without a name`,
		"a $ b":     `has a "$" without a name`,
		"$1":        `has a "$" without a name`,
		"$a['b":     `without its closing quote`,
		"$a[x]":     `has neither a quoted key nor a number behind "$a["`,
		"$TAG[":     `has neither a quoted key nor a number behind "$TAG["`,
		"$TAG[x]":   `has neither a quoted key nor a number behind "$TAG["`,
		"$TAG[1":    `has no ] behind "$TAG[1"`,
		"$level_%Y": `has the name "level_", which ends in "_"; write $['level']_ or $['level_']`,
		"50%":       `has a "%" that begins no date`,
		"%Q":        `has a "%" that begins no date`,
		"%":         `has a "%" that begins no date`,
		"$a%":       `has a "%" that begins no date`,
	} {
		if got, err := ParseTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %s", text, showTemplate(got), err, want)
		}
	}
}

func TestPart_AppendDate(t *testing.T) {
	at := time.Date(2027, 1, 2, 3, 4, 5, 999, time.UTC) // a Saturday, in the last week of 2026
	for text, want := range map[string]string{
		"%Y": "2027", "%y": "27", "%m": "01", "%d": "02", "%j": "002", "%H": "03", "%M": "04", "%S": "05",
		"%G": "2026", "%V": "53", "%F": "2027-01-02", "%s": "1798859045",
	} {
		tmpl, err := ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(tmpl[0].AppendDate([]byte("x"), at)); got != "x"+want {
			t.Errorf("%s: %s; want x%s", text, got, want)
		}
	}
}

func TestTagAt(t *testing.T) {
	for _, tt := range []struct {
		tag   string
		index int
		want  string
		ok    bool
	}{
		{"a.b.c", 0, "a", true},
		{"a.b.c", 1, "b", true},
		{"a.b.c", 2, "c", true},
		{"a.b.c", 3, "", false},
		{"a", 0, "a", true},
		{"a", 1, "", false},
		{"", 0, "", true},
		{"", 1, "", false},
		{"a..c", 1, "", true},
		{"a.", 1, "", true},
	} {
		if got, ok := TagAt(tt.tag, tt.index); got != tt.want || ok != tt.ok {
			t.Errorf("part %d of %q: %q, %v; want %q, %v", tt.index, tt.tag, got, ok, tt.want, tt.ok)
		}
	}
}

// FuzzParseTemplate: no panic; a text whose signs are doubled is taken as it stands.
func FuzzParseTemplate(f *testing.F) {
	for _, s := range []string{"", "$TAG[1].$a['b'][0].%Y", "50%", "$", "$a_", "$$%%", "$TAG[", "\xff%\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if tmpl, err := ParseTemplate(text); err == nil && tmpl.Constant() && len(tmpl) > 1 {
			t.Errorf("%q: neighbours that are text are not one: %s", text, showTemplate(tmpl))
		}
		tmpl, err := ParseTemplate(strings.NewReplacer("$", "$$", "%", "%%").Replace(text))
		switch {
		case err != nil:
			t.Errorf("%q, doubled: %v", text, err)
		case text == "" && len(tmpl) != 0, text != "" && (len(tmpl) != 1 || tmpl[0].Text != text):
			t.Errorf("%q, doubled: %s", text, showTemplate(tmpl))
		}
	})
}

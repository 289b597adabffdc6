package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/configuration-errors.md anew")

const errorsDocument = "../../docs/configuration-errors.md"

const errorsHead = `<!-- Generated from the tests of plugin/config by ` + "`make docs`" + `; do not edit. -->

# Messages about the configuration

A section with faults is refused at the start. One message tells all of them, one a line, each with its key, its value and what
is allowed; then Fluent Bit ends:

` + "```" + `
[error] [output:kafka_reconnect:kafka_reconnect.0] the section is refused:
  config: format: "xml" is unknown; allowed: %s
  config: reconnect_backoff_min: "10" has no unit; write 10ms or 10s
  config: brokers: is not set; write host:port of at least one broker, for example kafka-1:9092
` + "```" + `

Below is what each fault looks like, without the ` + "`config: `" + ` in front. Every line is from a test, which fails when the message
changes. The value of a secret, and of whatever looks as if it had one in it (an address with a password or a query, a token, an
assignment to a name such as ` + "`password`" + `), is ` + "`***`" + `. The words behind
"refused by librdkafka:" are those of librdkafka.
`

// The document lists the sections of the tests of this package, so that a message that is
// changed is changed there too.
func TestErrorsDocument_IsCurrent(t *testing.T) {
	want := renderErrors()
	if *rewrite {
		if err := os.WriteFile(errorsDocument, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(errorsDocument)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale; run: make docs", errorsDocument)
	}
}

// renderErrors makes the document.
func renderErrors() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, errorsHead, strings.Join(formats, ", "))
	renderFaults(&b, "Keys of the section", sectionFaults, slices.Clone)
	renderFaults(&b, "Misspelt keys", misspelt, slices.Clone)
	renderFaults(&b, "Properties of librdkafka", clientFaults, slices.Clone)
	b.WriteString("\n[With `strict off`](configuration.md#strict) the following are warnings.\n")
	renderFaults(&b, "What the built-in output would ignore in silence", oversights, strictly)
	return b.Bytes()
}

// renderFaults writes one table. A section with a value that the message has to cut is left
// out, as it would not show the form.
func renderFaults(b *bytes.Buffer, title string, cases []faultCase, messages func([]string) []string) {
	fmt.Fprintf(b, "\n## %s\n\n| in the section | message |\n|---|---|\n", title)
	for _, c := range cases {
		var keys []string
		for k, v := range c.keys {
			if v == "" { // the key of the minimal section is taken away
				k, v = "# without", k
			}
			keys = append(keys, strings.TrimSpace(k+" "+v))
		}
		slices.Sort(keys)
		row := "| " + cell(keys) + " | " + cell(messages(c.want)) + " |\n"
		if !strings.Contains(row, "…") {
			b.WriteString(row)
		}
	}
}

// cell sets lines in code type, one below the other.
func cell(lines []string) string {
	var coded []string
	for _, line := range lines {
		coded = append(coded, "`"+strings.ReplaceAll(line, "|", `\|`)+"`")
	}
	return strings.Join(coded, "<br>")
}

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"out_kafka_reconnect/plugin/config"
)

// The hand-written parts of docs/configuration.md. What depends on a table is not in
// them.
var (
	//go:embed configuration_head.md
	configurationHead string
	//go:embed configuration_catchall.md
	configurationCatchAll string
	//go:embed configuration_strict.md
	configurationStrict string
	//go:embed configuration_differences.md
	configurationDifferences string
)

// renderConfiguration makes docs/configuration.md from the tables of plugin/config.
func renderConfiguration() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(configurationHead)
	for _, s := range config.Sections {
		renderSection(&b, s)
	}
	renderSettings(&b)
	renderRules(&b)
	b.WriteString(configurationCatchAll)
	b.WriteString(configurationStrict)
	b.WriteString(configurationDifferences)
	renderForeign(&b)
	renderMisnamed(&b)
	return b.Bytes(), nil
}

// renderSection writes one group of options: a table, then what the table has no room
// for.
func renderSection(b *bytes.Buffer, s config.Section) {
	fmt.Fprintf(b, "\n## %s\n\n", s.Title)
	if s.Intro != "" {
		fmt.Fprintf(b, "%s\n\n", s.Intro)
	}
	b.WriteString("| key | kind | default | allowed | meaning |\n|---|---|---|---|---|\n")
	for _, o := range s.Options {
		row(b, code(o.Name), string(o.Kind), orDash(code(o.Default)), orDash(o.Allowed), o.Doc)
	}
	b.WriteString("\n")
	for _, o := range s.Options {
		if o.Note == "" && len(o.Aliases) == 0 {
			continue
		}
		fmt.Fprintf(b, "- %s:", code(o.Name))
		if o.Note != "" {
			b.WriteString(" " + o.Note)
		}
		if len(o.Aliases) > 0 {
			fmt.Fprintf(b, " Also written %s.", codes(o.Aliases))
		}
		b.WriteString("\n")
	}
}

// renderSettings lists the properties that the plugin sets.
func renderSettings(b *bytes.Buffer) {
	b.WriteString("\n### What the plugin sets\n\n")
	b.WriteString("These differ from librdkafka's own defaults. A value in the section replaces them, unless the next" +
		" table names them.\n\n| property | value | why |\n|---|---|---|\n")
	for _, s := range config.Settings {
		row(b, code(s.Name), s.Value, s.Why)
	}
	b.WriteString("\nIdempotence is switched off, with a warning, when the section sets `acks` to anything but all," +
		" `max.in.flight` above 5, `retries` 0, `queue.buffering.backpressure.threshold` above 1 or" +
		" `queuing.strategy lifo`, for librdkafka does not allow these with it. Then a connection that breaks can double" +
		" what was in flight. With `acks 0` the brokers acknowledge nothing, and nothing can be promised.\n")
}

// renderRules lists the properties that the section can't set.
func renderRules(b *bytes.Buffer) {
	b.WriteString("\n### What the supervisor owns\n\n")
	b.WriteString("A value in the section is not applied; a warning at the start says so.\n\n" +
		"| property | why | use instead |\n|---|---|---|\n")
	for _, r := range config.Owned {
		row(b, code(r.Name), r.Why, orDash(code(r.Use)))
	}
	b.WriteString("\n### What is refused\n\n| property | why |\n|---|---|\n")
	for _, r := range config.Refused {
		row(b, code(r.Name), r.Why)
	}
	b.WriteString("\n### What is never printed\n\n")
	secrets := slices.Clone(config.Secrets)
	for _, o := range config.Options() {
		if o.Secret && o.Kind == config.KindText { // a list has secrets among others
			secrets = append(secrets, o.Name)
		}
	}
	fmt.Fprintf(b, "The values of %s, of properties that this version does not know, and of anything that looks like an"+
		" address with a password or a query in it, or like a token or an assignment to a name such as `password`, appear as `***` in every message.\n", codes(secrets))
}

// renderForeign lists the keys of the built-in output that have no effect here.
func renderForeign(b *bytes.Buffer) {
	b.WriteString("\n### Keys of the built-in output without effect\n\n" +
		"Each is accepted and earns a warning.\n\n" +
		"| key | what it is about |\n|---|---|\n")
	for _, k := range config.Foreign {
		row(b, codes([]string{k.Name}), k.Note)
	}
}

// renderMisnamed lists the names of other clients.
func renderMisnamed(b *bytes.Buffer) {
	b.WriteString("\n### Names of other clients\n\n" +
		"librdkafka does not know these. They are refused, and with `strict off` only named in a warning.\n\n" +
		"| key | why | use instead |\n|---|---|---|\n")
	for _, r := range config.Misnamed {
		row(b, code("rdkafka."+r.Name), r.Why, orDash(r.Use))
	}
}

// row writes one line of a table.
func row(b *bytes.Buffer, cells ...string) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %s ", strings.ReplaceAll(c, "|", `\|`))
	}
	b.WriteString("|\n")
}

// code sets a word in code type; an empty word stays empty.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func codes(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = code(w)
	}
	return strings.Join(quoted, ", ")
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

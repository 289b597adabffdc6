package rig

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Conf is a host's configuration. The rig brings [SERVICE] and [INPUT].
type Conf struct {
	// YAML tells that Outputs are the items of pipeline.outputs in YAML, and has the whole file in that form. Only the real
	// Fluent Bit reads it.
	YAML bool
	// Service holds further lines of [SERVICE]; they win over ours.
	Service string
	// Outputs are the [OUTPUT] sections.
	Outputs string
	// Vars are the names that may stand in both as ${NAME}. Other names are left to the host.
	Vars map[string]string
}

// DefaultOutputs is what a scenario gets that brings no section: the section of a user who reads the manual.
const DefaultOutputs = `
[OUTPUT]
    Name         kafka_reconnect
    Match        *
    Brokers      ${BROKERS}
    Topics       app
    Retry_Limit  no_limits
`

// service is the part of [SERVICE] that both hosts share. Retries come quickly, as in fluent-bit.conf.example.
func service(dir string) map[string]string {
	return map[string]string{
		"flush":          "1",
		"grace":          "5",
		"log_level":      "info",
		"scheduler.base": "1",
		"scheduler.cap":  "3",
		"storage.path":   dir,
	}
}

// file is the name of the configuration in its form, by which Fluent Bit knows it.
func (c Conf) file() string {
	if c.YAML {
		return "host.yaml"
	}
	return "host.conf"
}

// render returns the file. Own are further keys of [SERVICE], input is the section of that name.
func (c Conf) render(storage string, own map[string]string, input string) (string, error) {
	keys := service(storage)
	maps.Copy(keys, own)
	for line := range strings.Lines(c.expand(c.Service)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, " ")
		if !found {
			return "", fmt.Errorf("making the configuration: %q is no key and value", line)
		}
		keys[strings.ToLower(key)] = strings.TrimSpace(value)
	}
	if c.YAML {
		return c.renderYAML(keys, input), nil
	}
	var b strings.Builder
	b.WriteString("[SERVICE]\n")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "    %s %s\n", key, keys[key])
	}
	b.WriteString("\n" + input + "\n" + c.expand(c.Outputs))
	return b.String(), nil
}

// renderYAML writes the same in YAML; input is in classic format.
func (c Conf) renderYAML(keys map[string]string, input string) string {
	var b strings.Builder
	b.WriteString("service:\n")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "  %s: %q\n", key, keys[key])
	}
	b.WriteString("pipeline:\n  inputs:\n")
	bullet := "-"
	for line := range strings.Lines(input) {
		key, value, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found { // [INPUT], or nothing
			bullet = "-"
			continue
		}
		fmt.Fprintf(&b, "    %s %s: %q\n", bullet, key, value)
		bullet = " "
	}
	b.WriteString("  outputs:\n")
	for line := range strings.Lines(c.expand(c.Outputs)) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// named is a name in a text. A bare $name is left alone: that is a field of a record in the language of the plugin.
var named = regexp.MustCompile(`\$\{(\w+)\}`)

func (c Conf) expand(text string) string {
	return named.ReplaceAllStringFunc(text, func(whole string) string {
		if value, ok := c.Vars[named.FindStringSubmatch(whole)[1]]; ok {
			return value
		}
		return whole
	})
}

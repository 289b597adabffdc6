package rig

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Conf is a host's configuration in classic format. The rig brings [SERVICE] and [INPUT].
type Conf struct {
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
	var b strings.Builder
	b.WriteString("[SERVICE]\n")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "    %s %s\n", key, keys[key])
	}
	b.WriteString("\n" + input + "\n" + c.expand(c.Outputs))
	return b.String(), nil
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

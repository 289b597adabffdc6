package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// The parsers return errors that continue the sentence `config: key: "value" …`.

var (
	errDuration = errors.New("is not a duration; use a number and a unit such as 500ms, 2s or 1m30s")
	errSize     = errors.New("is not a size; use a number and a unit such as 64MiB or 500MB")
	errBool     = errors.New("is neither true nor false; allowed: true, on, yes, false, off, no")
	errInt      = errors.New("is not a whole number")
)

// parseDuration reads what time.ParseDuration reads, in any letter case, but no bare
// number, not even 0: whoever writes 100 may mean seconds, as elsewhere in Fluent Bit,
// or milliseconds, as in librdkafka.
func parseDuration(text string) (time.Duration, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	if n, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		if len(s) > 12 {
			return 0, errors.New("has no unit; write for example 500ms or 2s")
		}
		return 0, fmt.Errorf("has no unit; write %sms or %ss", s, s)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}

// formatDuration is the shortest text that parseDuration reads back: 4m, not 4m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// sizeUnits are ordered so that formatSize finds the largest fitting unit first, and
// binary before decimal ones. K, M and G are powers of 1000 as everywhere else in
// Fluent Bit's configuration.
var sizeUnits = []struct {
	names []string
	bytes int64
}{
	{[]string{"GiB"}, 1 << 30},
	{[]string{"MiB"}, 1 << 20},
	{[]string{"KiB"}, 1 << 10},
	{[]string{"GB", "G"}, 1e9},
	{[]string{"MB", "M"}, 1e6},
	{[]string{"KB", "K"}, 1e3},
	{[]string{"B", ""}, 1},
}

// parseSize reads a whole number of bytes with an optional unit in any letter case.
func parseSize(text string) (int64, error) {
	s := strings.TrimSpace(text)
	end := 0
	for end < len(s) && '0' <= s[end] && s[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return 0, errSize
	}
	unit := strings.TrimSpace(s[end:])
	for _, u := range sizeUnits {
		for _, name := range u.names {
			if !strings.EqualFold(unit, name) {
				continue
			}
			if n > math.MaxInt64/u.bytes {
				return 0, errors.New("is too large")
			}
			return n * u.bytes, nil
		}
	}
	return 0, errSize
}

// formatSize is the shortest exact text that parseSize reads back.
func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.names[0]
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// parseBool reads the words that Fluent Bit's core takes for booleans.
func parseBool(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "on", "yes":
		return true, nil
	case "false", "off", "no":
		return false, nil
	}
	return false, errBool
}

func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, errInt
	}
	return n, nil
}

// parseList splits at commas. Blanks around an item are dropped and so are empty
// items and repeated ones.
func parseList(text string) []string {
	var items []string
	seen := make(map[string]bool)
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" || seen[item] {
			continue
		}
		seen[item] = true
		items = append(items, item)
	}
	return items
}

// CheckTopic returns nil if Kafka takes the name for a topic.
func CheckTopic(name string) error {
	switch {
	case name == "":
		return errors.New("a topic name is never empty")
	case len(name) > 249:
		return errors.New("a topic name has at most 249 characters")
	case name == "." || name == "..":
		return errors.New(`a topic is never called "." or ".."`)
	}
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case r == '.', r == '_', r == '-':
		default:
			return errors.New("a topic name consists of letters a-z, digits, '.', '_' and '-'")
		}
	}
	return nil
}

// parseTopic reads one topic.
func parseTopic(text string) (string, error) {
	name := strings.TrimSpace(text)
	if err := CheckTopic(name); err != nil {
		return "", fmt.Errorf("is a name that Kafka refuses (%w)", err)
	}
	return name, nil
}

// foreignSlash is allowed in the topic names of some brokers that speak Kafka's protocol. Who
// lists a topic with one has such a broker.
const foreignSlash = "/"

// parseTopics reads the list of topics; its error names every bad one.
func parseTopics(text string) ([]string, error) {
	topics := parseList(text)
	if len(topics) == 0 {
		return nil, errors.New("names no topic")
	}
	var bad []string
	for _, t := range topics {
		if err := CheckTopic(strings.ReplaceAll(t, foreignSlash, "-")); err != nil {
			bad = append(bad, fmt.Sprintf("%s (%v)", shown(t), err))
		}
	}
	if bad != nil {
		return nil, errors.New("has names that Kafka refuses: " + strings.Join(bad, ", "))
	}
	return topics, nil
}

// parseBrokers trims the bootstrap list; whether its items make sense is checked later,
// when the security protocol is known.
func parseBrokers(text string) (string, error) {
	items := parseList(text)
	if len(items) == 0 {
		return "", errors.New("names no broker; write host:port of at least one")
	}
	return strings.Join(items, ","), nil
}

// checkBrokers looks at each item of a bootstrap list, [protocol://]host[:port], for
// the two slips that librdkafka lets pass: a port that it reads as 0, and a protocol
// other than security.protocol, at which it drops the rest of the list.
func checkBrokers(list, protocol string) error {
	if strings.Contains(list, "@") { // first, for the other errors quote a part of the list
		return errors.New("names a user; that belongs into rdkafka.sasl.username and rdkafka.sasl.password")
	}
	for _, item := range parseList(list) {
		if strings.ContainsAny(item, " \t;|") {
			return fmt.Errorf("has %s, which is no [protocol://]host[:port]; brokers are separated by commas", shown(item))
		}
		host := item
		if proto, rest, ok := strings.Cut(item, "://"); ok {
			if !strings.EqualFold(proto, protocol) {
				return fmt.Errorf("has the protocol of %s, but security.protocol is %s", shown(item), protocol)
			}
			host, _, _ = strings.Cut(rest, "/")
		}
		colon := strings.LastIndexByte(host, ':')
		if colon < 0 || (strings.IndexByte(host, ':') != colon && host[colon-1] != ']') {
			continue // no port, or a bare IPv6 address
		}
		if !isPort(host[colon+1:]) {
			return fmt.Errorf("has no port between 1 and 65535 in %s", shown(item))
		}
	}
	return nil
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

const (
	listenAllowed = "port, :port or host:port, with a port from 1 to 65535"
	loopback      = "127.0.0.1"
)

// parseListen reads an address to listen at and returns it as host:port. Without a host it
// is the loopback address: what everybody may see must be said.
func parseListen(text string) (string, error) {
	s := strings.TrimSpace(text)
	if isPort(s) {
		s = ":" + s
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || !isPort(port) || strings.ContainsAny(host, "/@* \t") {
		return "", errors.New("is not an address to listen at; allowed: " + listenAllowed)
	}
	if host == "" {
		host = loopback
	}
	return net.JoinHostPort(strings.ToLower(host), port), nil
}

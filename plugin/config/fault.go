package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxValue is how much of a value is quoted; certificates and ARNs can be long.
	maxValue = 80
	// maxReason is how much of librdkafka's text is taken over.
	maxReason = 300
	// maxFault bounds one fault.
	maxFault = 1000
	// maxMessage keeps the whole error inside one Fluent Bit log line, which ends at
	// 4096 bytes with its time and name.
	maxMessage = 3800
)

// faults is the error of Decode. It is what errors.Join makes, but bounded in length.
type faults []error

// Error is one line per fault. Every line tells its key, so the lines can be read and
// searched alone.
func (f faults) Error() string {
	var b strings.Builder
	for i, err := range f {
		if i > 0 {
			b.WriteByte('\n')
		}
		line := err.Error()
		if b.Len()+len(line) > maxMessage {
			fmt.Fprintf(&b, "config: and %d more; mend these first", len(f)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// Unwrap gives the faults one by one.
func (f faults) Unwrap() []error { return f }

// quote makes a value safe for a log line: quoted, without line breaks, bounded.
func quote(value string) string {
	return strconv.Quote(cut(value, maxValue))
}

// cut shortens s to at most n bytes, between two runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// oneLine makes librdkafka's text, some of which ends with a line break, fit into ours.
func oneLine(text string) string {
	return cut(strings.Join(strings.Fields(text), " "), maxReason)
}

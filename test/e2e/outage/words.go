package outage

import (
	"math"
	"strconv"
)

// hostName is how people call a host.
func hostName(kind string) string {
	if kind == "fluent-bit" {
		return "Fluent Bit"
	}
	return "the C host"
}

// thousands writes a number with a comma before every three digits.
func thousands(n int) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// tenths rounds to a tenth, and never to "-0.0".
func tenths(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', 1, 64)
}

package chunk

// Signal is what a chunk holds. Fluent Bit does not say, but no two look alike.
type Signal uint8

// The signals.
const (
	// Logs are records, which a [Walker] reads. So is everything else that is not one of the
	// following.
	Logs Signal = iota
	// Metrics are contexts of cmetrics, one behind the other.
	Metrics
	// Traces are contexts of ctraces, one behind the other.
	Traces
)

// String returns the signal in words, also for a value that is none.
func (s Signal) String() string {
	switch s {
	case Logs:
		return "logs"
	case Metrics:
		return "metrics"
	case Traces:
		return "traces"
	}
	return "unknown"
}

// SignalOf tells what a chunk holds by its first bytes. A log record is an array, and the contexts
// are maps that begin with a certain key.
func SignalOf(chunk []byte) Signal {
	h, pos := ReadHead(chunk, 0)
	if h.Type != Map || h.N == 0 {
		return Logs
	}
	switch key, pos := readText(chunk, pos); key {
	case "resourceSpans":
		if h, _ := ReadHead(chunk, pos); h.Type == Array {
			return Traces
		}
	case "meta":
		h, pos := ReadHead(chunk, pos)
		if key, _ := readText(chunk, pos); h.Type == Map && key == "cmetrics" {
			return Metrics
		}
	}
	return Logs
}

// readText returns the text at b[pos:] and the position behind it; it is empty if there is none.
func readText(b []byte, pos int) (string, int) {
	h, pos := ReadHead(b, pos)
	if h.Type != Str {
		return "", pos
	}
	end := pos + int(h.N)
	return string(b[pos:end]), end
}

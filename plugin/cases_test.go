package plugin

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// flushCase is one case of testdata/records.json; what its messages look like is checked in package format.
type flushCase struct {
	Name     string
	Config   settings
	ChunkHex string            `json:"chunk_hex"`
	Expect   []json.RawMessage // the messages
}

// warned is what the log says, once, of the cases that do not pass in silence.
func (c flushCase) warned() string {
	switch {
	case c.ChunkHex == "":
		return ""
	case strings.HasPrefix(c.Name, "broken-"):
		return "WARN [test] bytes of a chunk are no record and were left out tag=tag offset=0 err="
	case c.Name == "time-encoding-negative":
		return "WARN [test] records without a usable time got the time of the flush tag=tag count=1"
	}
	return ""
}

// The answer to Fluent Bit and the log are as the cases want them: OK at once where there is a record, never a retry without
// an end, one line for what is odd and none for what is not, and the next chunk is as any other.
func TestInstance_FlushesCases(t *testing.T) {
	text, err := os.ReadFile("testdata/records.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []flushCase }
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(file.Cases), err)
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			chunk, err := hex.DecodeString(c.ChunkHex)
			if err != nil {
				t.Fatal(err)
			}
			s := settings{"topics": "alpha"}
			for option, value := range c.Config {
				s[option] = value
			}
			inBubble(t, s, func(b *bench) {
				want := OK
				if len(c.Expect) == 0 && len(chunk) > 0 {
					want = Error // Fluent Bit drops it: there is nothing to try again
				}
				b.flush(chunk, true, want)
				if got := len(b.net.Messages()); got != len(c.Expect) {
					t.Errorf("%d messages; want %d", got, len(c.Expect))
				}
				odd := b.host.count("WARN ") + b.host.count("ERROR ")
				if line := c.warned(); line == "" && odd > 0 || line != "" && (odd != 1 || b.host.count(line) != 1) {
					t.Errorf("log %q; want %q", b.host.lines, line)
				}
				b.flush(records(1, 2), true, OK)
				if got := len(b.net.Messages()); got != len(c.Expect)+2 {
					t.Errorf("%d messages after the next chunk; want %d", got, len(c.Expect)+2)
				}
			})
		})
	}
}

package herd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// key names a case, and the result of it.
func (c Case) key() string {
	return key(c.Policy.Name, c.Agents, c.Brokers, int(c.Outage/time.Second), c.Accepts)
}

func (r Result) key() string { return key(r.Policy, r.Agents, r.Brokers, r.OutageS, r.Accepts) }

func key(policy string, agents, brokers, outage, accepts int) string {
	return fmt.Sprintf("%s, %d agents, %d brokers, %d s, accepts %d", policy, agents, brokers, outage, accepts)
}

// book has the results by their case.
type book map[string]Result

// of returns the result of a case; a case without one shows as a row of zeros, which no test
// lets pass.
func (b book) of(c Case) Result { return b[c.key()] }

// readResults reads a file of JSON lines.
func readResults(path string) (book, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := book{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		b[r.key()] = r
	}
	return b, lines.Err()
}

// writeResults writes the results of the cases, in their order.
func writeResults(path string, cs []Case, b book) error {
	var text strings.Builder
	for _, c := range cs {
		line, err := json.Marshal(b.of(c))
		if err != nil {
			return err
		}
		text.Write(line)
		text.WriteByte('\n')
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

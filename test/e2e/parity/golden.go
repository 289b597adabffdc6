package parity

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"strings"
)

// A Recording is what Kafka received from the built-in output.
type Recording struct {
	// Version is that of Fluent Bit.
	Version string
	// Lines are the messages of each record of each section.
	lines map[place]*recorded
	order []place
}

// place is where a recording belongs.
type place struct{ section, record string }

type recorded struct {
	sum      uint32 // of the chunk
	messages []Message
}

// NewRecording returns an empty one.
func NewRecording(version string) *Recording {
	return &Recording{Version: version, lines: map[place]*recorded{}}
}

// Add adds the messages of a record.
func (r *Recording) Add(section string, record Record, messages []Message) {
	p := place{section, record.Name}
	r.lines[p] = &recorded{crc32.ChecksumIEEE(record.Chunk), messages}
	r.order = append(r.order, p)
}

// Of returns the messages of a record. It is an error if it was not recorded, or with other bytes.
func (r *Recording) Of(section string, record Record) ([]Message, error) {
	l := r.lines[place{section, record.Name}]
	switch {
	case l == nil:
		return nil, fmt.Errorf("section %s, record %q: not recorded; run: make parity RECORD=1", section, record.Name)
	case l.sum != crc32.ChecksumIEEE(record.Chunk):
		return nil, fmt.Errorf("section %s, record %q: recorded with other bytes; run: make parity RECORD=1", section, record.Name)
	}
	return l.messages, nil
}

// Len is the number of records in all sections.
func (r *Recording) Len() int { return len(r.order) }

// versionLine is how the first line begins.
const versionLine = "# What Kafka received from the kafka output of Fluent Bit "

// Write writes a line for each record, without messages, and one for each message: topic, partition, key, value, headers.
func (r *Recording) Write(path string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s\n", versionLine, r.Version)
	section := ""
	for _, p := range r.order {
		if p.section != section {
			section = p.section
			fmt.Fprintf(&b, "\nsection %s\n", section)
		}
		l := r.lines[p]
		fmt.Fprintf(&b, "record %08x %s\n", l.sum, p.record)
		for _, m := range l.messages {
			fmt.Fprintf(&b, "%s\n", &m)
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// ReadRecording reads what Write wrote.
func ReadRecording(path string) (*Recording, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := NewRecording("")
	var current place
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if err := r.readLine(line, &current); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return r, lines.Err()
}

func (r *Recording) readLine(line string, current *place) error {
	if version, ok := strings.CutPrefix(line, versionLine); ok {
		r.Version = version
		return nil
	}
	if section, ok := strings.CutPrefix(line, "section "); ok {
		*current = place{section: section}
		return nil
	}
	if record, ok := strings.CutPrefix(line, "record "); ok {
		sum, name, _ := strings.Cut(record, " ")
		n, err := strconv.ParseUint(sum, 16, 32)
		if err != nil {
			return err
		}
		current.record = name
		r.lines[*current] = &recorded{sum: uint32(n)}
		r.order = append(r.order, *current)
		return nil
	}
	if line == "" {
		return nil
	}
	m, err := parseMessage(line)
	if err == nil {
		l := r.lines[*current]
		l.messages = append(l.messages, m)
	}
	return err
}

// parseMessage reads what [Message.String] wrote.
func parseMessage(line string) (m Message, err error) {
	fields := strings.Split(line, "\t")
	if len(fields) < 4 {
		return m, fmt.Errorf("%q is no message", line)
	}
	unquote := func(text string) string {
		s, failed := strconv.Unquote(text)
		if failed != nil {
			err = fmt.Errorf("reading %q: %w", text, failed)
		}
		return s
	}
	m.Topic, m.Value = unquote(fields[0]), []byte(unquote(fields[3]))
	if fields[1] != "-" {
		n, failed := strconv.ParseInt(fields[1], 10, 32)
		if failed != nil {
			err = failed
		}
		m.Partition = int32(n)
	}
	if fields[2] != "-" {
		m.Key = []byte(unquote(fields[2]))
	}
	for _, field := range fields[4:] {
		if field == "event time" {
			m.EventTime = true
			continue
		}
		m.Headers = append(m.Headers, unquote(field))
	}
	return m, err
}

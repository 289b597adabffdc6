package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/test/e2e/audit"
)

// A Letter is a dead letter, from a topic or a file.
type Letter struct {
	Kind   string
	Code   int
	Reason string
	Topic  string // where the record should have gone
	Tag    string
	// Number is that of the record; 0 if its value tells of none.
	Number int64
}

// numbered finds the number in a value that may be cut.
var numbered = regexp.MustCompile(`"seq":([0-9]+)`)

func numberOf(value string) int64 {
	match := numbered.FindStringSubmatch(value)
	if match == nil {
		return 0
	}
	n, _ := strconv.ParseInt(match[1], 10, 64) // digits, and few of them
	return n
}

// letterHeaders is what the names of the plugin's headers begin with, see docs/dead-letter.md.
const letterHeaders = "__kafka_reconnect.errors."

// TopicLetters reads a dead-letter topic to its end. It waits for a topic that is not there.
func TopicLetters(ctx context.Context, b Broker, topic string) ([]Letter, error) {
	var letters []Letter
	res, err := audit.Read(ctx, audit.Options{
		Brokers: b.AuditAddrs(), Topic: topic,
		Extract: func(r *kgo.Record) (int64, error) {
			l, err := letterOf(r)
			letters = append(letters, l)
			return int64(len(letters)), err
		},
	})
	if err == nil && res.Unreadables > 0 {
		err = fmt.Errorf("reading the letters in topic %q: %v", topic, res.Unreadable)
	}
	return letters, err
}

func letterOf(r *kgo.Record) (Letter, error) {
	headers := map[string]string{}
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	l := Letter{
		Kind: headers[letterHeaders+"kind"], Reason: headers[letterHeaders+"reason"], Topic: headers[letterHeaders+"topic"],
		Tag: headers[letterHeaders+"tag"], Number: numberOf(string(r.Value)),
	}
	code, err := strconv.Atoi(headers[letterHeaders+"code"])
	if err != nil {
		return l, fmt.Errorf("reading the code of a letter: %w", err)
	}
	l.Code = code
	return l, nil
}

// longestLetter bounds a line of a dead-letter file.
const longestLetter = 16 << 20

// FileLetters reads a dead-letter file. A file that is not there holds none.
func FileLetters(path string) ([]Letter, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading letters: %w", err)
	}
	defer func() { _ = f.Close() }()
	var letters []Letter
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, longestLetter)
	for lines.Scan() {
		var line struct {
			Letter
			Value string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return letters, fmt.Errorf("reading letter %d of %s: %w", len(letters)+1, path, err)
		}
		line.Number = numberOf(line.Value)
		letters = append(letters, line.Letter)
	}
	return letters, lines.Err()
}

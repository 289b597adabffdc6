package rig

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A Line is one line of a host's log.
type Line struct {
	// At is when the line arrived here. The plugin's lines may be a second older: they wait for a thread of the host.
	At   time.Time
	Text string
}

// A Log is what a host has written, over all its runs. Any goroutine may use it.
type Log struct {
	lines journal[Line]
}

// colours are the escape sequences that some versions put into their lines.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (l *Log) add(text string) {
	l.lines.add(Line{At: time.Now(), Text: colours.ReplaceAllString(text, "")})
}

// Len is the number of lines so far.
func (l *Log) Len() int { return l.lines.size() }

// Since returns the lines from one index on.
func (l *Log) Since(from int) []Line { return l.lines.since(from) }

// Find returns the lines from one index on that match.
func (l *Log) Find(from int, pattern *regexp.Regexp) []Line {
	var found []Line
	for _, line := range l.Since(from) {
		if pattern.MatchString(line.Text) {
			found = append(found, line)
		}
	}
	return found
}

// Wait returns the first line from one index on that matches, now or later.
func (l *Log) Wait(ctx context.Context, from int, pattern *regexp.Regexp) (Line, error) {
	line, err := l.lines.wait(ctx, from, func(line Line) bool { return pattern.MatchString(line.Text) })
	if err != nil {
		return line, fmt.Errorf("waiting for a log line like %q: %w", pattern, err)
	}
	return line, nil
}

// Leak returns an error when a line holds one of the secrets. It prints neither.
func (l *Log) Leak(secrets []string) error {
	for n, line := range l.Since(0) {
		for i, secret := range secrets {
			if strings.Contains(line.Text, secret) {
				return fmt.Errorf("line %d of the log holds secret %d", n+1, i)
			}
		}
	}
	return nil
}

// Tail returns the last lines as one text.
func (l *Log) Tail(n int) string {
	lines := l.Since(l.Len() - n)
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text
	}
	return strings.Join(texts, "\n")
}

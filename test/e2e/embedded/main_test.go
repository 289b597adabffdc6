package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
)

// talk runs the program and returns a function that sends a command, or reads the first line when it is empty.
func talk(t *testing.T, args ...string) (ask func(command string) status, exit <-chan int) {
	t.Helper()
	commands, stdin := io.Pipe()
	stdout, answers := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(args, commands, answers, io.Discard)
		_ = answers.Close()
		_ = commands.Close()
	}()
	t.Cleanup(func() { _ = stdin.Close() })
	lines := bufio.NewScanner(stdout)
	return func(command string) status {
		t.Helper()
		if command != "" {
			if _, err := io.WriteString(stdin, command+"\n"); err != nil {
				t.Fatalf("sending %q: %v", command, err)
			}
		}
		if !lines.Scan() {
			t.Fatalf("no answer to %q: %v", command, lines.Err())
		}
		var s status
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("answer to %q: %v: %s", command, err, lines.Text())
		}
		return s
	}, code
}

func TestRun_AnswersEveryCommandWithOneLine(t *testing.T) {
	ask, exit := talk(t, "-topic", "app:2", "-topic", "other:1")
	addr := ask("").Addrs[0]
	for _, step := range []struct {
		command, state string
		ok, refused    bool
	}{
		{"status", "up", true, false},
		{"stop", "down", true, true},
		{"freeze", "down", false, true},
		{"start", "up", true, false},
		{"freeze 0", "frozen", true, false},
		{"thaw", "up", true, false},
		{"stop 7", "up", false, false},
		{"disconnect", "up", true, false},
		{"dance", "up", false, false},
	} {
		got := ask(step.command)
		if got.OK != step.ok || got.State != step.state || (got.Error == "") != step.ok {
			t.Errorf("%s: got ok %v, state %q, error %q; want ok %v, state %q",
				step.command, got.OK, got.State, got.Error, step.ok, step.state)
		}
		if c, err := net.Dial("tcp", addr); (err != nil) != step.refused {
			t.Errorf("%s: dialling gave %v, want refused %v", step.command, err, step.refused)
		} else if err == nil {
			_ = c.Close()
		}
	}
	if topics := ask("topics").Topics; len(topics["app"]) != 2 || len(topics["other"]) != 1 {
		t.Errorf("topics: got %v, want 2 partitions of app and 1 of other", topics)
	}
	if got := ask("quit"); !got.OK {
		t.Errorf("quit: %s", got.Error)
	}
	if code := <-exit; code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestRun_EndsWithItsInput(t *testing.T) {
	if code := run(nil, strings.NewReader(""), io.Discard, io.Discard); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestRun_WrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-topic", "app"}, {"-topic", ":1"}, {"-port", "x"}, {"stray"}} {
		if code := run(args, strings.NewReader(""), io.Discard, io.Discard); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
	}
}

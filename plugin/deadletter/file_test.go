package deadletter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, o FileOptions) *File {
	t.Helper()
	f, err := OpenFile(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t *testing.T, f *File, letters ...Letter) {
	t.Helper()
	if n, err := f.Write(letters); n != len(letters) || err != nil {
		t.Fatalf("wrote %d of %d: %v", n, len(letters), err)
	}
}

// lines reads the JSON lines of some files.
func lines(t *testing.T, paths ...string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for l := range bytes.Lines(data) {
			var m map[string]any
			if err := json.Unmarshal(l, &m); err != nil || l[len(l)-1] != '\n' {
				t.Fatalf("%s: %q: %v", path, l, err)
			}
			out = append(out, m)
		}
	}
	return out
}

func all(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestFile_OneLineForEachLetter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "for", "it", "dead.jsonl")
	f := open(t, FileOptions{Path: path, Limit: 1 << 20, Keep: 1})
	write(t, f,
		Letter{
			Kind: TooLarge, Code: 10, Reason: "too <large>", Topic: "app", Tag: "tag", Time: noon, EventTime: event,
			Key: []byte("k\n"), Value: []byte(`{"a":"ä"}`), Headers: []Header{{"h", []byte{0xff}}, {"n", nil}},
		},
		Letter{Kind: Undecodable, Time: noon, Value: []byte{0xc1, 0xff}, Key: []byte{}},
	)
	// No Close: what Write has returned for can be read at once.
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-03-01T12:00:00.0000005Z","kind":"too_large","code":10,"reason":"too <large>","topic":"app","tag":"tag",` +
		`"event_time":"2026-03-01T11:59:00Z","key":"k\n","value":"{\"a\":\"ä\"}",` +
		`"headers":[{"name":"h","value":"/w==","value_encoding":"base64"},{"name":"n","value":null}]}` + "\n" +
		`{"time":"2026-03-01T12:00:00.0000005Z","kind":"undecodable","code":0,"reason":"","topic":"","tag":"",` +
		`"key":"","value":"wf8=","value_encoding":"base64"}` + "\n"
	if string(data) != want {
		t.Errorf("got\n%swant\n%s", data, want)
	}
}

func numberedLetters(first, n, size int) []Letter {
	out := make([]Letter, n)
	for i := range out {
		out[i] = Letter{Kind: RejectedByBroker, Code: first + i, Time: noon, Value: bytes.Repeat([]byte{'x'}, size)}
	}
	return out
}

func TestFile_RotatesAndKeeps(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "dead.jsonl")
	f := open(t, FileOptions{Path: path, Limit: 1 << 20, Keep: 0})
	write(t, f, numberedLetters(0, 50, 100<<10)...) // several pieces in one call
	for i := range 50 {
		write(t, f, numberedLetters(50+i, 1, 100<<10)...)
	}
	paths := all(t, dir)
	if len(paths) < 10 {
		t.Errorf("%d files of 10 MB", len(paths))
	}
	seen := map[any]int{}
	for _, l := range lines(t, paths...) {
		seen[l["code"]]++
	}
	if len(seen) != 100 {
		t.Errorf("%d letters of 100", len(seen))
	}
	for _, p := range paths {
		if info, err := os.Stat(p); err != nil || info.Size() > 1<<20 {
			t.Errorf("%s has %d bytes, %v", p, info.Size(), err)
		}
	}
	// The next owner keeps fewer. The library removes in the background and Close waits for it.
	g := open(t, FileOptions{Path: path, Limit: 1 << 20, Keep: 2})
	write(t, g, numberedLetters(100, 12, 100<<10)...)
	_, _ = f.Close(), g.Close()
	if paths := all(t, dir); len(paths) > 4 { // the current one, two, and one that was rotated meanwhile
		t.Errorf("kept %q", paths)
	}
}

func TestFile_LetterLargerThanAFileIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	f := open(t, FileOptions{Path: path, Limit: 1 << 20})
	write(t, f,
		Letter{Kind: TooLarge, Time: noon, Value: bytes.Repeat([]byte{1}, 3<<20)},
		Letter{Kind: TooLarge, Time: noon, Key: bytes.Repeat([]byte{0xff}, 3<<20), Value: []byte("v")},
		Letter{Kind: TooLarge, Time: noon, Value: bytes.Repeat([]byte("x"), 900<<10)},
	)
	ls := lines(t, all(t, filepath.Dir(path))...)
	if len(ls) != 3 {
		t.Fatalf("%d lines", len(ls))
	}
	for _, l := range ls {
		value := l["value"].(string)
		switch size := l["size"]; size {
		case nil:
			if len(value) != 900<<10 || l["truncated"] != nil {
				t.Errorf("%d bytes of a letter that fits", len(value))
			}
		case float64(3 << 20):
			if l["truncated"] != true || len(value) != 128<<10 {
				t.Errorf("%d bytes of the value", len(value))
			}
		case float64(1):
			key, err := base64.StdEncoding.DecodeString(l["key"].(string))
			if err != nil || l["key_encoding"] != "base64" || len(key) != 128<<10 {
				t.Errorf("%d bytes of the key, %v", len(key), err)
			}
		default:
			t.Errorf("size %v", size)
		}
	}
}

func TestFile_InstancesShareOneWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "dead.jsonl")
	const writers, each = 8, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			f, err := OpenFile(FileOptions{Path: filepath.Join(dir, ".", "x", "..", "dead.jsonl"), Limit: 1 << 20})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range each {
				if n, err := f.Write(numberedLetters(w*each+i, 1, 10<<10)); n != 1 || err != nil {
					t.Errorf("wrote %d: %v", n, err)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[any]int{}
	for _, l := range lines(t, all(t, dir)...) {
		seen[l["code"]]++
	}
	if len(seen) != writers*each {
		t.Errorf("%d letters of %d", len(seen), writers*each)
	}
	f, g := open(t, FileOptions{Path: path, Limit: 1 << 20}), open(t, FileOptions{Path: path, Limit: 1 << 20})
	_, _ = f.Close(), f.Close() // closing twice takes nothing from the other
	write(t, g, Letter{Kind: TooLarge, Time: noon})
	_ = g.Close()
	if n, err := g.Write(numberedLetters(0, 1, 1)); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed file wrote %d: %v", n, err)
	}
}

func TestFile_MovedOrRemovedFileIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	path, moved := filepath.Join(dir, "dead.jsonl"), filepath.Join(dir, "moved")
	f := open(t, FileOptions{Path: path, Limit: 1 << 20})
	write(t, f, numberedLetters(1, 1, 1)...)
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	write(t, f, numberedLetters(2, 1, 1)...)
	if l := lines(t, moved, path); len(l) != 2 || l[0]["code"] != 1.0 || l[1]["code"] != 2.0 {
		t.Errorf("%v", l)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(t, f, numberedLetters(3, 1, 1)...)
	if l := lines(t, path); len(l) != 1 || l[0]["code"] != 3.0 {
		t.Errorf("%v", l)
	}
}

func TestFile_WhatCanNotBeWrittenToIsAnError(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(plain, "below.jsonl"), "/dev/null", "/proc/nothing.jsonl"} {
		f, err := OpenFile(FileOptions{Path: path, Limit: 1 << 20})
		if err == nil {
			_ = f.Close()
			t.Errorf("%s was opened", path)
		} else if !strings.HasPrefix(err.Error(), "deadletter: ") || !strings.Contains(err.Error(), path[:5]) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(files.byPath) != 0 {
		t.Errorf("%d files are open", len(files.byPath))
	}
}

func TestFile_TornLineOfADeadAgentIsEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	if err := os.WriteFile(path, []byte("{}\n{\"time\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, FileOptions{Path: path, Limit: 1 << 20}), numberedLetters(7, 1, 1)...)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(string(data), "\n"); len(got) != 4 || got[1] != `{"time":` || !strings.Contains(got[2], `"code":7`) {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// faulty is a disk that writes half of what it gets or can't sync.
type faulty struct {
	writer
	writes, syncs *int // how many more of them fail
	order         *[]string
}

var errDisk = errors.New("no space left on device")

func (f faulty) Write(p []byte) (int, error) {
	*f.order = append(*f.order, "write")
	if *f.writes > 0 {
		*f.writes--
		n, _ := f.writer.Write(p[:len(p)/2])
		return n, errDisk
	}
	return f.writer.Write(p)
}

func (f faulty) Sync() error {
	*f.order = append(*f.order, "sync")
	if *f.syncs > 0 {
		*f.syncs--
		return errDisk
	}
	return f.writer.Sync()
}

func TestFile_FailedWriteLeavesNothingBehind(t *testing.T) {
	for _, test := range []struct {
		name          string
		writes, syncs int
		want          string // operations until the letters are written
	}{
		{"write", 2, 0, "write write write sync"},
		{"sync", 0, 2, "write sync write sync write sync"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dead.jsonl")
			f := open(t, FileOptions{Path: path, Limit: 1 << 20})
			write(t, f, numberedLetters(1, 2, 10)...)
			writes, syncs := test.writes, test.syncs
			var order []string
			f.shared.create = func(o FileOptions) writer { return faulty{rotated(o), &writes, &syncs, &order} }
			if err := f.shared.closeWriter(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if n, err := f.Write(numberedLetters(3, 2, 10)); n != 0 || !errors.Is(err, errDisk) {
					t.Fatalf("wrote %d: %v", n, err)
				}
				if n := len(lines(t, path)); n != 2 {
					t.Fatalf("%d lines after a failure", n)
				}
			}
			write(t, f, numberedLetters(3, 2, 10)...)
			if l := lines(t, path); len(l) != 4 || l[3]["code"] != 4.0 {
				t.Errorf("%v", l)
			}
			if got := strings.Join(order, " "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// A failure in the middle of a call tells how many letters are safe.
func TestFile_CountsWhatIsSafe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	f := open(t, FileOptions{Path: path, Limit: 64 << 20})
	writes, syncs := 0, 0
	var order []string
	f.shared.create = func(o FileOptions) writer {
		return faulty{failAfter{rotated(o), &order}, &writes, &syncs, &order}
	}
	n, err := f.Write(numberedLetters(0, 30, 100<<10))
	if !errors.Is(err, errDisk) || n == 0 || n == 30 {
		t.Fatalf("wrote %d: %v", n, err)
	}
	if got := len(lines(t, path)); got != n {
		t.Errorf("%d lines, Write said %d", got, n)
	}
}

// failAfter writes one piece and nothing of the next.
type failAfter struct {
	writer
	order *[]string
}

func (f failAfter) Write(p []byte) (int, error) {
	if len(*f.order) > 2 {
		return 0, errDisk
	}
	return f.writer.Write(p)
}

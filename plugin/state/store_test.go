package state

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"out_kafka_reconnect/plugin/delivery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// user is who opens stores in a test.
type user struct {
	t      *testing.T
	path   string
	owner  string
	log    bytes.Buffer
	faults []error
}

func newUser(t *testing.T) *user { return &user{t: t, path: filepath.Join(t.TempDir(), "state")} }

func (u *user) open(brokers ...string) *Store {
	u.t.Helper()
	if len(brokers) == 0 {
		brokers = []string{"a:1"}
	}
	s, err := Open(Options{
		Path: u.path, Destination: "de57", Brokers: brokers, Owner: u.owner, Logger: slog.New(slog.NewTextHandler(&u.log, nil)),
		Fault: func(err error) { u.faults = append(u.faults, err) },
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return s
}

func (u *user) close(s *Store) {
	u.t.Helper()
	if err := s.Close(); err != nil {
		u.t.Fatal(err)
	}
}

// file is the path of a file of the first directory.
func (u *user) file(name string) string { return filepath.Join(u.path, "de57.0", name) }

func (u *user) read(name string) []byte {
	u.t.Helper()
	data, err := os.ReadFile(u.file(name))
	if err != nil {
		u.t.Fatal(err)
	}
	return data
}

func (u *user) write(name string, data []byte) {
	u.t.Helper()
	if err := os.WriteFile(u.file(name), data, fileMode); err != nil {
		u.t.Fatal(err)
	}
}

// memo is one of a chunk that is told by its number.
func memo(id uint64, open ...int) delivery.Memo {
	chunk := []byte(fmt.Sprint("chunk ", id))
	return delivery.Memo{
		ID: id, Key: delivery.KeyOf("t", chunk), Glimpse: math.MaxUint64 - delivery.Glimpse(id), Since: time.Unix(1_700_000_000, int64(id)),
		Messages: 20, Open: open,
	}
}

func (u *user) wantMemos(s *Store, want ...delivery.Memo) {
	u.t.Helper()
	if got := s.Memos(); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		u.t.Fatalf("memos %+v, want %+v; log %s", got, want, u.log.String())
	}
}

func TestStore_MemosOutliveAStopAndACrash(t *testing.T) {
	for _, how := range []string{"stop", "crash"} {
		t.Run(how, func(t *testing.T) {
			u := newUser(t)
			s := u.open()
			s.Note(memo(1))
			s.Note(memo(2, 0, 1, 2, 7, 19))
			s.Note(memo(3, 4))
			s.Note(memo(3)) // complete after all
			s.Drop(1)
			if how == "stop" {
				u.close(s)
				s.Note(memo(4)) // too late
			} else if err := s.lock.Close(); err != nil { // as the kernel does
				t.Fatal(err)
			}
			s = u.open()
			u.wantMemos(s, memo(2, 0, 1, 2, 7, 19), memo(3))
			s.Drop(2)
			u.close(s)
			s = u.open()
			u.wantMemos(s, memo(3))
			u.close(s)
			if u.log.Len() > 0 {
				t.Errorf("log %s", u.log.String())
			}
		})
	}
}

func TestStore_AJournalIsReadOrBegunAnew(t *testing.T) {
	u := newUser(t)
	s := u.open()
	s.Note(memo(1))
	s.Note(memo(2))
	s.Drop(1)
	if err := s.lock.Close(); err != nil {
		t.Fatal(err)
	}
	good := u.read("journal")
	otherBoot := bytes.Replace(good, []byte(bootID()), []byte("another"), 1)
	header, rest, _ := bytes.Cut(otherBoot, []byte("\n"))
	body, _, _ := strings.Cut(string(header), "another")
	otherBoot = append(lineOf(body+"another"), rest...)
	for _, test := range []struct {
		name string
		data []byte
		want []delivery.Memo
		warn bool
	}{
		{"whole", good, []delivery.Memo{memo(2)}, false},
		{"torn at the end", good[:len(good)-5], []delivery.Memo{memo(1), memo(2)}, false},
		{"a bit changed", bytes.Replace(good, []byte("note 2"), []byte("note 7"), 1), nil, true},
		{"another version", append(lineOf("kafka_reconnect journal 2 x"), good...), nil, true},
		{"something else", []byte("hello\n"), nil, true},
		{"e397", nil, nil, true},
		{"an unknown word", append(bytes.Clone(good), lineOf("note_ 3")...), nil, true},
		{"too few words", append(bytes.Clone(good), lineOf("note 3 4")...), nil, true},
		{"an index out of range", append(bytes.Clone(good), noteLine(memo(3, 20))...), nil, true},
		{"the machine went down", otherBoot, nil, true},
		{"the machine went down after a stop", append(bytes.Clone(otherBoot), closedLine()...), []delivery.Memo{memo(2)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := newUser(t)
			u.close(u.open())
			u.write("journal", test.data)
			s := u.open()
			u.wantMemos(s, test.want...)
			if warned := strings.Contains(u.log.String(), "can't be used"); warned != test.warn {
				t.Errorf("log %s", u.log.String())
			}
			s.Note(memo(9))
			u.close(s)
			s = u.open()
			u.wantMemos(s, append(test.want, memo(9))...)
			u.close(s)
		})
	}
}

func TestParseNote_RefusesIndexesThatAreNone(t *testing.T) {
	for _, open := range []string{"20", "3-1", "5,5", "5,4", "0-99999999999999", "x", "", "1-", "1,"} {
		args := strings.TrimSuffix(strings.Replace(string(noteLine(memo(1))), " - ", " "+open+" ", 1), "\n")
		body, _ := strings.CutPrefix(args[:len(args)-9], "note ")
		if _, err := parseNote(body); err == nil {
			t.Errorf("%q was taken", open)
		}
	}
}

// The journal of an agent that runs for years stays small.
func TestStore_AJournalIsCompacted(t *testing.T) {
	u := newUser(t)
	s := u.open()
	s.Note(memo(1))
	for id := range uint64(20_000) {
		s.Note(memo(id + 2))
		s.Drop(id + 2)
	}
	if n := len(u.read("journal")); n > compactAt+1000 {
		t.Errorf("%d bytes for one memo", n)
	}
	u.close(s)
	s = u.open()
	u.wantMemos(s, memo(1))
	u.close(s)
}

// A journal that can't be written says nothing rather than something wrong.
func TestStore_AJournalThatFailsIsRemoved(t *testing.T) {
	u := newUser(t)
	s := u.open()
	s.Note(memo(1))
	_ = s.f.Close() // every write fails
	s.Drop(1)
	if _, err := os.Stat(u.file("journal")); !errors.Is(err, os.ErrNotExist) || len(u.faults) != 1 {
		t.Fatalf("stat %v, faults %v", err, u.faults)
	}
	s.Note(memo(2))
	u.close(s)
	s = u.open()
	u.wantMemos(s, memo(2))
	u.close(s)
}

func TestStore_NobodySharesADirectory(t *testing.T) {
	u := newUser(t)
	a, b := u.open(), u.open()
	a.Note(memo(1))
	b.Note(memo(2))
	u.close(a)
	c := u.open()
	u.wantMemos(c, memo(1))
	u.close(b)
	u.close(c)
	// Another cluster with topics of the same names.
	d := u.open("z:1")
	u.wantMemos(d)
	u.close(d)
	// The same cluster, of which one address changed.
	e := u.open("b:1", "a:1")
	u.wantMemos(e, memo(1))
	u.close(e)
	e = u.open("b:1")
	u.wantMemos(e, memo(1))
	u.close(e)
	if info, err := os.Stat(u.path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Agents that share a path find what they have left, in whichever order they start.
func TestStore_EachAgentHasItsOwn(t *testing.T) {
	u := newUser(t)
	agent := func(owner string, want ...delivery.Memo) *Store {
		t.Helper()
		u.owner = owner
		s := u.open()
		u.wantMemos(s, want...)
		return s
	}
	stop := func(all ...*Store) {
		for _, s := range all {
			u.close(s)
		}
	}
	early := agent("") // of a release that noted no owner
	early.Note(memo(1))
	if err := os.Remove(u.file("owner")); err != nil {
		t.Fatal(err)
	}
	a, b := agent("a"), agent("b")
	a.Note(memo(2))
	b.Note(memo(3))
	stop(early, a, b)
	b = agent("b", memo(3))
	a = agent("a", memo(2))
	stop(a, b)
	c := agent("c", memo(1)) // nobody's, rather than somebody's
	a = agent("a", memo(2))
	stop(a, c)
	b = agent("b", memo(3))
	d := agent("d", memo(1)) // c with another command line, for all that one can know
	a = agent("a", memo(2))
	e := agent("e")
	e.Note(memo(4))
	stop(a, b, d, e)
	// Two sections of one agent.
	a = agent("a", memo(2))
	twin := agent("a", memo(1))
	stop(a, twin)
	a = agent("a", memo(1))
	twin = agent("a", memo(2))
	stop(a, twin)
}

func TestAgent(t *testing.T) {
	here := Agent()
	if here != Agent() || len(here) != 16 {
		t.Errorf("%q", here)
	}
	t.Chdir(t.TempDir())
	if Agent() == here {
		t.Error("another directory is another agent")
	}
}

// The addresses of the cluster are others, and so is what the next user must have in common with this one.
func TestStore_DescribedAnew(t *testing.T) {
	u := newUser(t)
	s := u.open("a:1")
	s.Note(memo(1))
	if err := s.Describe([]string{"b:1", "c:1"}, []string{"topics x"}); err != nil {
		t.Fatal(err)
	}
	u.close(s)
	if got := string(u.read("brokers")) + string(u.read("settings")); got != "b:1\nc:1\ntopics x\n" {
		t.Errorf("%q", got)
	}
	s = u.open("c:1")
	u.wantMemos(s, memo(1))
	u.close(s)
	if err := os.RemoveAll(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if err := s.Describe([]string{"d:1"}, nil); err == nil {
		t.Error("nobody was told")
	}
}

// moved is a path to move to, with somebody's state in it.
func moved(u *user) string {
	path := u.path
	u.path = filepath.Join(u.t.TempDir(), "new", "state")
	s := u.open()
	s.Note(memo(9))
	u.close(s)
	u.path, path = path, u.path
	return path
}

func TestStore_Move(t *testing.T) {
	u := newUser(t)
	old, path := u.path, moved(u)
	u.owner = "a"
	s := u.open()
	s.Note(memo(1))
	s.Note(memo(2))
	first, gone := u.keep(s, "t", "1"), u.keep(s, "t", "2")
	s.NoteOpen(first, 9, []int{2, 8})
	if err := s.Move(path); err != nil {
		t.Fatal(err)
	}
	if s.Path() != path || s.Dir() != filepath.Join(path, "de57.1") {
		t.Errorf("%s, %s", s.Path(), s.Dir())
	}
	if left, err := os.ReadDir(old); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	// It is used as before.
	s.Drop(2)
	s.Note(memo(3))
	s.NoteOpen(first, 9, []int{8})
	s.Release(gone)
	s.removals.Wait()
	u.keep(s, "t", "3")
	u.wantChunks(s, "t/1/9 [8]", "t/3")
	u.path = path
	other := u.open() // it is in use
	u.wantMemos(other, memo(9))
	u.close(other)
	if err := os.RemoveAll(other.Dir()); err != nil {
		t.Fatal(err)
	}
	u.close(s)
	s = u.open()
	u.wantMemos(s, memo(1), memo(3))
	u.wantChunks(s, "t/1/9 [8]", "t/3")
	u.close(s)
	if len(u.faults) > 0 || u.log.Len() > 0 {
		t.Errorf("%v, %s", u.faults, u.log.String())
	}
}

// What can't be moved stays, and in use.
func TestStore_AMoveThatFails(t *testing.T) {
	u := newUser(t)
	path := moved(u)
	s := u.open()
	s.Note(memo(1))
	u.keep(s, "t", "1")
	obstacle := u.file("chunk-5") // neither to be linked nor copied
	if err := os.Mkdir(obstacle, dirMode); err != nil {
		t.Fatal(err)
	}
	if err := s.Move(path); err == nil {
		t.Fatal("it was moved")
	}
	if err := s.Move(u.file("brokers")); err == nil {
		t.Fatal("it was moved to a file")
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(path, "*")); len(left) != 1 {
		t.Errorf("%q", left)
	}
	s.Note(memo(2))
	u.keep(s, "t", "2")
	u.close(s)
	s = u.open()
	u.wantMemos(s, memo(1), memo(2))
	u.wantChunks(s, "t/1", "t/2")
	u.close(s)
}

func TestCopyFile(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte("chunk"), fileMode); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(from, to); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(to); err != nil || string(data) != "chunk" {
		t.Errorf("%q, %v", data, err)
	}
	if err := copyFile(from, to); err == nil {
		t.Error("a file was replaced")
	}
}

// Chunks are kept and released while all of them move.
func TestStore_MovesWhileItIsUsed(t *testing.T) {
	u := newUser(t)
	s := u.open()
	first := u.path
	var use sync.WaitGroup
	for n := range 4 {
		use.Go(func() {
			for i := range 25 {
				m := memo(uint64(1 + 100*n + i))
				s.Note(m)
				name, err := s.Keep("t", []byte("x"))
				if err != nil {
					t.Error(err)
					return
				}
				s.NoteOpen(name, 2, []int{1})
				if i > 0 {
					s.Release(name)
					s.Drop(m.ID)
				}
			}
		})
	}
	for i := range 5 {
		if err := s.Move(fmt.Sprint(first, i)); err != nil {
			t.Error(err)
		}
	}
	use.Wait()
	u.close(s)
	u.path = s.Path()
	s = u.open()
	u.wantMemos(s, memo(1), memo(101), memo(201), memo(301))
	u.wantChunks(s, "t/x/2 [1]", "t/x/2 [1]", "t/x/2 [1]", "t/x/2 [1]")
	u.close(s)
	if len(u.faults) > 0 || u.log.Len() > 0 {
		t.Errorf("%v, %s", u.faults, u.log.String())
	}
}

func TestStore_AnUnusablePathIsAnError(t *testing.T) {
	u := newUser(t)
	if err := os.WriteFile(u.path, nil, fileMode); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Path: u.path, Destination: "de57"}); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func (u *user) keep(s *Store, tag, chunk string) string {
	u.t.Helper()
	name, err := s.Keep(tag, []byte(chunk))
	if err != nil {
		u.t.Fatal(err)
	}
	return name
}

// wantChunks compares the chunks, each "tag/chunk", and "/messages [open]" if only some are.
func (u *user) wantChunks(s *Store, want ...string) {
	u.t.Helper()
	var got []string
	for _, name := range s.Chunks() {
		c, err := s.Chunk(name)
		if err != nil {
			u.t.Fatal(err)
		}
		text := c.Tag + "/" + string(c.Bytes)
		if c.Open != nil {
			text += fmt.Sprint("/", c.Messages, c.Open)
		}
		got = append(got, text)
	}
	if !reflect.DeepEqual(got, want) {
		u.t.Fatalf("chunks %q, want %q", got, want)
	}
}

func TestStore_ChunksAreKeptUntilReleased(t *testing.T) {
	u := newUser(t)
	s := u.open()
	for i := range 11 {
		u.keep(s, "tag", fmt.Sprint(i))
	}
	first := u.keep(s, "", "")
	for _, name := range s.Chunks()[1:11] {
		s.Release(name)
	}
	u.close(s)
	s.Release(first) // too late
	u.write("tmp-chunk-99", []byte("half a chu"))
	s = u.open()
	u.wantChunks(s, "tag/0", "/")
	u.keep(s, "t", "new")
	u.wantChunks(s, "tag/0", "/", "t/new")
	if _, err := os.Stat(u.file("tmp-chunk-99")); err == nil {
		t.Error("what was never kept is still there")
	}
	u.close(s)
}

// What is open of a chunk only gets less, so that a line that is lost is a matter of duplicates.
func TestStore_WhatIsOpenOfAChunk(t *testing.T) {
	u := newUser(t)
	a, b := u.open(), u.open()
	whole, part := u.keep(b, "t", "whole"), u.keep(b, "t", "part\n")
	b.NoteOpen(part, 9, []int{1, 2, 3, 8})
	b.NoteOpen(part, 9, []int{2, 8})
	u.wantChunks(b, "t/whole", "t/part\n/9 [2 8]")
	path := filepath.Join(b.dir, part)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{
		data[:len(data)-3],
		append(bytes.Clone(data), "open 9 2 00000000\n"...),
		append(bytes.Clone(data), lineOf("open 9 9")...),
		append(bytes.Clone(data), lineOf("note 9 2")...),
	} {
		if err := os.WriteFile(path, damaged, fileMode); err != nil {
			t.Fatal(err)
		}
		c, err := b.Chunk(part)
		if err != nil || string(c.Bytes) != "part\n" || len(c.Open) < 2 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	// It goes with the chunk.
	u.close(a)
	u.close(b)
	a = u.open()
	u.wantChunks(a, "t/whole", "t/part\n/9 [2 8]")
	a.Release(whole)
	u.close(a)
	a.NoteOpen(whole, 9, []int{1})
	if len(u.faults) > 0 {
		t.Error(u.faults)
	}
	if err := os.Mkdir(u.file("chunk-9"), dirMode); err != nil {
		t.Fatal(err)
	}
	a.NoteOpen("chunk-9", 9, []int{1})
	if len(u.faults) != 1 {
		t.Error("nobody was told")
	}
}

// A section less than before: its chunks are everybody's.
func TestStore_ChunksOfOthersAreTakenAlong(t *testing.T) {
	u := newUser(t)
	a, b := u.open(), u.open()
	u.keep(a, "t", "a")
	u.keep(b, "t", "b")
	c := u.open()
	u.keep(c, "t", "c")
	u.close(a)
	u.close(b)
	a = u.open()
	u.wantChunks(a, "t/a", "t/b") // c is in use
	u.close(a)
	u.close(c)
}

// What the last user of a destination has left is somebody's, and nobody's to deliver.
func TestStore_Forgotten(t *testing.T) {
	u := newUser(t)
	other := func(dest, broker string) *Store {
		s, err := Open(Options{
			Path: u.path, Destination: dest, Brokers: []string{broker}, Settings: []string{"topics " + dest, "format json"},
			Logger: slog.New(slog.NewTextHandler(&u.log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	left, cluster, used, empty := other("1ef7", "a:1"), other("de57", "z:1"), other("05ed", "a:1"), other("e397", "a:1")
	u.keep(left, "t", "1")
	u.keep(left, "t", "22")
	u.keep(cluster, "t", "3")
	u.keep(used, "t", "4")
	for _, s := range []*Store{left, cluster, empty} {
		u.close(s)
	}
	// What is nothing of ours.
	foreign := filepath.Join(u.path, "logs.d")
	if err := errors.Join(os.Mkdir(foreign, dirMode), os.WriteFile(filepath.Join(foreign, "chunk-1"), nil, fileMode),
		os.WriteFile(filepath.Join(u.path, "notes.txt"), nil, fileMode)); err != nil {
		t.Fatal(err)
	}
	s := u.open()
	defer u.close(s)
	defer u.close(used)
	u.keep(s, "t", "own")
	got := s.Forgotten()
	want := []Forgotten{
		{left.dir, 2, int64(2*chunkHeader + 5), []string{"a:1"}, []string{"topics 1ef7", "format json"}},
		{cluster.dir, 1, int64(chunkHeader + 2), []string{"z:1"}, []string{"topics de57", "format json"}},
	}
	if !reflect.DeepEqual(got, want) || u.log.Len() > 0 {
		t.Errorf("%+v, want %+v; log %s", got, want, u.log.String())
	}
	back := other("1ef7", "a:1")
	defer u.close(back)
	if got := s.Forgotten(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestStore_ACorruptChunkIsPutAside(t *testing.T) {
	u := newUser(t)
	s := u.open()
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:10] },
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { b[len(b)-1]++; return b },
		func(b []byte) []byte { b[chunkHeader-1]++; return b },
		func(b []byte) []byte { b[0]++; return b },
	} {
		name := u.keep(s, "tag", "chunk")
		u.write(name, damage(u.read(name)))
		if _, err := s.Chunk(name); !errors.Is(err, ErrCorrupt) {
			t.Errorf("error %v", err)
		}
	}
	u.wantChunks(s)
	u.close(s)
}

func TestStore_AChunkThatCantBeWrittenIsNotKept(t *testing.T) {
	u := newUser(t)
	s := u.open()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if name, err := s.Keep("t", []byte("x")); err == nil {
		t.Errorf("%s was kept", name)
	}
	_ = s.Close()
}

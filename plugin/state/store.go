package state

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"out_kafka_reconnect/plugin/delivery"
)

// Only the user of the agent may read what it holds: the chunks are logs.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// The files that tell whose a directory is.
const (
	brokersFile  = "brokers"
	settingsFile = "settings"
	ownerFile    = "owner"
)

const (
	lockFile    = "lock"
	journalFile = "journal"
)

// maxUsers bounds the users of one destination; more than this is a fault.
const maxUsers = 1000

// Options say whose state it is.
type Options struct {
	// Path is the directory that all share; it is made if it is missing.
	Path string
	// Destination names what the messages are made of and where they go, Brokers the
	// bootstrap addresses of the cluster. State of a destination is the same cluster's if
	// they have an address in common.
	Destination string
	Brokers     []string
	// Settings say in words what Destination stands for; they hold no secret.
	Settings []string
	// Owner tells agents apart that share Path, and is the same at each start of one; see Agent.
	Owner  string
	Logger *slog.Logger
	// Fault is told of notes that can't be written: those of the journal, and of what is open of a
	// chunk. It must not block.
	Fault func(error)
}

// Store is the state of one user of a destination. Its methods are safe for concurrent use.
type Store struct {
	*journal
	destination string
	owner       string
	log         *slog.Logger
	memos       []delivery.Memo

	// place guards where the files are. Whoever works on one holds it, so that none is missed when
	// all of them move.
	place sync.RWMutex
	path  string
	dir   string
	lock  *os.File

	mu        sync.Mutex
	closed    bool
	lastChunk int
	released  []string
	removing  bool // a goroutine removes what is released
	removals  sync.WaitGroup
}

// Open takes a directory of the destination that is free, or makes one. Chunks in other free ones
// are taken along: Fluent Bit will not ask for them, so anybody may.
func Open(o Options) (*Store, error) {
	if err := os.MkdirAll(o.Path, dirMode); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s := &Store{log: o.Logger, path: o.Path, destination: o.Destination, owner: o.Owner}
	var err error
	if s.dir, s.lock, err = take(o); err != nil {
		return nil, err
	}
	if err := s.load(o); err != nil {
		_ = s.lock.Close()
		return nil, err
	}
	return s, nil
}

// take locks the directory that suits best, and returns it: what the agent has left itself, or
// nobody knows who, or another one. The last may be this one under a changed command line, which
// must not lose what it knows.
func take(o Options) (dir string, lock *os.File, err error) {
	for _, suits := range []func(owner string) bool{
		func(owner string) bool { return owner == o.Owner },
		func(owner string) bool { return owner == "" },
		func(string) bool { return true },
	} {
		mine := func(dir string) bool { return ofCluster(dir, o.Brokers) && suits(ownerOf(dir)) }
		for _, dir := range directories(o.Path, o.Destination) {
			if lock, err := claim(dir, mine); lock != nil || err != nil {
				return dir, lock, err
			}
		}
	}
	return create(o.Path, o.Destination)
}

// create makes a directory of the destination, and locks it.
func create(path, destination string) (dir string, lock *os.File, err error) {
	for n := range maxUsers {
		dir := filepath.Join(path, fmt.Sprintf("%s.%d", destination, n))
		err := os.Mkdir(dir, dirMode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = syncDir(path)
		}
		if err != nil {
			return "", nil, fmt.Errorf("state: %w", err)
		}
		if lock, err := tryLock(dir); lock != nil || err != nil { // else somebody was faster
			return dir, lock, err
		}
	}
	return "", nil, fmt.Errorf("state: there are %d directories of the destination", maxUsers)
}

// directories lists those of a destination, by their number.
func directories(path, destination string) []string {
	dirs, _ := filepath.Glob(filepath.Join(path, destination+".*"))
	number := func(dir string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(dir), "."))
		if err != nil {
			return -1
		}
		return n
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return number(dir) < 0 })
	slices.SortFunc(dirs, func(a, b string) int { return number(a) - number(b) })
	return dirs
}

// ofCluster tells whether a directory may hold what is of the cluster with these addresses.
func ofCluster(dir string, brokers []string) bool {
	known, err := readLines(dir, brokersFile)
	return err != nil || slices.ContainsFunc(known, func(b string) bool { return slices.Contains(brokers, b) })
}

// ownerOf is the agent whose directory it is; "" if nobody knows.
func ownerOf(dir string) string {
	lines, _ := readLines(dir, ownerFile)
	return lines[0]
}

// claim locks a directory, unless it is not ours to take or in use. It looks at it before too: an
// agent that starts just then must not find its directory locked by one that does not want it.
func claim(dir string, mine func(dir string) bool) (*os.File, error) {
	if !mine(dir) {
		return nil, nil //nolint:nilnil // it is no error
	}
	lock, err := tryLock(dir)
	if lock == nil || err != nil || mine(dir) {
		return lock, err
	}
	return nil, lock.Close()
}

// tryLock locks a directory, unless it is in use.
func tryLock(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	// The lock is the open file's, so it also keeps two sections of one process apart, and it
	// ends with the process, however that ends.
	switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, lock.Close()
	case err != nil:
		_ = lock.Close()
		return nil, fmt.Errorf("state: locking %s: %w", lock.Name(), err)
	}
	return lock, nil
}

// readLines reads a file of lines.
func readLines(dir, name string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), err
}

// Describe notes whose the directory is from now on. Each file is whole at any time: with half a
// list of addresses the next process would not know it.
func (s *Store) Describe(brokers, settings []string) error {
	s.place.RLock()
	defer s.place.RUnlock()
	for name, lines := range map[string][]string{brokersFile: brokers, settingsFile: settings, ownerFile: {s.owner}} {
		tmp := filepath.Join(s.dir, tmpPrefix+name)
		err := writeSynced(tmp, []byte(strings.Join(lines, "\n")+"\n"))
		if err == nil {
			err = os.Rename(tmp, filepath.Join(s.dir, name))
		}
		if err != nil {
			_ = os.Remove(tmp)
			return fmt.Errorf("state: %w", err)
		}
	}
	return nil
}

// load reads what is in the directory.
func (s *Store) load(o Options) error {
	if err := s.Describe(o.Brokers, o.Settings); err != nil {
		return err
	}
	path := filepath.Join(s.dir, journalFile)
	memos, err := readJournal(path)
	if err != nil {
		o.Logger.Warn("the journal of deliveries can't be used, chunks that were delivered before may be written again", "err", err)
		_ = os.Rename(path, path+".unreadable") // for whoever wants to know why
	}
	s.memos = memos
	if s.journal, err = newJournal(path, memos, o.Fault); err != nil {
		return err
	}
	for _, name := range s.list(s.dir, tmpPrefix) {
		_ = os.Remove(filepath.Join(s.dir, name)) // nobody was told OK for it
	}
	for _, name := range s.Chunks() {
		s.lastChunk = max(s.lastChunk, chunkNumber(name))
	}
	s.adopt(o)
	return nil
}

// adopt moves chunks here that are in a directory of the destination that nobody uses.
func (s *Store) adopt(o Options) {
	mine := func(dir string) bool { return ofCluster(dir, o.Brokers) && len(s.list(dir, chunkPrefix)) > 0 }
	for _, dir := range directories(o.Path, o.Destination) {
		if dir == s.dir {
			continue
		}
		lock, err := claim(dir, mine)
		if err != nil || lock == nil {
			continue
		}
		for _, name := range s.list(dir, chunkPrefix) {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(s.dir, s.nextChunk())); err != nil {
				s.log.Warn("a chunk in another directory can't be taken along", "dir", dir, "err", err)
			}
		}
		_ = lock.Close()
	}
}

// list names the files of a directory that begin alike.
func (s *Store) list(dir, prefix string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.log.Warn("state can't be read", "dir", dir, "err", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Memos are those that an earlier process has left in the journal.
func (s *Store) Memos() []delivery.Memo { return s.memos }

// Close syncs the journal and lets others have the directory. Whatever comes later is not
// kept.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.removals.Wait()
	err := s.close()
	s.place.RLock()
	defer s.place.RUnlock()
	return errors.Join(err, s.lock.Close())
}

package state

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
	Logger   *slog.Logger
	// Fault is told of notes that can't be written: those of the journal, and of what is open of a
	// chunk. It must not block.
	Fault func(error)
}

// Store is the state of one user of a destination. Its methods are safe for concurrent use.
type Store struct {
	*journal
	path  string
	dir   string
	lock  *os.File
	log   *slog.Logger
	memos []delivery.Memo

	mu        sync.Mutex
	closed    bool
	lastChunk int
	released  []string
	removing  bool // a goroutine removes what is released
	removals  sync.WaitGroup
}

// Open takes the first directory of the destination that is free, or makes one. Chunks in
// other free ones are taken along: Fluent Bit will not ask for them, so anybody may.
func Open(o Options) (*Store, error) {
	if err := os.MkdirAll(o.Path, dirMode); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s := &Store{log: o.Logger, path: o.Path}
	for n := range maxUsers {
		dir := filepath.Join(o.Path, fmt.Sprintf("%s.%d", o.Destination, n))
		if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("state: %w", err)
		}
		lock, err := claim(dir, o.Brokers)
		if err != nil {
			return nil, err
		}
		if lock != nil {
			s.dir, s.lock = dir, lock
			break
		}
	}
	if s.lock == nil {
		return nil, fmt.Errorf("state: %d directories of the destination are in use", maxUsers)
	}
	if err := s.load(o); err != nil {
		_ = s.lock.Close()
		return nil, err
	}
	return s, nil
}

// claim locks a directory, unless it is in use or another cluster's.
func claim(dir string, brokers []string) (*os.File, error) {
	lock, err := tryLock(dir)
	if lock == nil || err != nil {
		return nil, err
	}
	known, err := readLines(dir, brokersFile)
	if err == nil && !slices.ContainsFunc(known, func(b string) bool { return slices.Contains(brokers, b) }) {
		return nil, lock.Close()
	}
	return lock, nil
}

// tryLock locks a directory, unless it is in use.
func tryLock(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, fileMode)
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

// load reads what is in the directory.
func (s *Store) load(o Options) error {
	for name, lines := range map[string][]string{brokersFile: o.Brokers, settingsFile: o.Settings} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(strings.Join(lines, "\n")+"\n"), fileMode); err != nil {
			return fmt.Errorf("state: %w", err)
		}
	}
	path := filepath.Join(s.dir, "journal")
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
	dirs, _ := filepath.Glob(filepath.Join(o.Path, o.Destination+".*"))
	for _, dir := range dirs {
		if dir == s.dir {
			continue
		}
		lock, err := claim(dir, o.Brokers)
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
	return errors.Join(err, s.lock.Close())
}

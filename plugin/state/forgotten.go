package state

import (
	"os"
	"path/filepath"
	"regexp"
)

// Forgotten is a directory with chunks that nobody uses: those of a destination that no section
// has any longer.
type Forgotten struct {
	Dir    string
	Chunks int
	Bytes  int64
	// Brokers and Settings are those of the last user, as far as they are known.
	Brokers, Settings []string
}

// own is the form of our directories; others may keep things of their own beside them.
var own = regexp.MustCompile(`^[0-9a-f]+\.[0-9]+$`)

// Forgotten lists the directories beside this one that nobody uses and that hold chunks.
func (s *Store) Forgotten() []Forgotten {
	var all []Forgotten
	dirs, _ := filepath.Glob(filepath.Join(s.Path(), "*.*"))
	for _, dir := range dirs {
		if !own.MatchString(filepath.Base(dir)) {
			continue
		}
		if f := s.look(dir); f.Chunks > 0 && free(dir) {
			all = append(all, f)
		}
	}
	return all
}

// look sums up the chunks of a directory.
func (s *Store) look(dir string) Forgotten {
	f := Forgotten{Dir: dir}
	for _, name := range s.list(dir, chunkPrefix) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil { // else it was delivered meanwhile
			f.Chunks++
			f.Bytes += info.Size()
		}
	}
	f.Brokers, _ = readLines(dir, brokersFile)
	f.Settings, _ = readLines(dir, settingsFile)
	return f
}

// free tells whether nobody uses a directory. It holds the lock for a moment only: a user that
// starts just then takes another directory, and the chunks are taken along at the next start.
func free(dir string) bool {
	lock, err := tryLock(dir)
	if lock != nil {
		_ = lock.Close()
	}
	return err == nil && lock != nil
}

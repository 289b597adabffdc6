package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Path is the directory that all share.
func (s *Store) Path() string {
	s.place.RLock()
	defer s.place.RUnlock()
	return s.path
}

// Dir is the directory under Path where the files are.
func (s *Store) Dir() string {
	s.place.RLock()
	defer s.place.RUnlock()
	return s.dir
}

// Move moves the state to a directory of its own under another path. A chunk is on the disk at any
// time: the old directory goes when all is in the new one, and stays in use if that fails. What others
// have left under the new path is for the next start.
func (s *Store) Move(path string) error {
	s.place.Lock()
	defer s.place.Unlock()
	if err := os.MkdirAll(path, dirMode); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	dir, lock, err := create(path, s.destination)
	if err != nil {
		return err
	}
	err = s.copyTo(dir)
	if err == nil {
		err = s.moveTo(filepath.Join(dir, journalFile))
	}
	if err != nil {
		return fmt.Errorf("state: moving to another path: %w", errors.Join(err, os.RemoveAll(dir), lock.Close()))
	}
	old, oldLock := s.dir, s.lock
	s.path, s.dir, s.lock = path, dir, lock
	if err := errors.Join(os.RemoveAll(old), oldLock.Close()); err != nil {
		s.log.Warn("state was moved, but can't be removed where it was: what is left there would be delivered again", "dir", old, "err", err)
	}
	return nil
}

// copyTo puts the files of the directory into another one too, save those that belong to its use.
func (s *Store) copyTo(dir string) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if slices.Contains([]string{lockFile, journalFile, journalFile + ".tmp"}, name) || strings.HasPrefix(name, tmpPrefix) {
			continue
		}
		from, to := filepath.Join(s.dir, name), filepath.Join(dir, name)
		if os.Link(from, to) == nil {
			continue
		}
		if err := copyFile(from, to); err != nil { // another file system
			return err
		}
	}
	return syncDir(dir)
}

// copyFile copies a file and has it safely on the disk.
func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // it was only read
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}

package deadletter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/DeRuina/timberjack"
)

// FileOptions say where letters go and how much of them is kept.
type FileOptions struct {
	Path string
	// Limit is the size at which a file is rotated, in bytes, rounded up to whole MiB. A
	// letter that is larger than that alone is cut.
	Limit int64
	// Keep is how many rotated files are kept beside the current one; 0 keeps all.
	Keep int
}

// File is an open dead-letter file. Everyone who opens the same path shares one writer; the
// options of whoever came last apply. Its methods may be called concurrently.
type File struct {
	shared *sharedFile
	once   sync.Once
}

const (
	pieceSize = 1 << 20
	// worstJSON is more than one byte of a record can take in a line: a control character is
	// six bytes long there.
	worstJSON = 8
	mebibyte  = 1 << 20
)

// files are the writers of this process, by path. Instances know nothing of each other, and
// after a reload the new one opens the file before the old one has closed it.
var files = struct {
	mu     sync.Mutex
	byPath map[string]*sharedFile
}{byPath: map[string]*sharedFile{}}

// OpenFile opens the file for letters. A missing directory is made; an error says that
// nothing can be written there.
func OpenFile(o FileOptions) (*File, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("deadletter: %w", err)
	}
	o.Path = path
	files.mu.Lock()
	defer files.mu.Unlock()
	s, ok := files.byPath[path]
	if !ok {
		s = &sharedFile{create: rotated}
	}
	if err := s.setOptions(o); err != nil {
		return nil, fmt.Errorf("deadletter: %w", err)
	}
	s.users++
	files.byPath[path] = s
	return &File{shared: s}, nil
}

// Write appends the letters and returns how many of them, from the first on, are safely on
// the disk. With an error that is less than all; the rest can be written again later.
func (f *File) Write(letters []Letter) (int, error) {
	n, err := f.shared.write(letters)
	if err != nil {
		return n, fmt.Errorf("deadletter: %w", err)
	}
	return n, nil
}

// Close ends the use of the file by one who opened it.
func (f *File) Close() error {
	err := error(nil)
	f.once.Do(func() {
		files.mu.Lock()
		defer files.mu.Unlock()
		if f.shared.users--; f.shared.users == 0 {
			delete(files.byPath, f.shared.options.Path)
			err = f.shared.close()
		}
	})
	return err
}

// writer is what is needed of the library that rotates.
type writer interface {
	io.WriteCloser
	Sync() error
}

// rotated makes the writer of a file. The library opens the file at the first write, and
// rotates before a write that would exceed the limit: what one Write got is in one file, which
// stays open until the next Write, so a Sync between the two is a Sync of all of it.
func rotated(o FileOptions) writer {
	return &timberjack.Logger{
		Filename:    o.Path,
		MaxSize:     int(min((o.Limit+mebibyte-1)/mebibyte, math.MaxInt32)),
		MaxBackups:  o.Keep,
		Compression: "none", // rotation must not cost the time of a flush
	}
}

// sharedFile is the one writer of a path.
type sharedFile struct {
	users  int // guarded by files.mu
	create func(FileOptions) writer

	mu      sync.Mutex // also held while the disk is waited for
	options FileOptions
	out     writer      // nil: to be opened by the next write
	file    os.FileInfo // what out wrote to last
	closed  bool
}

// setOptions checks that the file can be written to and has the options apply from the next
// write on.
func (s *sharedFile) setOptions(o FileOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil && s.options == o {
		return nil
	}
	if err := prepare(o.Path); err != nil {
		return err
	}
	s.options = o
	return s.closeWriter()
}

// prepare makes sure that the file is there, can be written to and ends with a whole line:
// the agent may have been killed within one, and it must not spoil the next.
func prepare(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	if info.Size() == 0 {
		return nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		_, err = f.WriteString("\n")
	}
	return err
}

func (s *sharedFile) write(letters []Letter) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, os.ErrClosed
	}
	var buf bytes.Buffer
	done := 0
	for i := range letters {
		whole := buf.Len()
		if err := s.appendLine(&buf, &letters[i]); err != nil {
			return done, err
		}
		if whole > 0 && buf.Len() > pieceSize {
			// This letter begins the next piece.
			if err := s.store(buf.Next(whole)); err != nil {
				return done, err
			}
			done = i
		}
	}
	if buf.Len() > 0 {
		if err := s.store(buf.Bytes()); err != nil {
			return done, err
		}
	}
	return len(letters), nil
}

// appendLine puts a letter into the buffer. A line that is longer than a file may be is
// written again with less of the record.
func (s *sharedFile) appendLine(buf *bytes.Buffer, l *Letter) error {
	limit := int(min(s.options.Limit, math.MaxInt32))
	whole := buf.Len()
	if err := l.appendLine(buf, math.MaxInt); err != nil || buf.Len()-whole <= limit {
		return err
	}
	buf.Truncate(whole)
	return l.appendLine(buf, limit/worstJSON)
}

// store brings whole lines to the disk. When that fails nothing of them stays in the file:
// the caller has the letters still.
func (s *sharedFile) store(lines []byte) error {
	if err := s.open(); err != nil {
		return err
	}
	written, err := s.out.Write(lines)
	if err == nil {
		err = s.out.Sync()
	}
	if err == nil {
		// The file may be a new one: its name must last as well.
		err = syncDir(filepath.Dir(s.options.Path))
	}
	if err == nil {
		s.file, err = os.Stat(s.options.Path)
	}
	if err != nil {
		return errors.Join(err, s.takeBack(written))
	}
	return nil
}

// open makes the writer, anew if somebody has moved or removed the file since the last write:
// what is written to a removed file is gone.
func (s *sharedFile) open() error {
	if s.out != nil {
		now, err := os.Stat(s.options.Path)
		if err == nil && os.SameFile(s.file, now) {
			return nil
		}
		if err := s.closeWriter(); err != nil {
			return err
		}
	}
	if err := prepare(s.options.Path); err != nil {
		return err
	}
	s.out = s.create(s.options)
	return nil
}

// takeBack removes the last n bytes of the file. The writer, which knows its own size and
// offset, is made anew; it also has no faith in a file whose Sync has failed once.
func (s *sharedFile) takeBack(n int) error {
	if err := s.closeWriter(); err != nil || n == 0 {
		return err
	}
	info, err := os.Stat(s.options.Path)
	if err != nil {
		return err
	}
	return os.Truncate(s.options.Path, info.Size()-int64(n))
}

func (s *sharedFile) closeWriter() error {
	if s.out == nil {
		return nil
	}
	err := s.out.Close()
	s.out = nil
	return err
}

func (s *sharedFile) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.closeWriter()
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

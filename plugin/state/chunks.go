package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	chunkPrefix = "chunk-"
	tmpPrefix   = "tmp-"
)

// chunkMagic begins a chunk's file. Then come the checksum of what follows up to the end of the
// chunk, the length of the tag and that of the chunk, all three as 32-bit little-endian
// integers, the tag and the chunk. Lines may follow that tell what is open of it, see
// Store.NoteOpen.
const chunkMagic = "kafka_reconnect chunk 2\n"

// chunkHeader is the number of bytes before the tag.
const chunkHeader = len(chunkMagic) + 12

// ErrCorrupt is that of a file that does not hold what was written.
var ErrCorrupt = errors.New("state: the file is corrupt")

// Chunk is one that is kept.
type Chunk struct {
	Tag   string
	Bytes []byte
	// Messages is how many messages it has, Open their indexes that have not come to their end,
	// ascending; without Open all of it is to be delivered.
	Messages int
	Open     []int
}

// Keep writes a chunk and returns the name of its file when it is safely on the disk.
func (s *Store) Keep(tag string, chunk []byte) (string, error) {
	data := make([]byte, chunkHeader, chunkHeader+len(tag)+len(chunk))
	copy(data, chunkMagic)
	binary.LittleEndian.PutUint32(data[chunkHeader-8:], uint32(len(tag)))
	binary.LittleEndian.PutUint32(data[chunkHeader-4:], uint32(len(chunk)))
	data = append(append(data, tag...), chunk...)
	binary.LittleEndian.PutUint32(data[len(chunkMagic):], crc32.ChecksumIEEE(data[chunkHeader-8:]))
	s.place.RLock()
	defer s.place.RUnlock()
	name := s.nextChunk()
	tmp := filepath.Join(s.dir, tmpPrefix+name)
	err := writeSynced(tmp, data)
	if err == nil {
		err = os.Rename(tmp, filepath.Join(s.dir, name))
	}
	if err == nil {
		err = syncDir(s.dir)
	}
	if err != nil {
		_ = os.Remove(tmp)
		_ = os.Remove(filepath.Join(s.dir, name))
		return "", fmt.Errorf("state: keeping a chunk: %w", err)
	}
	return name, nil
}

// NoteOpen notes in the file of a chunk which of its messages are open; the last line counts.
// It is not synced: less and less of a chunk is open, so that an older line, or none, costs a
// duplicate and no record.
func (s *Store) NoteOpen(name string, messages int, open []int) {
	s.place.RLock()
	defer s.place.RUnlock()
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_APPEND, fileMode)
	if errors.Is(err, fs.ErrNotExist) { // released meanwhile
		return
	}
	if err == nil {
		_, err = f.Write(openLine(messages, open))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.tell(fmt.Errorf("state: noting what is open of a chunk: %w", err))
	}
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// nextChunk is the name for one more chunk.
func (s *Store) nextChunk() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastChunk++
	return chunkPrefix + strconv.Itoa(s.lastChunk)
}

// chunkNumber is the number in the name of a chunk's file.
func chunkNumber(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, chunkPrefix)) // others have no number: 0
	return n
}

// Chunks are the names of the chunks that are kept, in the order in which they came.
func (s *Store) Chunks() []string {
	return slices.SortedFunc(slices.Values(s.list(s.Dir(), chunkPrefix)), func(a, b string) int { return chunkNumber(a) - chunkNumber(b) })
}

// Chunk reads a chunk that is kept. One that is corrupt is put aside, with an error.
func (s *Store) Chunk(name string) (Chunk, error) {
	s.place.RLock()
	defer s.place.RUnlock()
	path := filepath.Join(s.dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		return Chunk{}, fmt.Errorf("state: %w", err)
	}
	c, err := parseChunk(data)
	if err != nil {
		aside := filepath.Join(s.dir, "corrupt-"+name)
		return Chunk{}, errors.Join(fmt.Errorf("%w: %s", err, aside), os.Rename(path, aside))
	}
	return c, nil
}

func parseChunk(data []byte) (Chunk, error) {
	if len(data) < chunkHeader || !bytes.HasPrefix(data, []byte(chunkMagic)) {
		return Chunk{}, ErrCorrupt
	}
	sum := binary.LittleEndian.Uint32(data[len(chunkMagic):])
	n := int64(binary.LittleEndian.Uint32(data[chunkHeader-8:]))
	end := int64(chunkHeader) + n + int64(binary.LittleEndian.Uint32(data[chunkHeader-4:]))
	if end > int64(len(data)) || crc32.ChecksumIEEE(data[chunkHeader-8:end]) != sum {
		return Chunk{}, ErrCorrupt
	}
	c := Chunk{Tag: string(data[chunkHeader : int64(chunkHeader)+n]), Bytes: data[int64(chunkHeader)+n : end]}
	for line := range bytes.Lines(data[end:]) {
		// One that is torn was never complete; those before it hold all the same.
		if messages, open, err := parseOpen(strings.TrimSuffix(string(line), "\n")); err == nil {
			c.Messages, c.Open = messages, open
		}
	}
	return c, nil
}

// Release removes a chunk, soon and elsewhere: a file system may take its time.
func (s *Store) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.released = append(s.released, name)
	if !s.removing {
		s.removing = true
		s.removals.Go(s.remove)
	}
}

// remove removes what is released, and ends.
func (s *Store) remove() {
	for {
		s.mu.Lock()
		if len(s.released) == 0 {
			s.removing = false
			s.mu.Unlock()
			return
		}
		name := s.released[0]
		s.released = s.released[1:]
		s.mu.Unlock()
		s.place.RLock()
		err := os.Remove(filepath.Join(s.dir, name))
		s.place.RUnlock()
		if err != nil {
			s.log.Warn("a chunk that was delivered can't be removed, and will be delivered again", "err", err)
		}
	}
}

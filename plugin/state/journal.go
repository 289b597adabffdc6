package state

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"out_kafka_reconnect/plugin/delivery"
)

// compactAt is the size at which a journal is written anew, if that makes it smaller by half.
const compactAt = 1 << 20

// journal is a file of lines, one for each memo that is noted or dropped.
type journal struct {
	path string

	mu     sync.Mutex
	fault  func(error)
	f      *os.File // nil: to be written anew
	closed bool
	size   int64
	fresh  int64 // the size after it was written anew
	live   map[uint64]delivery.Memo
}

// newJournal writes a journal of some memos.
func newJournal(path string, memos []delivery.Memo, fault func(error)) (*journal, error) {
	j := &journal{path: path, fault: fault, live: map[uint64]delivery.Memo{}}
	for _, m := range memos {
		j.live[m.ID] = m
	}
	return j, j.rewrite()
}

// OnFault changes who is told of notes that can't be written.
func (j *journal) OnFault(f func(error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fault = f
}

// tell tells of a note that can't be written.
func (j *journal) tell(err error) {
	j.mu.Lock()
	fault := j.fault
	j.mu.Unlock()
	fault(err)
}

// Note implements delivery.Journal.
func (j *journal) Note(m delivery.Memo) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live[m.ID] = m
	j.append(noteLine(m))
}

// Drop implements delivery.Journal.
func (j *journal) Drop(id uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.live, id)
	j.append(dropLine(id))
}

// append adds a line for what live says already. When that fails the file is removed: it
// would tell of chunks as delivered whose memo was dropped. mu is held.
func (j *journal) append(line []byte) {
	if j.closed {
		return
	}
	var err error
	if j.f == nil || j.size > max(compactAt, 2*j.fresh) {
		err = j.rewrite()
	} else {
		_, err = j.f.Write(line)
		j.size += int64(len(line))
	}
	if err != nil {
		j.abandon()
		j.fault(err)
	}
}

// abandon removes the file.
func (j *journal) abandon() {
	if j.f != nil {
		_ = j.f.Close()
		j.f = nil
	}
	_ = os.Remove(j.path)
}

// rewrite replaces the file by one of what is live.
func (j *journal) rewrite() error {
	data := headerLine()
	for _, id := range slices.Sorted(maps.Keys(j.live)) {
		data = append(data, noteLine(j.live[id])...)
	}
	tmp := j.path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = os.Rename(tmp, j.path)
	}
	if err != nil {
		return fmt.Errorf("state: writing the journal: %w", errors.Join(err, f.Close(), os.Remove(tmp)))
	}
	if j.f != nil {
		_ = j.f.Close()
	}
	j.f, j.size, j.fresh = f, int64(len(data)), int64(len(data))
	return nil
}

// moveTo writes the journal elsewhere and goes on there; the old file is left as it is.
func (j *journal) moveTo(path string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	old := j.path
	j.path = path
	err := j.rewrite()
	if err != nil {
		j.path = old
	}
	return err
}

// close ends the journal as one that is complete.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	var err error
	if j.f == nil {
		err = j.rewrite()
	}
	if err == nil {
		_, err = j.f.Write(closedLine())
	}
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		j.abandon()
		return fmt.Errorf("state: closing the journal: %w", err)
	}
	return j.f.Close()
}

// readJournal returns the memos of a journal, none if there is no file.
func readJournal(path string) ([]delivery.Memo, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return parseJournal(data)
}

// parseJournal replays a journal. A line that is torn at the end was never complete; one in
// the middle means that what follows can't be trusted, and nor can what came before it, which
// may have been dropped.
func parseJournal(data []byte) ([]delivery.Memo, error) {
	live := map[uint64]delivery.Memo{}
	boot, closed := "", false
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		body, ok := checked(string(line))
		switch {
		case !ok && len(rest) == 0 && n > 1:
			continue
		case !ok:
			return nil, fmt.Errorf("state: journal: line %d: %w", n, ErrCorrupt)
		}
		word, args, _ := strings.Cut(body, " ")
		closed = word == wordClosed
		var err error
		switch {
		case n == 1:
			boot, err = parseHeader(body)
		case word == wordNote:
			var m delivery.Memo
			m, err = parseNote(args)
			live[m.ID] = m
		case word == wordDrop:
			var id uint64
			id, err = parseDrop(args)
			delete(live, id)
		case !closed:
			err = fmt.Errorf("%q is unknown", word)
		}
		if err != nil {
			return nil, fmt.Errorf("state: journal: line %d: %w", n, err)
		}
	}
	if !closed && boot != bootID() {
		return nil, errors.New("state: the journal was left open by a machine that went down, and may lack its end")
	}
	return slices.SortedFunc(maps.Values(live), func(a, b delivery.Memo) int { return int(a.ID) - int(b.ID) }), nil
}

// checked cuts the checksum off a line.
func checked(line string) (body string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return "", false
	}
	return line[:i], line[i+1:] == checksum(line[:i])
}

func checksum(body string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))) }

// lineOf completes a line.
func lineOf(body string) []byte { return []byte(body + " " + checksum(body) + "\n") }

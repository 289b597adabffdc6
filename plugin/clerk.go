package plugin

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/deadletter"
	"out_kafka_reconnect/plugin/delivery"
)

// The wait before a dead-letter file that could not be written is tried again.
const (
	fileRetryMin = time.Second
	fileRetryMax = 30 * time.Second
)

// minLetter is the smallest size to which letters are cut for a dead-letter topic.
const minLetter = 1024

// clerk brings records that can never be written to the dead-letter targets. A record is
// accounted for, and its chunk complete, only when every target has it.
type clerk struct {
	courier *delivery.Courier
	quiet   *quiet
	log     *slog.Logger
	file    *deadletter.File // nil: no such target
	topic   deadletter.Topic // without a name: no such target
	written atomic.Int64     // letters in the file

	mu      sync.Mutex
	queue   []letters // for the file
	pending int64     // bytes of them
	limit   int64     // of those bytes: the rest of the room is for what can be written
	running bool      // a goroutine writes
	heir    *clerk    // goes on for this one
	closing chan struct{}
	writing sync.WaitGroup
}

// letters is what was rejected together.
type letters struct {
	rejected delivery.Rejected
	list     []deadletter.Letter
	inFile   int // how many of list are in the file
}

// posted is what the courier keeps with letters that are on their way to the topic.
type posted struct {
	list   []deadletter.Letter
	inFile bool // of this section, or of the one that it was before a reload
}

// newClerk opens the targets of the section.
func newClerk(c *config.Config, q *quiet, log *slog.Logger) (*clerk, error) {
	k := &clerk{
		quiet: q, log: log, closing: make(chan struct{}), limit: c.QueueLimit / 2,
		topic: deadletter.Topic{Name: c.DeadLetterTopic, MaxBytes: c.MaxMessageBytes()},
	}
	if c.DeadLetterFile == "" {
		return k, nil
	}
	f, err := deadletter.OpenFile(deadletter.FileOptions{Path: c.DeadLetterFile, Limit: c.DeadLetterFileLimit, Keep: c.DeadLetterFileKeep})
	if err != nil {
		return nil, err
	}
	k.file = f
	return k, nil
}

// hasTarget tells whether rejected records are kept anywhere.
func (k *clerk) hasTarget() bool { return k.file != nil || k.topic.Name != "" }

// keep brings letters to the targets, the file first. It does not block.
func (k *clerk) keep(l letters) {
	if k.file == nil || l.inFile == len(l.list) {
		k.post(l)
		return
	}
	k.mu.Lock()
	if heir := k.heir; heir != nil {
		k.mu.Unlock()
		heir.inherit(l)
		return
	}
	defer k.mu.Unlock()
	// What is in the file in part is not given up: it would be written again.
	if k.pending > 0 && k.pending+l.rejected.Size() > k.limit && l.inFile == 0 && k.courier.Forgo(l.rejected) {
		return
	}
	k.pending += l.rejected.Size()
	k.queue = append(k.queue, l)
	if !k.running && !k.closed() {
		k.running = true
		k.writing.Go(k.write)
	}
}

func (k *clerk) closed() bool {
	select {
	case <-k.closing:
		return true
	default:
		return false
	}
}

// write empties the queue into the file, and ends.
func (k *clerk) write() {
	for {
		k.mu.Lock()
		if len(k.queue) == 0 || k.closed() {
			k.running = false
			k.mu.Unlock()
			return
		}
		l := k.queue[0]
		k.queue = k.queue[1:]
		k.mu.Unlock()
		if k.writeAll(&l) {
			k.mu.Lock()
			k.pending -= l.rejected.Size()
			k.mu.Unlock()
			k.post(l)
			continue
		}
		k.mu.Lock()
		k.queue = append([]letters{l}, k.queue...)
		k.mu.Unlock()
	}
}

// writeAll writes until all letters are in the file; false when the instance closes before.
// The chunk is not complete then, and comes back after the restart.
func (k *clerk) writeAll(l *letters) bool {
	for wait := fileRetryMin; ; wait = min(2*wait, fileRetryMax) {
		n, err := k.file.Write(l.list[l.inFile:])
		k.written.Add(int64(n))
		l.inFile += n
		if err == nil {
			return true
		}
		k.quiet.warn("dead letters could not be written to the file and will be tried again", len(l.list)-l.inFile, "err", err)
		select {
		case <-time.After(wait):
		case <-k.closing:
			return false
		}
	}
}

// post brings letters to the topic, or accounts for them if there is none.
func (k *clerk) post(l letters) {
	if k.topic.Name == "" {
		k.courier.Account(l.rejected)
		return
	}
	k.courier.PostLetters(l.rejected, k.topic.Batch(l.list), posted{l.list, l.inFile == len(l.list)})
}

// inherit brings letters to the targets of now that were on their way to those before a reload.
func (k *clerk) inherit(l letters) {
	if !k.hasTarget() {
		byKind := map[deadletter.Kind]int{}
		for _, letter := range l.list[l.inFile:] {
			byKind[letter.Kind]++
		}
		for kind, n := range byKind {
			k.quiet.warn(droppedLine(kind), n)
		}
	}
	k.keep(l)
}

// droppedLine is the constant text for a kind, as each is told once a minute.
func droppedLine(k deadletter.Kind) string {
	return "dead letters have no target since a hot reload and are dropped: " + string(k)
}

// refused deals with letters that come back from a dead-letter topic: those that were for another
// one go to the targets of now. Of those that it has refused the ones that are too large are cut
// further, the rest is lost to the topic.
func (k *clerk) refused(r delivery.Rejected) {
	l := lettersOf(r)
	if r.Batch.Topics[0] != k.topic.Name {
		k.inherit(l)
		return
	}
	largest, tooLarge := 0, true
	for i, f := range r.Failures {
		largest = max(largest, int(r.Batch.Messages[i].ValLen)+int(max(r.Batch.Messages[i].KeyLen, 0)))
		tooLarge = tooLarge && deadletter.KindOf(f) == deadletter.TooLarge
	}
	if tooLarge && largest > minLetter {
		smaller := deadletter.Topic{Name: k.topic.Name, MaxBytes: largest / 2}
		k.courier.PostLetters(r, smaller.Batch(l.list), posted{l.list, l.inFile > 0})
		return
	}
	k.log.Error("dead letters were refused by the dead-letter topic",
		"count", len(l.list), "topic", k.topic.Name, "code", r.Failures[0].Code, "err", r.Failures[0].Text, "in_file", l.inFile > 0)
	k.courier.Account(r)
}

// lettersOf lists the letters of a Rejected that holds copies for the dead-letter topic.
func lettersOf(r delivery.Rejected) letters {
	all := r.Letters.(posted)
	l := letters{rejected: r, list: make([]deadletter.Letter, len(r.Failures))}
	for i, f := range r.Failures {
		l.list[i] = all.list[f.Index]
	}
	if all.inFile {
		l.inFile = len(l.list)
	}
	return l
}

// leaveTo ends the writing, and has another clerk go on, also with what still comes here.
func (k *clerk) leaveTo(heir *clerk) {
	k.close()
	k.mu.Lock()
	left := k.queue
	k.queue, k.heir = nil, heir
	k.mu.Unlock()
	for _, l := range left {
		heir.inherit(l)
	}
}

// close ends the writing, and returns what is not written yet.
func (k *clerk) close() []letters {
	k.mu.Lock()
	if !k.closed() {
		close(k.closing)
	}
	k.mu.Unlock()
	k.writing.Wait()
	if k.file != nil {
		if err := k.file.Close(); err != nil {
			k.log.Warn("closing the dead-letter file", "err", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.queue
}

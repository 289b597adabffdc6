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
	closing chan struct{}
	writing sync.WaitGroup
}

// letters is what was rejected together.
type letters struct {
	rejected delivery.Rejected
	list     []deadletter.Letter
	inFile   int // how many of list are in the file
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
	if k.file == nil {
		k.post(l)
		return
	}
	k.mu.Lock()
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
	k.courier.PostLetters(l.rejected, k.topic.Batch(l.list), l.list)
}

// refused deals with letters that the dead-letter topic itself has refused: those that are
// too large are cut further, the rest is lost to the topic.
func (k *clerk) refused(r delivery.Rejected) {
	list := lettersOf(r)
	largest, tooLarge := 0, true
	for i, f := range r.Failures {
		largest = max(largest, int(r.Batch.Messages[i].ValLen)+int(max(r.Batch.Messages[i].KeyLen, 0)))
		tooLarge = tooLarge && deadletter.KindOf(f) == deadletter.TooLarge
	}
	if tooLarge && largest > minLetter {
		smaller := deadletter.Topic{Name: k.topic.Name, MaxBytes: largest / 2}
		k.courier.PostLetters(r, smaller.Batch(list), list)
		return
	}
	k.log.Error("dead letters were refused by the dead-letter topic",
		"count", len(list), "topic", k.topic.Name, "code", r.Failures[0].Code, "err", r.Failures[0].Text, "in_file", k.file != nil)
	k.courier.Account(r)
}

// lettersOf lists the letters of a Rejected that holds copies for the dead-letter topic.
func lettersOf(r delivery.Rejected) []deadletter.Letter {
	all := r.Letters.([]deadletter.Letter)
	list := make([]deadletter.Letter, len(r.Failures))
	for i, f := range r.Failures {
		list[i] = all[f.Index]
	}
	return list
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

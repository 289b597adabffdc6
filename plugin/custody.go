package plugin

import (
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/delivery"
	"out_kafka_reconnect/plugin/state"
)

// custody holds the chunks that exist here only, on the disk if there is a state_path. It
// outlives the instance when another one inherits.
type custody struct {
	store *state.Store // nil without state_path

	mu    sync.Mutex
	files map[*delivery.Receipt]*file // of those that are not complete
}

// file is a chunk on the disk.
type file struct {
	name string
	open int // how many messages it says to be open; 0 if it does not
}

// openCustody opens the state of the section, if it wants one. An heir goes on with what there
// is, as the chunks in custody are the same.
func openCustody(o Options, q *quiet, log *slog.Logger) (*custody, error) {
	if o.Heir != nil {
		return o.Heir.custody, nil
	}
	c := &custody{files: map[*delivery.Receipt]*file{}}
	cfg := o.Config
	if cfg.StatePath == "" {
		return c, nil
	}
	var err error
	c.store, err = state.Open(state.Options{
		Path: cfg.StatePath, Destination: cfg.DestinationID(), Brokers: cfg.BrokerList(), Settings: cfg.DestinationSettings(),
		Owner: state.Agent(), Logger: log, Fault: stateFault(q),
	})
	return c, err
}

// stateFault tells of notes that can't be written.
func stateFault(q *quiet) func(error) {
	return func(err error) {
		q.warn("state_path can't be written to: chunks may be written again after a crash", 1, "err", err)
	}
}

// inherit goes on for an heir with these settings. The state follows it, so that it is found at the next
// start: to its path, and with its addresses, of which only some need be those of before.
func (c *custody) inherit(cfg *config.Config, q *quiet, log *slog.Logger) {
	s := c.store
	if s == nil {
		if cfg.StatePath != "" {
			log.Warn("state_path is used from the next start on, as there was none before this reload", "state_path", cfg.StatePath)
		}
		return
	}
	s.OnFault(stateFault(q))
	switch cfg.StatePath {
	case s.Path():
	case "":
		log.Warn("state_path is gone from the section: the state stays in use where it is until the next start", "dir", s.Dir())
	default:
		if err := s.Move(cfg.StatePath); err != nil {
			log.Warn("the state can't be moved to the new state_path and stays in use where it is", "dir", s.Dir(), "err", err)
		}
	}
	if err := s.Describe(cfg.BrokerList(), cfg.DestinationSettings()); err != nil {
		log.Warn("state_path can't be written to: a start with none of the addresses of before will not find what is in it", "dir", s.Dir(), "err", err)
	}
}

// take keeps a chunk before Fluent Bit is told OK for it.
func (c *custody) take(r *delivery.Receipt, tag string, chunk []byte) error {
	if c.store == nil {
		return nil
	}
	name, err := c.store.Keep(tag, chunk)
	if err == nil {
		c.has(r, &file{name: name})
	}
	return err
}

// has notes in which file a chunk is.
func (c *custody) has(r *delivery.Receipt, f *file) {
	c.mu.Lock()
	c.files[r] = f
	c.mu.Unlock()
	if r.Complete() { // before it was there
		c.completed(r)
		return
	}
	c.noteOpen(r)
}

// noteOpen notes in the file of a chunk that is partly delivered what is open of it.
func (c *custody) noteOpen(r *delivery.Receipt) {
	c.mu.Lock()
	f := c.files[r]
	c.mu.Unlock()
	if f == nil {
		return
	}
	open := r.Open()
	c.mu.Lock()
	again := len(open) == f.open // it only gets less
	f.open = len(open)
	c.mu.Unlock()
	if len(open) > 0 && !again {
		c.store.NoteOpen(f.name, r.Messages(), open)
	}
}

// completed releases the file of a chunk that has come to its end.
func (c *custody) completed(r *delivery.Receipt) {
	c.mu.Lock()
	f := c.files[r]
	delete(c.files, r)
	c.mu.Unlock()
	if f != nil {
		c.store.Release(f.name)
	}
}

// onDisk is the number of chunks that are not delivered and safe.
func (c *custody) onDisk() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.files)
}

// tellLeft tells of the chunks that stay on the disk at the end, and where a later start finds them.
func (c *custody) tellLeft(cfg *config.Config, log *slog.Logger) {
	n := c.onDisk()
	switch {
	case n == 0:
	case c.store.Path() == cfg.StatePath:
		log.Info("chunks that a hot reload had handed to the plugin stay in state_path and are delivered after the next start with a section of these topics and brokers",
			"chunks", n, "dir", c.store.Dir())
	default:
		log.Warn("chunks that a hot reload had handed to the plugin stay outside state_path and are delivered only after a start with the state_path that they are in",
			"chunks", n, "dir", c.store.Dir())
	}
}

// close writes down what is open of the chunks, and lets others have the state.
func (c *custody) close(log *slog.Logger) {
	if c.store == nil {
		return
	}
	c.mu.Lock()
	left := slices.Collect(maps.Keys(c.files))
	c.mu.Unlock()
	for _, r := range left {
		c.noteOpen(r)
	}
	if err := c.store.Close(); err != nil {
		log.Warn("closing the state", "err", err)
	}
}

// remember goes on where an earlier process has ended: chunks of which it has delivered all
// or some are known, and those that only it had are posted again.
func (in *Instance) remember() {
	s := in.custody.store
	if s == nil {
		return
	}
	in.ledger.Restore(in.courier, s, s.Memos())
	if n := in.ledger.Len(); n > 0 {
		in.log.Info("going on where the last process ended", "chunks_known", n)
		if in.registry != nil {
			in.registry.strayed.Store(true) // the sections may have been others
		}
	}
	in.postKept()
}

// postKept posts the chunks that only an earlier process had, once. While the schema of the
// format is not known it does nothing; it is called again then.
func (in *Instance) postKept() {
	enc, err := in.newEncoder()
	if err == nil && enc.ready() { // New has made an encoder of the same configuration
		defer enc.shed(in.cfg)
		in.kept.Do(func() { in.postAll(in.custody.store, enc) })
	}
}

func (in *Instance) postAll(s *state.Store, enc *encoder) {
	if s == nil {
		return
	}
	a := &attempt{in: in, enc: enc, own: true, spare: math.MaxInt64}
	chunks := s.Chunks()
	for _, name := range chunks {
		c, err := s.Chunk(name)
		if err != nil {
			in.log.Error("a chunk that a hot reload had handed to the plugin can't be read", "err", err)
			continue
		}
		a.job, a.keyed = &job{chunk: c.Bytes, tag: c.Tag}, false
		if r := a.rest(c.Messages, c.Open); r != nil {
			in.custody.has(r, &file{name, len(c.Open)})
			continue
		}
		switch r, o := a.post(); {
		case r != nil:
			in.custody.has(r, &file{name: name})
		case resultOf(o) != Retry: // there is nothing to deliver in it
			s.Release(name)
		}
	}
	if len(chunks) > 0 {
		in.log.Info("chunks that a hot reload had handed to the last process were found and will be delivered", "taken_over", len(chunks))
	}
}

// forgottenAfter is when a section looks for chunks that no section takes up: all of the process
// have the time to begin.
const forgottenAfter = 10 * time.Second

// searched are the paths that a section of this process has looked at.
var searched sync.Map

// searchState tells of chunks in state_path that no section delivers, once in a process: those of
// settings that no section has any longer. Nobody but the operator knows what is right for them.
func (in *Instance) searchState() {
	timer := time.NewTimer(forgottenAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-in.closing:
		return
	}
	s := in.custody.store
	if _, done := searched.LoadOrStore(s.Path(), nil); done {
		return
	}
	for _, f := range s.Forgotten() {
		in.counts.forgotten.Add(int64(f.Chunks))
		in.log.Warn("chunks in state_path are no section's and are not delivered: start once with the settings that they are of, or remove their directory",
			"dir", f.Dir, "chunks", f.Chunks, "bytes", f.Bytes,
			"brokers", strings.Join(f.Brokers, ","), "settings", strings.Join(f.Settings, ", "))
	}
}

// blocked is told of every chunk of which some is delivered and the rest waits for an operator.
func (in *Instance) blocked(r *delivery.Receipt) {
	in.ledger.Blocked(r)
	in.custody.noteOpen(r)
}

// completed is told of every chunk that has come to its end.
func (in *Instance) completed(r *delivery.Receipt) {
	in.latency.Observe(time.Since(r.Posted()))
	in.ledger.Completed(r)
	in.custody.completed(r)
}

// closeState writes down what is left at the end.
func (in *Instance) closeState() {
	if n := in.ledger.NoteOpen(in.courier); n > 0 {
		in.log.Info("chunks are partly delivered, the rest follows after the next start", "chunks", n)
	}
	in.custody.close(in.log)
}

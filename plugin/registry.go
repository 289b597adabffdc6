package plugin

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"out_kafka_reconnect/plugin/config"
)

// Registry holds the instances of a process: the live ones by the number that Fluent Bit
// keeps as their context, and those that a hot reload has ended, until the section comes
// back. The zero value is ready; it is safe for concurrent use.
type Registry struct {
	// strayed tells that chunks may be known to another instance than their section's: there was a
	// hot reload, or an earlier process has left something, perhaps with other sections.
	strayed atomic.Bool

	mu     sync.Mutex
	last   uintptr
	live   map[uintptr]*Instance
	parked []*Instance
	// retiring are those that were not claimed in time and end, but still know chunks.
	retiring []*Instance
}

// Number is that of the next section, from 0 in each pipeline; it names the instance in
// the log, because Fluent Bit shows neither name nor alias to a Go plugin.
func (r *Registry) Number() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live)
}

// Add registers an instance and returns its context, which is never 0.
func (r *Registry) Add(in *Instance) uintptr {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil {
		r.live = map[uintptr]*Instance{}
	}
	r.last++
	r.live[r.last] = in
	return r.last
}

// Get returns the instance of a context.
func (r *Registry) Get(context uintptr) (*Instance, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in, ok := r.live[context]
	return in, ok
}

// Only returns the instance when there is exactly one.
func (r *Registry) Only() (*Instance, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.live {
		return in, len(r.live) == 1
	}
	return nil, false
}

// ExpectReload notes that a hot reload was announced: the pipeline drains, and the exits
// follow.
func (r *Registry) ExpectReload() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.live {
		in.reload.expect()
	}
}

// End takes an instance out: it is closed, or parked when a hot reload ends it. A context
// that was never made, or is gone, is ignored. Fluent Bit ends one instance after the other,
// and when it ends one for good it ends them all: so with the first one the closing of the
// others begins, what is parked included, and all of them cost no more time than one.
func (r *Registry) End(context uintptr, byReload bool) {
	r.mu.Lock()
	in, ok := r.live[context]
	delete(r.live, context)
	if !ok {
		r.mu.Unlock()
		return
	}
	if byReload {
		r.strayed.Store(true)
		r.parked = append(r.parked, in)
		r.mu.Unlock()
		in.park(r.retire)
		return
	}
	others := slices.AppendSeq(r.takeEnded(), maps.Values(r.live))
	last := len(r.live) == 0
	r.mu.Unlock()
	closing := beginClosing(others)
	in.Close()
	if last {
		closing.Wait()
	}
}

// CloseAll takes out and closes every instance that is left, side by side.
func (r *Registry) CloseAll() {
	r.mu.Lock()
	left := slices.AppendSeq(r.takeEnded(), maps.Values(r.live))
	r.live = nil
	r.mu.Unlock()
	beginClosing(left).Wait()
}

// CloseParked closes what is parked, side by side: the process ends, though the exits spoke of
// a hot reload. Fluent Bit says so at a stop too once it has refused a reload.
func (r *Registry) CloseParked() {
	r.mu.Lock()
	left := r.takeEnded()
	r.mu.Unlock()
	beginClosing(left).Wait()
}

// takeEnded takes out what a hot reload has ended; mu is held.
func (r *Registry) takeEnded() []*Instance {
	ended := slices.Concat(r.parked, r.retiring)
	r.parked, r.retiring = nil, nil
	return ended
}

// beginClosing closes instances side by side; the group ends with the last one.
func beginClosing(instances []*Instance) *sync.WaitGroup {
	closing := &sync.WaitGroup{}
	for _, in := range instances {
		closing.Go(in.Close)
	}
	return closing
}

// Claim returns the parked instance that goes on with a section: one of the same settings,
// which can serve on as it is (same), or else one of the same destination, whose heir the
// new instance is to be; nil if there is none.
func (r *Registry) Claim(c *config.Config) (in *Instance, same bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.parked, func(in *Instance) bool { return in.cfg.Equal(c) })
	same = i >= 0
	if !same {
		i = slices.IndexFunc(r.parked, func(in *Instance) bool { return in.cfg.SameDestination(c) })
	}
	if i < 0 {
		return nil, false
	}
	in = r.parked[i]
	r.parked = slices.Delete(r.parked, i, i+1)
	return in, same
}

// PutBack parks a claimed instance again, as the section that was to go on with it can't start.
func (r *Registry) PutBack(in *Instance) {
	r.mu.Lock()
	r.parked = append(r.parked, in)
	r.mu.Unlock()
	in.park(r.retire)
}

// retire ends a parked instance that nobody has claimed, once it has delivered what exists
// nowhere else. What it remembers goes to another instance of its destination, if there is one.
func (r *Registry) retire(in *Instance) {
	r.mu.Lock()
	i := slices.Index(r.parked, in)
	if i < 0 {
		r.mu.Unlock()
		return
	}
	if in.courier.Status().Owned > 0 {
		r.mu.Unlock()
		in.park(r.retire)
		return
	}
	r.parked = slices.Delete(r.parked, i, i+1)
	r.retiring = append(r.retiring, in)
	r.mu.Unlock()
	ended := in.retire()
	r.mu.Lock()
	i = slices.Index(r.retiring, in)
	if i >= 0 {
		r.retiring = slices.Delete(r.retiring, i, i+1)
		if !ended {
			r.parked = append(r.parked, in)
		}
	}
	r.mu.Unlock()
	if i >= 0 && !ended {
		in.park(r.retire)
	}
}

// others lists all instances but one, those first that a section has. It lists none before there
// is anything to be had from them.
func (r *Registry) others(than *Instance) []*Instance {
	if !r.strayed.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Instance
	for _, in := range r.live {
		if in != than {
			list = append(list, in)
		}
	}
	for _, in := range slices.Concat(r.parked, r.retiring) {
		if in != than {
			list = append(list, in)
		}
	}
	return list
}

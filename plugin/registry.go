package plugin

import "sync"

// Registry holds the live instances by the number that Fluent Bit keeps as their context.
// The zero value is ready; it is safe for concurrent use.
type Registry struct {
	mu   sync.RWMutex
	last uintptr
	made int
	live map[uintptr]*Instance
}

// Number counts the instances of a process from 0; it names them in the log, because
// Fluent Bit shows neither name nor alias to a Go plugin.
func (r *Registry) Number() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	return r.made - 1
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
	r.mu.RLock()
	defer r.mu.RUnlock()
	in, ok := r.live[context]
	return in, ok
}

// Only returns the instance when there is exactly one.
func (r *Registry) Only() (*Instance, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, in := range r.live {
		return in, len(r.live) == 1
	}
	return nil, false
}

// Remove takes an instance out; false for a context that was never made or is gone.
func (r *Registry) Remove(context uintptr) (*Instance, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in, ok := r.live[context]
	delete(r.live, context)
	return in, ok
}

// CloseAll takes out and closes every instance that is left, side by side, so that
// several of them cost no more time than one.
func (r *Registry) CloseAll(byReload bool) {
	r.mu.Lock()
	left := r.live
	r.live = nil
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, in := range left {
		wg.Go(func() { in.Close(byReload) })
	}
	wg.Wait()
}

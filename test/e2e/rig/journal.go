package rig

import (
	"context"
	"sync"
)

// A journal is a list that only grows, with a way to wait for what comes. Any goroutine may use it.
type journal[T any] struct {
	mu    sync.Mutex
	items []T           // guarded by mu
	grown chan struct{} // guarded by mu; closed at the next add, nil while nobody waits
}

func (j *journal[T]) add(item T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.items = append(j.items, item)
	if j.grown != nil {
		close(j.grown)
		j.grown = nil
	}
}

func (j *journal[T]) size() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.items)
}

// since returns the items from one index on. The slice is not to be changed.
func (j *journal[T]) since(from int) []T {
	items, _ := j.look(from)
	return items
}

// look returns the items from one index on, and a channel that is closed when there are more.
func (j *journal[T]) look(from int) ([]T, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.grown == nil {
		j.grown = make(chan struct{})
	}
	from = min(max(from, 0), len(j.items))
	return j.items[from:len(j.items):len(j.items)], j.grown
}

// wait returns the first item from one index on that matches, now or later.
func (j *journal[T]) wait(ctx context.Context, from int, match func(T) bool) (T, error) {
	for {
		items, grown := j.look(from)
		for _, item := range items {
			if match(item) {
				return item, nil
			}
		}
		from += len(items)
		select {
		case <-grown:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

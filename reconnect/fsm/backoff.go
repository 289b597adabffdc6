package fsm

import "time"

// Backoff paces attempts. It is a pure value: level in, wait out; it owns no timer.
//
// A step starts at the minimum and doubles up to the maximum. Each wait is drawn
// evenly from [0.75 step, 1.5 step], of which only the part up to the maximum is
// used: near the cap the jitter lies below it, so that no wait exceeds the maximum and
// many agents do not gather on it. The place in the interval is drawn once for all waits
// up to the cap and anew for each one there: agents that lose a broker at the same instant
// are spread by the sum of their waits, while independent draws would even out and bring
// them back in a bunch after a short outage (docs/scale.md). With 100ms and 5s:
//
//	attempt        1      2      3      4      5      6      7    8 and on
//	step       100ms  200ms  400ms  800ms   1.6s   3.2s     5s      5s
//	from        75ms  150ms  300ms  600ms   1.2s   2.4s  3.75s   3.75s
//	to         150ms  300ms  600ms   1.2s   2.4s   4.8s     5s      5s
type Backoff struct {
	min, max time.Duration
	rand     func() float64
	next     time.Duration // the step of the next wait
	step     time.Duration // the step of the last wait
	level    int           // waits since the last reset
	luck     float64       // the place in the interval, in [0, 1]
	due      time.Duration // the end of the last wait
}

// NewBackoff returns a backoff at its first step. Rand returns numbers in [0, 1); nil
// means always the middle.
func NewBackoff(minimum, maximum time.Duration, rand func() float64) Backoff {
	const longest = 1 << 61 // so that one and a half steps can't overflow
	maximum = min(max(maximum, 1), longest)
	minimum = min(max(minimum, 1), maximum)
	return Backoff{min: minimum, max: maximum, rand: rand, next: minimum, step: minimum}
}

// Next returns how long to wait from at until the next attempt.
func (b *Backoff) Next(at time.Duration) time.Duration {
	b.step = b.next
	if b.level == 0 || b.step == b.max {
		b.luck = b.chance()
	}
	low, high := b.step/4*3+b.step%4*3/4, min(b.step+b.step/2, b.max)
	wait := low + portion(high-low, b.luck)
	b.next = min(2*b.step, b.max)
	b.level++
	b.due = after(at, wait)
	return wait
}

// Reset starts again at the first step.
func (b *Backoff) Reset() { b.next, b.step, b.level = b.min, b.min, 0 }

// Level is the number of waits since the last reset.
func (b *Backoff) Level() int { return b.level }

// Step is the step of the last wait, or the first one after a reset.
func (b *Backoff) Step() time.Duration { return b.step }

// Quiet tells whether more than the maximum has passed since the last attempt was due.
func (b *Backoff) Quiet(at time.Duration) bool { return b.level > 0 && at-b.due > b.max }

// chance calls rand and survives one that does not keep to its contract.
func (b *Backoff) chance() float64 {
	if b.rand == nil {
		return 0.5
	}
	r := b.rand()
	if r >= 0 { // not NaN
		return min(r, 1)
	}
	return 0
}

// portion returns the fraction r of d, rounded down. It multiplies integers: rounding of
// floats could make a later wait shorter than an earlier one.
func portion(d time.Duration, r float64) time.Duration {
	const bits = 32
	n, f := uint64(d), uint64(r*(1<<bits))
	return time.Duration((n>>bits)*f + (n&(1<<bits-1))*f>>bits)
}

// after adds a wait to a time and stops at the largest time instead of overflowing.
func after(at, wait time.Duration) time.Duration {
	if sum := at + wait; sum >= at {
		return sum
	}
	return 1<<63 - 1
}

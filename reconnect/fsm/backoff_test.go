package fsm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func constant(r float64) func() float64 { return func() float64 { return r } }

// The table of the package's documentation, at both ends of the jitter and in its middle.
func TestBackoff_Table(t *testing.T) {
	const ms = time.Millisecond
	steps := []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms, 5000 * ms}
	for _, tc := range []struct {
		name string
		rand func() float64
		want []time.Duration
	}{
		{"lowest", constant(0), []time.Duration{75 * ms, 150 * ms, 300 * ms, 600 * ms, 1200 * ms, 2400 * ms, 3750 * ms, 3750 * ms, 3750 * ms}},
		{"middle", constant(0.5), []time.Duration{112500 * time.Microsecond, 225 * ms, 450 * ms, 900 * ms, 1800 * ms, 3600 * ms, 4375 * ms, 4375 * ms, 4375 * ms}},
		{"none", nil, []time.Duration{112500 * time.Microsecond, 225 * ms, 450 * ms, 900 * ms, 1800 * ms, 3600 * ms, 4375 * ms, 4375 * ms, 4375 * ms}},
		{"highest", constant(1), []time.Duration{150 * ms, 300 * ms, 600 * ms, 1200 * ms, 2400 * ms, 4800 * ms, 5000 * ms, 5000 * ms, 5000 * ms}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := NewBackoff(100*ms, 5*time.Second, tc.rand)
			for i, want := range tc.want {
				if got := b.Next(0); got != want || b.Step() != steps[i] || b.Level() != i+1 {
					t.Errorf("wait %d: %s of step %s at level %d, want %s of %s", i+1, got, b.Step(), b.Level(), want, steps[i])
				}
			}
			b.Reset()
			if got := b.Next(0); got != tc.want[0] {
				t.Errorf("after a reset: %s, want %s", got, tc.want[0])
			}
		})
	}
}

// Whatever the bounds and whatever Rand returns, each wait lies in its interval and never
// above the maximum; with a fixed Rand waits never shrink.
func TestBackoff_Properties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		low := time.Duration(r.Int64N(1 << r.IntN(62)))
		high := time.Duration(r.Int64N(1 << r.IntN(62)))
		jitter := r.Float64
		fixed := r.IntN(2) == 0
		if fixed {
			jitter = constant([]float64{0, 0.3, 0.5, 1 - 1e-16, 1, 2, -1, math.NaN(), math.Inf(1)}[r.IntN(9)])
		}
		b := NewBackoff(low, high, jitter)
		last := time.Duration(0)
		for range 70 {
			w := b.Next(math.MaxInt64)
			step := b.Step()
			from, to := step/4*3+step%4*3/4, min(step+step/2, max(high, 1))
			if w < from || w > to || w > max(high, 1) {
				t.Fatalf("min %s max %s: wait %s outside [%s, %s]", low, high, w, from, to)
			}
			if fixed && w < last {
				t.Fatalf("min %s max %s: wait %s after %s", low, high, w, last)
			}
			last = w
		}
		if b.Step() != max(high, 1) {
			t.Fatalf("min %s max %s: the last step is %s", low, high, b.Step())
		}
	}
}

// The defaults allow at most 40 attempts in two minutes, whatever the jitter.
func TestBackoff_AttemptsInTwoMinutes(t *testing.T) {
	for _, tc := range []struct {
		name     string
		rand     func() float64
		from, to int
	}{
		{"lowest", constant(0), 30, 40},
		{"random", rand.New(rand.NewPCG(7, 7)).Float64, 30, 40},
		{"highest", constant(1), 20, 40},
	} {
		b := NewBackoff(100*time.Millisecond, 5*time.Second, tc.rand)
		n := 0
		for at := b.Next(0); at <= 2*time.Minute; at += b.Next(at) {
			n++
		}
		t.Logf("%s: %d attempts", tc.name, n)
		if n < tc.from || n > tc.to {
			t.Errorf("%s: %d attempts in two minutes, want %d to %d", tc.name, n, tc.from, tc.to)
		}
	}
}

// Ten thousand agents at the cap stay spread: no tenth of the interval holds much more
// than its share, the maximum itself holds next to none.
func TestBackoff_StaysSpreadAtTheCap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var buckets [10]int
	atMax := 0
	const agents = 10000
	for range agents {
		b := NewBackoff(5*time.Second, 5*time.Second, r.Float64)
		w := b.Next(0)
		if w >= 5*time.Second-time.Millisecond {
			atMax++
		}
		buckets[min(9, int((w-3750*time.Millisecond)*10/(1250*time.Millisecond)))]++
	}
	for i, n := range buckets {
		if n < 800 || n > 1200 {
			t.Errorf("tenth %d holds %d of %d", i, n, agents)
		}
	}
	if atMax > agents/100 {
		t.Errorf("%d of %d gather at the maximum", atMax, agents)
	}
}

// Ten thousand agents that lose a broker at the same instant are spread before they are at the
// cap: once the first waits are over none of the later ones brings them back in a bunch.
func TestBackoff_SpreadsAHerdBeforeTheCap(t *testing.T) {
	const agents, window = 10000, time.Second
	r := rand.New(rand.NewPCG(5, 5))
	var times []time.Duration
	for range agents {
		b := NewBackoff(100*time.Millisecond, 5*time.Second, r.Float64)
		for at := b.Next(0); at < 20*time.Second; at += b.Next(at) {
			if at > 5*time.Second {
				times = append(times, at)
			}
		}
	}
	slices.Sort(times)
	most := 0
	for from, to := 0, 0; to < len(times); to++ {
		for times[from] <= times[to]-window {
			from++
		}
		most = max(most, to-from+1)
	}
	// An even spread over waits of 3.75 to 5 s would be 2290.
	if most > 3200 {
		t.Errorf("%d of %d attempt within a second", most, agents)
	}
}

func TestBackoff_Quiet(t *testing.T) {
	b := NewBackoff(time.Second, 4*time.Second, constant(0))
	if b.Quiet(time.Hour) {
		t.Error("quiet before the first wait")
	}
	w := b.Next(10 * time.Second)
	due := 10*time.Second + w
	if b.Quiet(due + 4*time.Second) {
		t.Error("quiet after the maximum, want more than it")
	}
	if !b.Quiet(due + 4*time.Second + 1) {
		t.Error("not quiet after more than the maximum")
	}
}

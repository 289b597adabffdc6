//go:build e2e

package outage

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"out_kafka_reconnect/test/e2e/kafka"
	"out_kafka_reconnect/test/e2e/rig"
)

var (
	full  = flag.Bool("full", false, "run the whole matrix, not only the short runs")
	only  = flag.String("faults", "", "run those whose name, a slash and host match this pattern, short or not")
	lanes = flag.Int("lanes", 4, "how many runs at a time")
	out   = flag.String("out", "", "the folder for results and plots; empty means build/outage")
)

// installPatience is how long fetching Kafka may take, runPatience how long one run may.
const (
	installPatience = 10 * time.Minute
	runPatience     = 15 * time.Minute
)

// A job is a run in a host.
type job struct {
	run  Run
	host Host
}

func (j job) String() string { return j.run.Name + "/" + j.host.Kind }

// TestOutage runs the matrix and fails with a list of the bars that were not kept.
func TestOutage(t *testing.T) {
	jobs := pick(t)
	dir := *out
	if dir == "" {
		dir = "../../../build/outage"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), installPatience)
	defer cancel()
	dist, err := kafka.Install(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	clusters := &pool{dist: dist, dir: t.TempDir(), limit: *lanes}
	results := work(t, jobs, clusters, dir)
	if err := clusters.close(); err != nil {
		t.Error(err)
	}
	if err := mergeResults(filepath.Join(dir, resultsFile), results); err != nil {
		t.Error(err)
	}
}

// pick returns what is to be run, the kinds of cluster together.
func pick(t *testing.T) []job {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []job
	for _, host := range hosts(t) {
		for _, run := range Matrix() {
			j := job{run, host}
			if *only == "" && !*full && !run.Short || !pattern.MatchString(j.String()) {
				continue
			}
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		t.Fatalf("no run matches %q", *only)
	}
	// What takes long begins early, and so do the three nodes, of which there is one cluster.
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.rank(), b.rank()) })
	return jobs
}

func (j job) rank() int {
	switch {
	case j.run.Long:
		return 0
	case j.run.Kafka == ThreeNodes:
		return 1
	}
	return 2
}

// A queue hands out jobs, so that no more than one of them at a time has a rare kind of cluster.
type queue struct {
	mu    sync.Mutex
	ended sync.Cond
	left  []job          // guarded by mu
	busy  map[Kafka]bool // guarded by mu; the rare kinds at work
}

func newQueue(jobs []job) *queue {
	q := &queue{left: jobs, busy: map[Kafka]bool{}}
	q.ended.L = &q.mu
	return q
}

// next waits for a job that may begin; ok is false when there are none any more.
func (q *queue) next() (j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.left) > 0 {
		for i, j := range q.left {
			if !q.busy[j.run.Kafka] {
				q.left = slices.Delete(slices.Clone(q.left), i, i+1)
				q.busy[j.run.Kafka] = j.run.Kafka != OneNode
				return j, true
			}
		}
		q.ended.Wait()
	}
	return job{}, false
}

func (q *queue) done(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy[j.run.Kafka] = false
	q.ended.Broadcast()
}

func hosts(t *testing.T) []Host {
	plugin, err := rig.Built("../../../build/out_kafka_reconnect.so", "build")
	if err != nil {
		t.Fatal(err)
	}
	chost, err := rig.Built("../../../build/chost", "build/chost")
	if err != nil {
		t.Fatal(err)
	}
	all := []Host{{Kind: "chost", Program: chost, Plugin: plugin}}
	fluentBit, version, err := rig.FindFluentBit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fluentBit == "" {
		t.Log("Fluent Bit: there is none in FLUENT_BIT or PATH, so all runs are in the C host only")
		return all
	}
	t.Logf("Fluent Bit: %s, version %s", fluentBit, version)
	return append(all, Host{Kind: "fluent-bit", Program: fluentBit, Plugin: plugin})
}

// work does all jobs, some at a time, and tells of each on standard output as it goes: it takes long.
func work(t *testing.T, jobs []job, clusters *pool, dir string) []*Result {
	var (
		mu       sync.Mutex
		results  []*Result
		jobsLeft = newQueue(jobs)
		workers  sync.WaitGroup
		began    = time.Now()
	)
	tell := func(j job, format string, args ...any) {
		fmt.Printf("%6.1f s  %-32s %s\n", time.Since(began).Seconds(), j, fmt.Sprintf(format, args...))
	}
	for range min(*lanes, len(jobs)) {
		workers.Go(func() {
			for j, ok := jobsLeft.next(); ok; j, ok = jobsLeft.next() {
				r, err := attempt(t, j, clusters, dir, func(format string, args ...any) { tell(j, format, args...) })
				jobsLeft.done(j)
				if err != nil {
					r = &Result{Run: j.run.Name, Host: j.host.Kind, Failures: []string{"the run itself failed: " + err.Error()}}
				}
				mu.Lock()
				results = append(results, r)
				n := len(results)
				mu.Unlock()
				verdict := "good"
				for _, f := range r.Failures {
					verdict = "FAILED"
					t.Errorf("%s: %s", j, f)
				}
				tell(j, "%s (%d of %d): %v", verdict, n, len(jobs), r)
				for _, f := range r.Failures {
					tell(j, "    %s", f)
				}
			}
		})
	}
	workers.Wait()
	return results
}

// attempt does one job.
func attempt(t *testing.T, j job, clusters *pool, dir string, say func(string, ...any)) (r *Result, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), runPatience)
	defer cancel()
	a, err := clusters.take(ctx, j.run.Kafka)
	if err != nil {
		return nil, err
	}
	defer func() {
		if back := clusters.giveBack(ctx, a); back != nil {
			say("its cluster is of no use any more: %v", back)
		}
	}()
	say("begins")
	name := j.run.Name + "." + j.host.Kind
	r, err = j.run.do(ctx, j.host, a, filepath.Join(t.TempDir(), name), filepath.Join(dir, name+".log"), say)
	if err != nil {
		return nil, err
	}
	return r, r.picture.write(filepath.Join(dir, name+".svg"))
}

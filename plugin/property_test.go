package plugin

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/plugin/delivery"
	"out_kafka_reconnect/plugin/state"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// account is what a broker and the model know of each content. Every chunk has one content
// in all of its records, and several chunks may have the same.
type account struct {
	mu sync.Mutex
	// copies[v][i] is how often record i of content v was written; all copies of a content
	// have the same records, so that a complete delivery adds one to each.
	copies map[string]int
	// again[v] is how many more copies there may be: the report said "possibly persisted", or a
	// crash came before it.
	again map[string]int
	// chunks[v] is how many chunks have the content, ok[v] how many were answered with OK.
	chunks, ok map[string]int
}

func newAccount() *account {
	return &account{copies: map[string]int{}, again: map[string]int{}, chunks: map[string]int{}, ok: map[string]int{}}
}

// judge is what the broker makes of a record: mostly it writes it, sometimes it reports one
// of the things that a broker or a client reports.
func (a *account) judge(rng *rand.Rand, m reconnecttest.Message, company bool) *reconnect.Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch n := rng.IntN(100); {
	case n < 80:
		a.copies[m.Value]++
		return nil
	case n < 85: // expired or purged before it was sent
		return &reconnect.Failure{Class: fsm.ClassTransient, Code: -192, Text: "timed out in the queue"}
	case n < 90: // written, and the answer was lost
		a.copies[m.Value]++
		a.again[m.Value]++
		return &reconnect.Failure{Class: fsm.ClassTransient, Code: -151, Status: reconnect.PossiblyPersisted, Text: "purged in flight"}
	case n < 93:
		return &reconnect.Failure{Class: fsm.ClassTopic, Code: 3, Text: "unknown topic"}
	case n < 96 && company: // a batch mate is bad
		return &reconnect.Failure{Class: fsm.ClassRecord, Code: 10, Text: "batch too large"}
	case n < 98: // the broker had it before the connection broke
		a.copies[m.Value]++
		return &reconnect.Failure{Class: fsm.ClassTransient, Code: -151, Status: reconnect.Persisted, Text: "purged in flight"}
	default:
		a.copies[m.Value]++
		return nil
	}
}

const recordsEach = 6

// contentChunk is a chunk of records that all tell the content and their number.
func contentChunk(content, padding int) (chunk []byte, values []string) {
	pad := strings.Repeat("x", padding)
	for i := range recordsEach {
		text := fmt.Sprintf("%d/%d%s", content, i, pad)
		chunk = append(chunk, record(text)...)
		values = append(values, `{"@timestamp":1700000000.0,"seq":"`+text+`"}`)
	}
	return chunk, values
}

// groups is the number of groups of chunks: each has a Match of one of the sections.
const groups = 2

// world is the agent's process, and the one after it when it ends.
type world struct {
	t    *testing.T
	rng  *rand.Rand
	s    settings
	acc  *account
	host *host
	// judge is what the brokers do, see reconnecttest.Network.Reject.
	judge func(reconnecttest.Message) *reconnect.Failure
	net   *reconnecttest.Network
	queue int // see reconnecttest.Network.Queue
	// values are those of each chunk.
	values map[string][]string

	mu       sync.Mutex
	reg      *Registry
	contexts []uintptr         // of the sections
	serving  [groups]*Instance // the section of each group
	made     []*Instance       // all that there ever were
	flushing map[flushed]int   // calls that have not returned
	crashed  []*Registry
}

// flushed is a chunk that was brought to a process.
type flushed struct {
	reg   *Registry
	chunk string
}

// start begins a process. It has a section for each directory of the state, as memos in one that
// no section has are not known.
func (w *world) start() {
	w.t.Helper()
	w.mu.Lock()
	w.reg = &Registry{}
	w.mu.Unlock()
	dirs, err := filepath.Glob(filepath.Join(w.s["state_path"], "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.makeSections(max(len(dirs), 1+w.rng.IntN(3)))
}

// makeSections makes a pipeline of n sections, some with other settings, and leads the groups to
// any of them.
func (w *world) makeSections(n int) {
	w.t.Helper()
	w.contexts = nil
	var made []*Instance
	for range n {
		s := maps.Clone(w.s)
		if w.rng.IntN(3) == 0 {
			s["reconnect_backoff_max"] = "2s"
		}
		cfg := decode(w.t, s)
		in, same := w.reg.Claim(cfg)
		if same {
			in.Resume(w.host, "test", "test")
		} else {
			var err error
			if in, err = New(Options{Config: cfg, Open: w.net.Open, Memory: reconnecttest.Memory{}, Relay: flblog.NewRelay(w.host, "test"), Heir: in, Registry: w.reg}); err != nil {
				w.t.Fatal(err)
			}
		}
		w.contexts = append(w.contexts, w.reg.Add(in))
		made = append(made, in)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made = append(w.made, made...)
	for g := range w.serving {
		w.serving[g] = made[w.rng.IntN(n)]
	}
}

// reload ends the pipeline and makes another one, with sections added, removed and reordered.
func (w *world) reload() {
	w.t.Helper()
	for _, c := range w.contexts {
		w.reg.End(c, true)
	}
	w.makeSections(1 + w.rng.IntN(3))
}

// instances lists those of the process, also those without a section.
func (w *world) instances() []*Instance {
	w.mu.Lock()
	reg := w.reg
	w.mu.Unlock()
	reg.mu.Lock()
	defer reg.mu.Unlock()
	return slices.AppendSeq(slices.Concat(reg.parked, reg.retiring), maps.Values(reg.live))
}

// inCompany tells whether no record can be alone in the hands of its client, whichever client that is.
func (w *world) inCompany() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(w.made, func(in *Instance) bool { return in.sup.Outstanding() == 1 })
}

func (w *world) newNetwork() {
	w.net = reconnecttest.NewNetwork("a:1")
	w.net.Reject = w.judge
	w.net.Queue = w.queue
}

// flush is one attempt of Fluent Bit's. If the process was killed meanwhile, its answer was
// not heard.
func (w *world) flush(group int, chunk []byte, worker bool) Result {
	w.mu.Lock()
	in, f := w.serving[group], flushed{w.reg, string(chunk)}
	w.flushing[f]++
	w.mu.Unlock()
	r := in.Flush(chunk, "tag", worker)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushing[f]--
	if slices.Contains(w.crashed, f.reg) {
		return Retry
	}
	return r
}

// crash kills the process. What was in flight may come twice: chunks that a flush waits for,
// those that lie in the ledger and are not complete, and those in custody; but of a chunk whose rest
// waits for an operator only that rest.
func (w *world) crash() {
	disk := diskAfterCrash(w.t, w.s["state_path"])
	all := w.instances()
	w.mu.Lock()
	w.crashed = append(w.crashed, w.reg)
	for f, n := range w.flushing {
		if f.reg == w.reg {
			w.allow(f.chunk, n, nil)
			for _, r := range incomplete(all, f.chunk) {
				w.allow(f.chunk, 1, blockedOn(r))
			}
		}
	}
	w.mu.Unlock()
	w.net.Set(reconnecttest.Down)
	w.s["state_path"] = disk
	w.allowCustody(all, blockedOn)
	w.newNetwork()
	w.start()
}

// blockedOn lists what is open of a receipt if all of that waits for an operator, and the rest of the chunk
// is delivered.
func blockedOn(r *delivery.Receipt) []int {
	select {
	case <-r.Blocked():
		return r.Open()
	default:
		return nil
	}
}

// incomplete takes the receipts of a chunk out of the ledgers and returns those that are not
// complete.
func incomplete(instances []*Instance, chunk string) (rs []*delivery.Receipt) {
	key := delivery.KeyOf("tag", []byte(chunk))
	for _, in := range instances {
		for r := in.ledger.Take(key); r != nil; r = in.ledger.Take(key) {
			if !r.Complete() {
				rs = append(rs, r)
			}
		}
	}
	return rs
}

// stop ends the process in good order and starts it again. What is open of each chunk is known.
func (w *world) stop() {
	all := w.instances()
	w.reg.CloseAll()
	w.allowCustody(all, (*delivery.Receipt).Open)
	w.start()
}

// allow lets n more copies of a chunk's records be, or of some of them.
func (w *world) allow(chunk string, n int, some []int) {
	w.acc.mu.Lock()
	defer w.acc.mu.Unlock()
	for i, v := range w.values[chunk] {
		if len(some) == 0 || slices.Contains(some, i) {
			w.acc.again[v] += n
		}
	}
}

// allowCustody allows for what the process after these instances finds in custody: a chunk, or what is open of it.
func (w *world) allowCustody(all []*Instance, open func(*delivery.Receipt) []int) {
	known := map[string]int{}
	for _, in := range all {
		if in.custody.store == nil {
			continue
		}
		for r, f := range in.custody.files {
			if c, err := in.custody.store.Chunk(f.name); err == nil { // else it was released
				w.allow(string(c.Bytes), 1, open(r))
				known[string(c.Bytes)]++
			}
		}
	}
	cfg := decode(w.t, w.s)
	if cfg.StatePath == "" {
		return
	}
	st, err := state.Open(state.Options{ // it takes along what lies in the directories of all
		Path: diskAfterCrash(w.t, cfg.StatePath), Destination: cfg.DestinationID(), Brokers: cfg.BrokerList(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range st.Chunks() {
		c, err := st.Chunk(name)
		if err != nil {
			w.t.Fatal(err)
		}
		if known[string(c.Bytes)]--; known[string(c.Bytes)] < 0 {
			w.allow(string(c.Bytes), 1, nil)
		}
	}
	if err := st.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// Random interleavings of flush, retry, drop, report, expiry, outage, lost clients, reload,
// stop and crash against a model. Whatever happens, every OK stands for one complete
// delivery, and nothing is written twice unless a report said that it may have been, or a
// crash came before the report.
func TestProperty_EveryOKIsOneDelivery(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 10
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			path := ""
			if seed%2 == 1 {
				path = t.TempDir()
			}
			synctest.Test(t, func(t *testing.T) { runProperty(t, seed, path) })
		})
	}
}

func runProperty(t *testing.T, seed uint64, path string) {
	rng := rand.New(rand.NewPCG(seed, 99))
	acc := newAccount()
	w := &world{
		t: t, rng: rng, acc: acc, host: &host{}, values: map[string][]string{}, flushing: map[flushed]int{},
		s: settings{
			"queue_limit": "1MiB", "custody_limit": "1MiB", "receipt_ttl": "2m", "stall_timeout": "20s", "reload_timeout": "5s",
			"ordered": fmt.Sprint(seed%4 == 3), "ordered_wait": "30s", "state_path": path,
		},
	}
	if seed%3 == 2 {
		w.queue = recordsEach/2 + rng.IntN(2*recordsEach)
	}
	var judging sync.Mutex // of what follows, in the brokers' goroutines
	broker := rand.New(rand.NewPCG(seed, 7))
	calm, denied := false, false // denied: the first record of each chunk waits for an operator
	w.judge = func(m reconnecttest.Message) *reconnect.Failure {
		judging.Lock()
		defer judging.Unlock()
		if calm {
			acc.mu.Lock()
			acc.copies[m.Value]++
			acc.mu.Unlock()
			return nil
		}
		if denied && strings.Contains(m.Value, "/0") {
			return &reconnect.Failure{Class: fsm.ClassAuthorization, Code: 29, Text: "topic authorization failed"}
		}
		return acc.judge(broker, m, w.inCompany())
	}
	w.newNetwork()
	w.start()
	time.Sleep(time.Second)
	var agents sync.WaitGroup
	for range 40 {
		content, padding := rng.IntN(15), 0
		if content%5 == 0 {
			padding = 30_000 // four of them fill the queue
		}
		chunk, values := contentChunk(content, padding)
		acc.mu.Lock()
		for _, v := range values {
			acc.chunks[v]++
		}
		acc.mu.Unlock()
		w.values[string(chunk)] = values
		attempts := 1 + rng.IntN(60) // Retry_Limit
		if rng.IntN(3) > 0 {
			attempts = 1 << 30
		}
		start := time.Duration(rng.IntN(240)) * time.Second
		between := 100*time.Millisecond + time.Duration(rng.IntN(8000))*time.Millisecond
		worker, group := rng.IntN(2) == 0, rng.IntN(groups)
		agents.Go(func() {
			time.Sleep(start)
			for range attempts {
				if w.flush(group, chunk, worker) == OK {
					acc.mu.Lock()
					for _, v := range values {
						acc.ok[v]++
					}
					acc.mu.Unlock()
					return
				}
				time.Sleep(between)
			}
		})
	}
	for range 60 {
		time.Sleep(time.Duration(rng.IntN(8000)) * time.Millisecond)
		switch rng.IntN(14) {
		case 0, 1:
			w.net.Set(reconnecttest.Down)
		case 2:
			w.net.Set(reconnecttest.Mute)
		case 3:
			w.net.Cut()
		case 4:
			w.reg.ExpectReload()
		case 5:
			w.net.Client().Fatal(fsm.ClassFatal, "out of order sequence number")
		case 6:
			if path != "" {
				w.crash()
			}
		case 7:
			if path != "" {
				w.stop()
			}
		case 8:
			judging.Lock()
			denied = !denied
			judging.Unlock()
		case 9:
			w.reload()
		default:
			w.net.Set(reconnecttest.Serving)
		}
		for _, in := range w.instances() {
			if q := in.courier.Status().Queued; q > 2<<20 {
				t.Errorf("%d bytes are held, above the limit", q)
			}
		}
	}
	judging.Lock()
	calm = true
	judging.Unlock()
	w.net.Set(reconnecttest.Serving)
	agents.Wait()
	time.Sleep(time.Minute)
	acc.check(t)
	all := w.instances()
	short := 0 // chunks whose bytes are needed again, and that Fluent Bit has given up
	for chunk := range w.values {
		for _, r := range incomplete(all, chunk) {
			if r.Short() {
				short++
			}
		}
	}
	receipts := 0
	for _, in := range all {
		st := in.courier.Status()
		receipts += st.Receipts
		if st.Queued != 0 || st.Owned != 0 {
			t.Errorf("left: %+v", st)
		}
	}
	if receipts != short {
		t.Errorf("%d receipts are left, %d chunks are short", receipts, short)
	}
	if path != "" {
		if left := files(t, w.s["state_path"]); len(left) > 0 {
			t.Errorf("chunks that were delivered are still in custody: %q", left)
		}
	}
	for _, reg := range append(w.crashed, w.reg) {
		reg.CloseAll()
	}
	time.Sleep(time.Minute) // the timers of the supervisors' own lines end
}

// check compares at the end.
func (a *account) check(t *testing.T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for v, n := range a.chunks {
		name := v[:min(len(v), 60)]
		if a.copies[v] < a.ok[v] {
			t.Errorf("%s: %d OK for %d copies", name, a.ok[v], a.copies[v])
		}
		if most := n + a.again[v]; a.copies[v] > most {
			t.Errorf("%s: %d copies, %d at most for %d chunks and %d reports that left it open", name, a.copies[v], most, n, a.again[v])
		}
	}
}

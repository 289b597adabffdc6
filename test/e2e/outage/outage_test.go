package outage

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"

	"out_kafka_reconnect/test/chart"
	"out_kafka_reconnect/test/e2e/audit"
	"out_kafka_reconnect/test/e2e/rig"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reliability.md from docs/outage/results.jsonl")

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * 1e9)) }

func TestMatrix_NamesAreUniqueAndPlain(t *testing.T) {
	seen := map[string]bool{}
	plain := regexp.MustCompile(`^[a-z0-9-]+$`)
	for _, run := range Matrix() {
		if !plain.MatchString(run.Name) || seen[run.Name] {
			t.Errorf("name %q is odd or there twice", run.Name)
		}
		seen[run.Name] = true
		if !strings.HasSuffix(run.Title, ".") || len(run.Steps) == 0 || run.Kafka == "" {
			t.Errorf("%s: title %q, %d steps, kafka %q", run.Name, run.Title, len(run.Steps), run.Kafka)
		}
	}
}

func TestAllowedAttempts(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		length time.Duration
		want   int
	}{
		// The shortest waits are 75, 150, 300 and then 300 ms.
		{0, 1},
		{74 * ms, 1},
		{75 * ms, 2},
		{224 * ms, 2},
		{225 * ms, 3},
		{525 * ms, 4},
		{825 * ms, 5},
	} {
		if got := allowedAttempts(test.length, 100*ms, 400*ms); got != test.want {
			t.Errorf("in %s: %d, want %d", test.length, got, test.want)
		}
	}
}

// log is what an instance says in an outage from second 10 to 20, in which the agent is away from 12 to 13.
var log = []rig.Message{
	{Made: at(0), Text: "starting"},
	{Made: at(10), Level: "error", Text: "all brokers down", Attrs: map[string]string{"next_in": "100ms"}},
	{Made: at(11), Level: "info", Text: "reconnect attempt failed", Attrs: map[string]string{"next_in": "2s"}},
	{Made: at(12.9), Text: "starting"},
	{Made: at(14), Level: "error", Text: "all brokers down", Attrs: map[string]string{"next_in": "90ms"}},
	{Made: at(15), Level: "info", Text: "reconnect attempt failed", Attrs: map[string]string{"next_in": "3s"}},
	{Made: at(20), Level: "info", Text: "connected again"},
	{Made: at(21), Level: "warn", Text: "degraded: some brokers are unreachable"},
	{Made: at(22), Level: "info", Text: "all brokers are reachable again"},
}

func TestTimeline(t *testing.T) {
	spans := timeline(log, []gap{{from: at(12), to: at(13)}}, []time.Time{at(1), at(2), at(20.5)}, at(0), at(30))
	var got []string
	for _, s := range spans {
		got = append(got, s.state+" "+s.from.Format("05.0")+"-"+s.to.Format("05.0"))
	}
	want := []string{
		"connecting 00.0-01.0", "up 01.0-10.0", "down 10.0-12.0", "no agent 12.0-12.9", "connecting 12.9-14.0", "down 14.0-20.0",
		"up 20.0-21.0", "degraded 21.0-22.0", "up 22.0-30.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWaiting(t *testing.T) {
	for _, test := range []struct {
		at     float64
		want   time.Duration
		outage bool
	}{{9, 0, false}, {10.5, 100 * time.Millisecond, true}, {11.5, 2 * time.Second, true}, {19, 3 * time.Second, true}} {
		if got, outage := waiting(log, at(test.at)); outage != test.outage || outage && got != test.want {
			t.Errorf("at %v: %s, %t; want %s, %t", test.at, got, outage, test.want, test.outage)
		}
	}
	if _, outage := waiting(log, at(20.5)); outage {
		t.Error("the outage is over")
	}
}

func TestAttempts_CountsFailedOnesAndTheOneThatWorked(t *testing.T) {
	made, allowed := attempts(log, at(30), backoffMin, backoffMax)
	first := allowedAttempts(2900*time.Millisecond, backoffMin, backoffMax) // until the agent starts anew
	second := allowedAttempts(6*time.Second, backoffMin, backoffMax)
	if made != 3 || allowed != first+second {
		t.Errorf("made %d, allowed %d; want 3, %d", made, allowed, first+second)
	}
}

// written makes deliveries in one partition, each logged at the second of its number over 10.
func written(numbers ...int64) *harvest {
	h := &harvest{result: &audit.Result{Delivered: map[int64]int{}, Doubled: map[int64]int{}}}
	for i, n := range numbers {
		h.deliveries = append(h.deliveries, delivery{number: n, logged: at(float64(n) / 10), appended: at(100 + float64(i))})
		h.result.Delivered[n]++
	}
	return h
}

func TestLateInChunk(t *testing.T) {
	for _, test := range []struct {
		name    string
		numbers []int64
		ends    []int64
		want    int
		exact   bool
	}{
		{"in order", []int64{1, 2, 3, 4}, []int64{2, 4}, 0, true},
		{"chunks change places", []int64{3, 4, 1, 2}, []int64{2, 4}, 0, true},
		{"within a chunk", []int64{2, 1, 4, 3}, []int64{2, 4}, 2, true},
		{"a copy is not late", []int64{1, 2, 1, 2, 3, 4}, []int64{2, 4}, 0, true},
		{"chunks unknown, all in order", []int64{1, 2, 3}, nil, 0, true},
		{"chunks unknown, close by", []int64{3, 4, 1, 2}, nil, 2, false},
		{"chunks unknown, far away", []int64{30, 1, 2}, nil, 0, true},
	} {
		if got, exact := written(test.numbers...).lateInChunk(test.ends, time.Second); got != test.want || exact != test.exact {
			t.Errorf("%s: %d, %t; want %d, %t", test.name, got, exact, test.want, test.exact)
		}
	}
}

func TestHarvest_AfterAnEarlierTopic(t *testing.T) {
	later := written(3, 4, 2)
	later.result.Lost = []int64{1, 5}
	h := later.after(written(1, 2))
	if !slices.Equal(h.result.Lost, []int64{5}) || len(h.result.Doubled) != 1 || h.result.Doubled[2] != 2 || len(h.deliveries) != 5 {
		t.Errorf("lost %v, doubled %v, %d deliveries", h.result.Lost, h.result.Doubled, len(h.deliveries))
	}
}

func TestInFlight(t *testing.T) {
	h := written(1, 2, 3, 4, 5, 6, 7) // written at 100, 101, …
	for i := range h.deliveries {
		h.deliveries[i].producer = 1
	}
	h.deliveries[6].producer = 2
	for _, test := range []struct {
		name    string
		gone    []gap
		outages []*Outage
		want    int
	}{
		{"a stop", []gap{{from: at(106.5), to: at(107)}}, nil, 0},
		{"a stop in an outage", []gap{{from: at(120), to: at(121)}}, []*Outage{{Fault: at(104.5)}}, 3},
		{"what arrives after a stop", []gap{{from: at(103.5), to: at(104)}}, nil, 2},
		{"all of the dead one since shortly before", []gap{{from: at(106.5), to: at(107), killed: true}}, nil, 5},
		{"what arrives after its death", []gap{{from: at(99), to: at(101.5), killed: true}}, nil, 6},
		{"an outage that is over", []gap{{from: at(106.5), to: at(107)}}, []*Outage{{Fault: at(100.5), Ready: at(101)}}, 0},
		{"an outage that has just ended", []gap{{from: at(106.5), to: at(107)}}, []*Outage{{Fault: at(104.5), Ready: at(106)}}, 3},
		{"a kill in an outage", []gap{{from: at(120), to: at(121), killed: true}}, []*Outage{{Fault: at(103.5), Ready: at(130)}}, 4},
	} {
		if got := h.inFlight(test.gone, test.outages); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestJudge_NamesEveryBar(t *testing.T) {
	w := &world{arena: &arena{}, lives: []life{{lifeStop, 9 * time.Second}, {lifeReload, 9 * time.Second}}}
	r := &Result{Lost: 1, Doubled: 2, DoubledAllowed: 1, First: 2, FirstAllowed: 1, Attempts: 5, AttemptsAllowed: 4, Connects: 1, Lines: 21}
	h := written(1, 2, 1, 2) // written at 100, 101, 102, 103
	h.result.Doubled, h.result.Stray = map[int64]int{1: 2, 2: 2}, 1
	w.judge(r, h)
	for i, part := range []string{
		"1 records are lost", "2 records are doubled, 1 may be; they were written first from 12:01:40.000 to 12:01:41.000, again from 12:01:42.000 to 12:01:43.000", "1 records were not expected", "2.00 s after ready (at ",
		"5 connection attempts", "1 connects", "21 warnings", "a stop took 9.0 s",
	} {
		if i >= len(r.Failures) || !strings.Contains(r.Failures[i], part) {
			t.Fatalf("failure %d of %q: want %q", i, r.Failures, part)
		}
	}
	good := &Result{Connects: -1, Lines: 20}
	(&world{arena: &arena{}}).judge(good, &harvest{result: &audit.Result{}})
	if len(good.Failures) > 0 {
		t.Errorf("a good run fails: %q", good.Failures)
	}
}

func TestCompare_SumsLivesAndAllowsForWhatNobodySaw(t *testing.T) {
	h := written(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) // written at 100, 101, …
	samples := []sample{
		{at: at(102.9), pid: 1, acknowledged: 3}, // then the agent is killed; 4 and 5 may not have been counted
		{at: at(104.5), pid: 2, acknowledged: 4, possible: 1},
		{at: at(108.9), pid: 2, acknowledged: 8, possible: 1},
	}
	for _, test := range []struct {
		name string
		last int
		want int
	}{{"as it should be", 5, 0}, {"more than there are", 8, 1}, {"too few", 1, 1}} {
		samples[2].acknowledged = test.last
		if test.last < 4 {
			samples[1].acknowledged = test.last
		}
		if wrong := compare(samples, h, at(120), false); len(wrong) != test.want {
			t.Errorf("%s: %q", test.name, wrong)
		}
	}
	samples[1].acknowledged, samples[2].acknowledged = 4, 5
	h.result.Doubled = map[int64]int{1: 2, 2: 2}
	if wrong := compare(samples, h, at(120), false); len(wrong) != 1 {
		t.Errorf("with copies that nobody told of: %q", wrong)
	}
	if wrong := compare(samples, h, at(120), true); len(wrong) != 0 {
		t.Errorf("with copies after a kill: %q", wrong)
	}
	if wrong := compare(nil, h, at(120), false); len(wrong) != 1 {
		t.Errorf("without samples: %q", wrong)
	}
}

func TestHarvest_AFaultThatStopsNothingIsNoticed(t *testing.T) {
	h := &harvest{}
	for _, second := range []float64{9, 10.5, 20, 22, 24, 26, 28} {
		h.deliveries = append(h.deliveries, delivery{appended: at(second)})
	}
	for _, test := range []struct {
		from, to, pause float64
		stopped         bool
	}{
		{10, 20, 9.5, true},
		{10, 28, 9.5, true},
		{18, 30, 2, false},
		{19, 23, 2, true}, // too short to tell
	} {
		pause, stopped := h.pause(&Outage{Fault: at(test.from), Back: at(test.to)})
		if pause.Seconds() != test.pause || stopped != test.stopped {
			t.Errorf("from %v to %v: %s, %t, want %v s, %t", test.from, test.to, pause, stopped, test.pause, test.stopped)
		}
	}
}

func TestMergeResults_ReplacesAndOrders(t *testing.T) {
	path := filepath.Join(t.TempDir(), resultsFile)
	for _, results := range [][]*Result{
		{{Run: "kill", Host: "fluent-bit"}, {Run: "stop-15s", Host: "chost"}, {Run: "gone", Host: "chost"}},
		{{Run: "kill", Host: "chost"}, {Run: "stop-15s", Host: "chost", Lost: 1}},
	} {
		if err := mergeResults(path, results); err != nil {
			t.Fatal(err)
		}
	}
	results, err := readResults(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		got = append(got, r.Run+"/"+r.Host)
	}
	if want := []string{"stop-15s/chost", "kill/chost", "kill/fluent-bit"}; !slices.Equal(got, want) || results[0].Lost != 1 {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPicture_IsSmallAndComplete(t *testing.T) {
	var many []time.Time
	for i := range 50_000 {
		many = append(many, at(float64(i)/100))
	}
	since := func(t time.Time) float64 { return t.Sub(noon).Seconds() }
	p := picture{
		title: "a run", logged: plotter.XYs{{}, {X: 500, Y: 50_000}}, appended: growth(many, since), end: 500,
		outages: []chart.Band{{Name: "fault", From: 100, To: 200}},
		spans:   []chart.Band{{Name: connecting, To: 1}, {Name: up, From: 1, To: 100}, {Name: down, From: 100, To: 200}, {Name: up, From: 200, To: 500}},
	}
	path := filepath.Join(t.TempDir(), "a.svg")
	if err := p.write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 60_000 {
		t.Errorf("it has %d bytes", len(text))
	}
	for _, part := range []string{"a run", "records", "seconds", "logged", "acknowledged", "connecting", "down", ">40,000<", ">100<"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%q is missing", part)
		}
	}
	if strings.Contains(string(text), degraded) {
		t.Error("its legend names a state that does not occur")
	}
}

func TestDocument_NamesWhatWasNotKept(t *testing.T) {
	text := document([]*Result{
		{Run: "kill", Host: "chost", Accepted: 12345, Exact: true},
		{Run: "agent-kill-up", Host: "fluent-bit", Accepted: 100, Doubled: 9, DoubledAllowed: 3, Late: 4, LateInChunk: 2, Failures: []string{"too many"}},
	})
	for _, part := range []string{
		"2 runs, 12,445 records logged: **0 lost**, **9 doubled** (3 in flight", "kept in 1 runs, and not in 1.",
		"| [kill](#kill) | the C host | 12,345 | 0 | 0 | 0, 0 |", "| Fluent Bit | 100 | 0 | 9 / 3 | 4, ≤ 2 |", "**not kept**",
		"- agent-kill-up in Fluent Bit: too many", "### kill\n", "(outage/kill.chost.svg)",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing", part)
		}
	}
	if strings.Contains(text, "### stop-15s") {
		t.Error("a run without a result has a picture")
	}
}

func TestDocument_IsCurrent(t *testing.T) {
	const path = "../../../docs/reliability.md"
	results, err := readResults("../../../docs/outage/" + resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := document(results)
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/reliability.md is not what its results say; run: make outage-docs")
	}
	for _, r := range results {
		if _, err := os.Stat("../../../docs/outage/" + r.pictureFile()); err != nil {
			t.Error(err)
		}
	}
}

package rig

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLog_WaitSeesWhatIsThereAndWhatComes(t *testing.T) {
	var l Log
	l.add("first")
	l.add("\x1b[1m[\x1b[0msecond\x1b[91m]\x1b[0m")
	line, err := l.Wait(t.Context(), 0, regexp.MustCompile(`second`))
	if err != nil || line.Text != "[second]" {
		t.Errorf("got %q, %v", line.Text, err)
	}
	go l.add("third")
	if _, err := l.Wait(t.Context(), 2, regexp.MustCompile(`third`)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.Wait(ctx, 1, regexp.MustCompile(`first`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a line from before the index was found: %v", err)
	}
	if got := l.Tail(2); got != "[second]\nthird" {
		t.Errorf("tail is %q", got)
	}
}

func TestLineWriter_CutsLines(t *testing.T) {
	var got []string
	w := &lineWriter{take: func(line string) { got = append(got, line) }}
	for _, text := range []string{"a", "b\nc\r\n", "\n", "half"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("write of %q: %d, %v", text, n, err)
		}
	}
	if want := []string{"ab", "c", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLog_Leak(t *testing.T) {
	var log Log
	log.add("nothing")
	log.add("password=geheim, as it was")
	if err := log.Leak([]string{"offen", "staple"}); err != nil {
		t.Error(err)
	}
	err := log.Leak([]string{"offen", "geheim"})
	if err == nil || err.Error() != "line 2 of the log holds secret 1" {
		t.Errorf("got %v", err)
	}
}

func TestTally_CountsOnceAndKnowsDoubt(t *testing.T) {
	tally := NewTally()
	first, last := tally.take(3)
	if first != 1 || last != 3 {
		t.Errorf("took %d to %d", first, last)
	}
	tally.accept(1, 2)
	tally.accept(2, 2)
	tally.doubt(2, 3)
	tally.accept(10, 11) // the host numbers by itself
	if n := tally.Accepted(); n != 4 {
		t.Errorf("accepted %d, want 4", n)
	}
	if got, want := slices.Sorted(tally.expected(Topic)), []int64{1, 2, 10, 11}; !slices.Equal(got, want) {
		t.Errorf("expected are %d, want %d", got, want)
	}
	if first, _ := tally.take(1); first != 12 {
		t.Errorf("the next number is %d, want 12", first)
	}
}

func TestTally_KnowsItsHistoryAndTheChunks(t *testing.T) {
	tally := NewTally()
	tally.accept(1, 2)
	tally.accept(2, 2)
	tally.accept(3, 5)
	var counts []int
	for _, m := range tally.History() {
		counts = append(counts, m.Accepted)
	}
	if !slices.Equal(counts, []int{2, 5}) {
		t.Errorf("the history is %d, want 2 and 5", counts)
	}
	tally.chunk(2, 3)
	if ends := tally.ChunkEnds(); ends != nil {
		t.Errorf("a chunk is unknown, and the ends are %d", ends)
	}
	tally.chunk(1, 2)
	tally.chunk(1, 2) // a retry
	if ends := tally.ChunkEnds(); !slices.Equal(ends, []int64{2, 5}) {
		t.Errorf("the ends are %d, want 2 and 5", ends)
	}
	tally.doubt(6, 7)
	if ends := tally.ChunkEnds(); ends != nil {
		t.Errorf("some records are in doubt, and the ends are %d", ends)
	}
}

func TestNames_PointMovesAName(t *testing.T) {
	names := &Names{hosts: t.TempDir() + "/hosts"}
	for _, addr := range []string{"127.0.0.2", "127.0.0.3"} {
		if err := names.Point("kafka.test", addr); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(names.hosts)
	if want := "127.0.0.1 localhost\n127.0.0.3 kafka.test\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v; want %q", text, err, want)
	}
}

func TestTally_KnowsWhereRecordsAreToArrive(t *testing.T) {
	tally := NewTally()
	tally.accept(1, 6)
	tally.send(1, 1, Topic)
	tally.send(2, 3, "other")
	tally.send(4, 4, Aside)
	for topic, want := range map[string][]int64{Topic: {1, 5, 6}, "other": {2, 3}, "a copy": {1, 5, 6}} {
		if got := slices.Sorted(tally.expected(topic)); !slices.Equal(got, want) {
			t.Errorf("in %s: %d, want %d", topic, got, want)
		}
	}
}

func TestShape_IsTheSameForBothHosts(t *testing.T) {
	s := Shape{Size: 20, Junk: true, Fields: map[string]string{"topic": "a b", "key": "k"}}
	if got, want := s.options(), ` size=20 junk "key=k" "topic=a b"`; got != want {
		t.Errorf("options %q, want %q", got, want)
	}
	if got, want := s.fields(), `,"key":"k","topic":"a b"`; got != want {
		t.Errorf("fields %q, want %q", got, want)
	}
	if got, want := s.text(7), "record 7 xxxxxxxxxxx"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got := (Shape{}).text(7); len(got) != plainSize {
		t.Errorf("a plain text has %d bytes", len(got))
	}
}

func TestFileLetters(t *testing.T) {
	path := t.TempDir() + "/dead.jsonl"
	if letters, err := FileLetters(path); err != nil || letters != nil {
		t.Errorf("a file that is not there: %v, %v", letters, err)
	}
	text := `{"time":"2026-03-01T12:00:00Z","kind":"too_large","code":10,"reason":"r","topic":"app","tag":"app","value":"{\"@timestamp\":1.0,\"seq\":12,\"log\":\"cut"}` +
		"\n" + `{"kind":"undecodable","value":"*"}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	letters, err := FileLetters(path)
	want := []Letter{{Kind: "too_large", Code: 10, Reason: "r", Topic: "app", Tag: "app", Number: 12}, {Kind: "undecodable"}}
	if err != nil || !slices.Equal(letters, want) {
		t.Errorf("%+v, %v; want %+v", letters, err, want)
	}
	if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FileLetters(path); err == nil {
		t.Error("half a line is no error")
	}
}

func TestResourcesOf_SeesASocket(t *testing.T) {
	before, err := ResourcesOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	after, err := ResourcesOf(os.Getpid())
	if err != nil || after.Sockets != before.Sockets+1 || after.Files <= before.Files || after.Threads < 1 || after.Memory < 1<<20 {
		t.Errorf("%v, %v; before: %v", after, err, before)
	}
	if before.Memory == 0 || before.Anonymous == 0 || before.Anonymous > before.Memory || after.Peak < before.Memory || after.CPU < before.CPU {
		t.Errorf("got %+v, then %+v", before, after)
	}
	if _, err := ResourcesOf(-1); err == nil {
		t.Error("no process is no error")
	}
}

func TestMetric_SumsTheSeriesWithTheLabels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE a_total counter\na_total{i=\"0\",class=\"x\"} 2\na_total{i=\"1\",class=\"x\"} 3\na_total{i=\"0\",class=\"y\"} 4\n# TYPE b gauge\nb 7\n")
	}))
	defer server.Close()
	addr := server.Listener.Addr().String()
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   float64
	}{
		{"a_total", nil, 9},
		{"a_total", map[string]string{"class": "x"}, 5},
		{"a_total", map[string]string{"class": "x", "i": "1"}, 3},
		{"a_total", map[string]string{"class": "z"}, 0},
		{"b", nil, 7},
	} {
		if got, err := Metric(t.Context(), addr, c.name, c.labels); err != nil || got != c.want {
			t.Errorf("%s%v: %v, %v; want %v", c.name, c.labels, got, err, c.want)
		}
	}
	if _, err := Metric(t.Context(), addr, "c", nil); err == nil {
		t.Error("no such metric is no error")
	}
}

func TestConf_Render(t *testing.T) {
	c := Conf{
		Service: "# mine\nGrace   9\nlog_file ${DIR}/x y\n",
		Outputs: "[OUTPUT]\n    Brokers ${BROKERS}\n    Secret ${TOKEN}\n",
		Vars:    map[string]string{"DIR": "/d", "BROKERS": "b:1"},
	}
	got, err := c.render("/store", map[string]string{"http_server": "on"}, "[INPUT]\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"    grace 9\n", "    log_file /d/x y\n", "    http_server on\n", "    storage.path /store\n",
		"\n[INPUT]\n", "    Brokers b:1\n", "    Secret ${TOKEN}\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "grace 5") {
		t.Error("the scenario's grace did not win")
	}
	c.YAML, c.Outputs = true, "- name: kafka_reconnect\n  brokers: ${BROKERS}\n"
	got, err = c.render("/store", nil, "[INPUT]\n    name http\n    tag app\n\n[INPUT]\n    name forward\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"service:\n", "\n  grace: \"9\"\n",
		"pipeline:\n  inputs:\n    - name: \"http\"\n      tag: \"app\"\n    - name: \"forward\"\n" +
			"  outputs:\n    - name: kafka_reconnect\n      brokers: b:1\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if _, err := (Conf{Service: "alone"}).render("", nil, ""); err == nil {
		t.Error("a key without a value is no error")
	}
}

func TestBuilt_SaysHowToBuild(t *testing.T) {
	_, err := Built(t.TempDir()+"/nothing.so", "build")
	if err == nil || !strings.Contains(err.Error(), "run: make build") {
		t.Errorf("got %v", err)
	}
	if _, err := Built(t.TempDir(), "build"); err == nil {
		t.Error("a folder is no error")
	}
}

func TestFindFluentBit_NamedAndUnusableIsAnError(t *testing.T) {
	t.Setenv("FLUENT_BIT", "/bin/true")
	if path, _, err := FindFluentBit(t.Context()); err == nil {
		t.Errorf("found %s", path)
	}
	t.Setenv("FLUENT_BIT", "/nonexistent")
	if path, _, err := FindFluentBit(t.Context()); err == nil {
		t.Errorf("found %s", path)
	}
	t.Setenv("FLUENT_BIT", "")
	t.Setenv("PATH", "")
	if path, _, err := FindFluentBit(t.Context()); path != "" || err != nil {
		t.Errorf("without any: %q, %v", path, err)
	}
}

func TestListening_TriesAPortInUseAgain(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	err = listening(func() error {
		if tries++; tries == 3 {
			_ = other.Close()
		}
		l, err := net.Listen("tcp", other.Addr().String())
		if err == nil {
			err = l.Close()
		}
		return err
	})
	if err != nil || tries != 3 {
		t.Errorf("%d tries: %v", tries, err)
	}
	if err := listening(func() error { tries++; return errors.ErrUnsupported }); err == nil || tries != 4 {
		t.Errorf("another error was tried again, %d tries: %v", tries, err)
	}
}

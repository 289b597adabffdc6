package flblog

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type fakeHost struct {
	mu    sync.Mutex
	lines []string
	min   slog.Level
}

func (h *fakeHost) Enabled(l slog.Level) bool { return l >= h.min }

func (h *fakeHost) Print(l slog.Level, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, l.String()+" "+text)
}

func (h *fakeHost) taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.lines
	h.lines = nil
	return out
}

func TestRelay_PrintsOnlyWhenDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{}
		r := NewRelay(h, "output:kafka_reconnect:kafka_reconnect.0")
		log := r.Logger().With("instance", 1)
		log.Warn("all brokers down", "reason", "network", "next_in", 1234567*time.Microsecond, "err", "a \"b\"")
		if got := h.taken(); got != nil {
			t.Fatalf("printed before a drain: %q", got)
		}
		r.Drain()
		want := `WARN [output:kafka_reconnect:kafka_reconnect.0] all brokers down instance=1 reason=network next_in=1.23s err="a \"b\""`
		if got := h.taken(); len(got) != 1 || got[0] != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestRelay_HidesWhatALibraryPrints(t *testing.T) {
	h := &fakeHost{}
	r := NewRelay(h, "x")
	log := r.Logger()
	log.Info("before geheimnis")
	r.Hide()
	r.Hide("geheimnis", "geheimnis in two parts", `with "quotes"`)
	log.Info("client geheimnis", "text", `u = geheimnis in two parts, with "quotes"`, "geheimnis", 1)
	log.Info("x", "long", strings.Repeat("x", maxLine-10)+"geheimnis")
	r.Drain()
	got := h.taken()
	want := []string{
		"INFO [x] before geheimnis",
		`INFO [x] client *** text="u = ***, ***" ***=1`,
		"INFO [x] x long=" + strings.Repeat("x", maxLine-10) + "***",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRelay_PrintsByItselfWhenTheHostIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{}
		r := NewRelay(h, "x")
		r.Logger().Info("one")
		time.Sleep(patience + time.Millisecond)
		synctest.Wait()
		// Bubbles begin at midnight, UTC, of the year 2000.
		want := "INFO [x] one at=" + time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Local().Format("15:04:05.000")
		if got := h.taken(); len(got) != 1 || got[0] != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestRelay_BoundsItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{}
		r := NewRelay(h, "x")
		log := r.Logger()
		for range maxQueued + 5 {
			log.Info("line")
		}
		r.Drain()
		got := h.taken()
		if len(got) != maxQueued+1 || !strings.Contains(got[len(got)-1], "5 log lines were dropped") {
			t.Fatalf("%d lines, last %q", len(got), got[len(got)-1])
		}
	})
}

func TestRelay_CutsLongLinesAndFollowsTheLevel(t *testing.T) {
	h := &fakeHost{min: slog.LevelInfo}
	r := NewRelay(h, "x")
	r.Logger().Debug("hidden")
	r.Logger().Info("long", "text", strings.Repeat("a", 2*maxLine))
	r.Close()
	got := h.taken()
	if len(got) != 1 || len(got[0]) > maxLine+20 {
		t.Fatalf("%d lines", len(got))
	}
	r.Logger().Info("after")
	if got := h.taken(); len(got) != 1 {
		t.Fatalf("a line after Close must go out at once, got %q", got)
	}
}

// A hot reload: what comes up between two pipelines is printed by the next one.
func TestRelay_KeepsLinesWhileThereIsNoHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &fakeHost{}, &fakeHost{}
		r := NewRelay(first, "one")
		log := r.Logger()
		log.Info("before")
		r.Unbind()
		if got := first.taken(); len(got) != 1 {
			t.Fatalf("the ending host got %q", got)
		}
		log.Info("between")
		log.Debug("not worth keeping")
		r.Drain()
		time.Sleep(time.Minute)
		r.Bind(second, "two")
		time.Sleep(patience + time.Millisecond)
		synctest.Wait()
		if got := second.taken(); len(got) != 1 || !strings.HasPrefix(got[0], "INFO [two] between at=") {
			t.Fatalf("the next host got %q", got)
		}
		if got := first.taken(); got != nil {
			t.Fatalf("the ended host got %q", got)
		}
	})
}

// The process ends without another pipeline: what came up since is not lost.
func TestRelay_ClosedWithoutAHostPrintsToStandardError(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = before }()
	h := &fakeHost{}
	r := NewRelay(h, "x")
	r.Unbind()
	r.Logger().Warn("queued")
	r.Logger().Debug("not worth it")
	r.Close()
	r.Logger().Info("after")
	r.Logger().Debug("not worth it either")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "] [ warn] [x] queued") || !strings.HasSuffix(lines[1], "] [ info] [x] after") {
		t.Errorf("standard error: %q", lines)
	}
	if got := h.taken(); got != nil {
		t.Errorf("the ended host got %q", got)
	}
}

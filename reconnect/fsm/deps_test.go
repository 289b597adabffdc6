package fsm

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed are the packages that this one may import itself.
var allowed = []string{"errors", "fmt", "strconv", "strings", "time"}

// banned are packages that must not even be reached through others, with the reason.
// Packages that fmt itself brings (os, sync, reflect) can't be banned this way; importing
// them here is refused by the list above.
var banned = map[string]string{
	"net":                           "the machine decides about connections and makes none",
	"net/http":                      "the machine serves nothing",
	"log":                           "the driver logs, from what the machine returns",
	"log/slog":                      "the driver logs, from what the machine returns",
	"math/rand":                     "chance comes in through Config.Rand, so that a seed replays a run",
	"math/rand/v2":                  "chance comes in through Config.Rand, so that a seed replays a run",
	"os/exec":                       "the machine starts nothing",
	"os/signal":                     "signals belong to the host program",
	"context":                       "nothing here waits, so nothing can be cancelled",
	"runtime/cgo":                   "CGO_ENABLED=0 must be able to build and test the machine",
	"C":                             "CGO_ENABLED=0 must be able to build and test the machine",
	"out_kafka_reconnect/reconnect": "the driver imports the machine, not the other way round",
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

func TestDeps(t *testing.T) {
	deps := goList(t, "-deps", ".")
	if !slices.Contains(deps, "time") {
		t.Fatalf("go list shows no time package: %v", deps)
	}
	for _, d := range deps {
		if reason, bad := banned[d]; bad {
			t.Errorf("fsm depends on %s: %s", d, reason)
		}
	}
	imports := goList(t, "-f", `{{join .Imports "\n"}}`, ".")
	for _, i := range imports {
		if !slices.Contains(allowed, i) {
			t.Errorf("fsm imports %s, which is not on the short list %v", i, allowed)
		}
	}
	for _, a := range allowed {
		if !slices.Contains(imports, a) {
			t.Errorf("%s is allowed and not used: shorten the list", a)
		}
	}
}

// Only Duration of package time may be used: a clock or a timer would end replay.
func TestDeps_NoClock(t *testing.T) {
	for _, f := range goList(t, "-f", `{{join .GoFiles "\n"}}`, ".") {
		out, err := exec.Command("grep", "-nE", `time\.(Now|Since|Until|After|AfterFunc|NewTimer|NewTicker|Tick|Sleep)\b`, f).Output()
		if err == nil {
			t.Errorf("%s uses a clock:\n%s", f, out)
		}
	}
}

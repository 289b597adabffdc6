package config

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzDuration: no panic, what is accepted reads back the same, no bare number passes.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"100ms", "1m30s", "4m0s", "1h", "0", "0s", "-5s", "5", "1e3", " 2S ", ".5s", "1d", "inf", "9999999h", "µs", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDuration(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "has no unit") && !errors.Is(err, errDuration) {
				t.Errorf("%q: unexpected text %q", text, err)
			}
			return
		}
		if _, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			t.Errorf("the bare number %q is accepted as %v", text, d)
		}
		again, err := parseDuration(formatDuration(d))
		if err != nil || again != d {
			t.Errorf("%q: %v is written %q and reads back as %v, %v", text, d, formatDuration(d), again, err)
		}
	})
}

// FuzzSize: no panic, never negative, what is accepted reads back the same.
func FuzzSize(f *testing.F) {
	for _, s := range []string{"64MiB", "500MB", "1k", "7", "0", "1 G", "9223372036854775807", "9223372036GB", "-1", "1.5M", "MiB", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseSize(text)
		if err != nil {
			return
		}
		if n < 0 {
			t.Errorf("%q is read as %d", text, n)
		}
		again, err := parseSize(formatSize(n))
		if err != nil || again != n {
			t.Errorf("%q: %d is written %q and reads back as %d, %v", text, n, formatSize(n), again, err)
		}
	})
}

// FuzzCatchAll: what is escaped as documented comes back as it was.
func FuzzCatchAll(f *testing.F) {
	f.Add("a", "b")
	f.Add(`x\`, `,\,`)
	f.Fuzz(func(t *testing.T, a, b string) {
		escape := strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace
		got := splitItems(escape(a) + "," + escape(b))
		if len(got) != 2 || got[0] != strings.TrimSpace(a) || got[1] != strings.TrimSpace(b) {
			t.Errorf("%q and %q come back as %q", a, b, got)
		}
		_, _ = Decode(minimal.with("rdkafka_options", a), nil) // must not panic
	})
}

// FuzzCommon: of a text around a secret the text remains, and nothing of the secret.
func FuzzCommon(f *testing.F) {
	f.Add(`Invalid value "`, "geheim", `" for "x"`)
	f.Add("kafka", "kafka", "kafka")
	f.Fuzz(func(t *testing.T, front, secret, back string) {
		if strings.Contains(front+secret+back, otherText) {
			t.Skip()
		}
		if got, want := common(front+secret+back, front+otherText+back), front+hidden+back; got != want {
			t.Errorf("common around %q = %q, want %q", secret, got, want)
		}
	})
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 50 * time.Millisecond: "50ms", time.Minute: "1m", 4 * time.Minute: "4m", time.Hour: "1h",
		90 * time.Second: "1m30s", 10 * time.Second: "10s", 10 * time.Minute: "10m", 7 * 24 * time.Hour: "168h",
		time.Hour + 10*time.Second: "1h0m10s", 2*time.Hour + 30*time.Minute: "2h30m",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%d) = %s, want %s", d, got, want)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1: "1B", 1000: "1KB", 1024: "1KiB", 64 << 20: "64MiB", 500e6: "500MB", 1 << 30: "1GiB", 1e9: "1GB", 1025: "1025B",
	} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %s, want %s", n, got, want)
		}
	}
}

package format

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/plugin/chunk"
)

func timeText(t *testing.T, j *JSON, sec int64, nsec int32) string {
	t.Helper()
	value, err := j.AppendValue(nil, &chunk.Entry{Body: []byte{0x80}, Sec: sec, Nsec: nsec})
	if err != nil || !json.Valid(value) {
		t.Fatalf("value %s, %v", value, err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(value), `{"t":`), "}")
}

func TestTimestamp(t *testing.T) {
	tests := []struct {
		sec                 int64
		nsec                int32
		double, iso, isoAll string
	}{
		{1700000000, 123456789, "1700000000.123457", `"2023-11-14T22:13:20.123456Z"`, `"2023-11-14T22:13:20.123456789Z"`},
		{1700000000, 0, "1700000000.0", `"2023-11-14T22:13:20.000000Z"`, `"2023-11-14T22:13:20.000000000Z"`},
		{1700000000, 500000000, "1700000000.5", `"2023-11-14T22:13:20.500000Z"`, `"2023-11-14T22:13:20.500000000Z"`},
		{1700000000, 1000, "1700000000.000001", `"2023-11-14T22:13:20.000001Z"`, `"2023-11-14T22:13:20.000001000Z"`},
		{1700000000, 1, "1700000000.0", `"2023-11-14T22:13:20.000000Z"`, `"2023-11-14T22:13:20.000000001Z"`},
		{1700000000, 120000, "1700000000.00012", `"2023-11-14T22:13:20.000120Z"`, `"2023-11-14T22:13:20.000120000Z"`},
		{1700000000, 999999999, "1700000001.0", `"2023-11-14T22:13:20.999999Z"`, `"2023-11-14T22:13:20.999999999Z"`},
		{1700000000, 999999760, "1700000001.0", `"2023-11-14T22:13:20.999999Z"`, `"2023-11-14T22:13:20.999999760Z"`},
		{0, 0, "0.0", `"1970-01-01T00:00:00.000000Z"`, `"1970-01-01T00:00:00.000000000Z"`},
		{0, 1000, "0.000001", `"1970-01-01T00:00:00.000001Z"`, `"1970-01-01T00:00:00.000001000Z"`},
		{5, 123456789, "5.123456789", `"1970-01-01T00:00:05.123456Z"`, `"1970-01-01T00:00:05.123456789Z"`},
		{999999999, 250000000, "999999999.25", `"2001-09-09T01:46:39.250000Z"`, `"2001-09-09T01:46:39.250000000Z"`},
		{4294967295, 0, "4294967295.0", `"2106-02-07T06:28:15.000000Z"`, `"2106-02-07T06:28:15.000000000Z"`},
		{253402300799, 500000000, "253402300799.5", `"9999-12-31T23:59:59.500000Z"`, `"9999-12-31T23:59:59.500000000Z"`},
		// No walker gives these.
		{-1, 0, "-1.0", `"1969-12-31T23:59:59.000000Z"`, `"1969-12-31T23:59:59.000000000Z"`},
		{1700000000, 1500000000, "1700000001.5", `"2023-11-14T22:13:21.500000Z"`, `"2023-11-14T22:13:21.500000000Z"`},
		{1700000000, -500000000, "1699999999.5", `"2023-11-14T22:13:19.500000Z"`, `"2023-11-14T22:13:19.500000000Z"`},
	}
	formats := []*JSON{NewJSON(JSONConfig{TimestampKey: "t", TimestampFormat: TimestampDouble}), NewJSON(JSONConfig{TimestampKey: "t", TimestampFormat: TimestampISO8601}), NewJSON(JSONConfig{TimestampKey: "t", TimestampFormat: TimestampISO8601NS})}
	// Twice, so that each second is met both with and without its kept text.
	for range 2 {
		for _, tt := range tests {
			for i, want := range []string{tt.double, tt.iso, tt.isoAll} {
				for range 2 {
					if got := timeText(t, formats[i], tt.sec, tt.nsec); got != want {
						t.Errorf("%v of %d s %d ns = %s; want %s", TimestampFormat(i), tt.sec, tt.nsec, got, want)
					}
				}
			}
		}
	}
	for _, j := range formats {
		for _, sec := range []int64{math.MinInt64, math.MaxInt64} {
			timeText(t, j, sec, math.MaxInt32)
		}
	}
}

// The double is computed without floats; C's %.16g, which strconv does as well, is the
// measure. Ours keeps the ".0" of a number that becomes whole by rounding.
func TestTimestamp_DoubleAsPrintf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	j := NewJSON(JSONConfig{TimestampKey: "t", TimestampFormat: TimestampDouble})
	for i := range 100_000 {
		sec, nsec := int64(1e9)+rng.Int64N(9e9), rng.Int32N(1e9)
		switch i % 3 {
		case 1:
			sec = 1700000000
		case 2:
			// Halves of a microsecond are where the rounding can go wrong.
			nsec = rng.Int32N(1e6)*1000 + 500
		}
		want := strconv.FormatFloat(float64(sec)+float64(nsec)/1e9, 'g', 16, 64)
		if !strings.Contains(want, ".") {
			want += ".0"
		}
		if got := timeText(t, j, sec, nsec); got != want {
			t.Fatalf("%d s %d ns = %s; want %s", sec, nsec, got, want)
		}
	}
}

func TestTimestamp_RandomDates(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	j := NewJSON(JSONConfig{TimestampKey: "t", TimestampFormat: TimestampISO8601NS})
	for range 10_000 {
		sec, nsec := rng.Int64N(253402300800), rng.Int32N(1e9)
		want := time.Unix(sec, int64(nsec)).UTC().Format(`"2006-01-02T15:04:05.000000000Z"`)
		if got := timeText(t, j, sec, nsec); got != want {
			t.Fatalf("%d s %d ns = %s; want %s", sec, nsec, got, want)
		}
	}
}

func TestTimestampFormat_Names(t *testing.T) {
	for _, f := range []TimestampFormat{TimestampDouble, TimestampISO8601, TimestampISO8601NS} {
		if got, err := ParseTimestampFormat(f.String()); got != f || err != nil {
			t.Errorf("ParseTimestampFormat(%q) = %v, %v", f, got, err)
		}
	}
	if _, err := ParseTimestampFormat("epoch"); err == nil || !strings.Contains(err.Error(), `"epoch"`) {
		t.Errorf("ParseTimestampFormat: %v; want an error that names the value", err)
	}
	if got := TimestampFormat(9).String(); got != "TimestampFormat(9)" {
		t.Errorf("String = %q", got)
	}
}

func TestNewJSON_KeyIsEscaped(t *testing.T) {
	j := NewJSON(JSONConfig{TimestampKey: "a\"b\n日", TimestampFormat: TimestampDouble})
	got, err := j.AppendValue(nil, record(fields(str("a\"b\n日"), num(1), str("c"), num(2))))
	if want := `{"a\"b\n日":1,"c":2}`; err != nil || string(got) != want {
		t.Errorf("value %s, %v; want %s", got, err, want)
	}
}

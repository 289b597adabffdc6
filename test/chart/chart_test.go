package chart

import "testing"

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestTenths(t *testing.T) {
	for v, want := range map[float64]string{-0.04: "0.0", -0.05: "-0.1", 7: "7.0", 0.96: "1.0"} {
		if got := Tenths(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	values := []float64{3, 1, 2, 9}
	if got := Median(values); got != 3 || values[0] != 3 {
		t.Errorf("%v of %v", got, values)
	}
}

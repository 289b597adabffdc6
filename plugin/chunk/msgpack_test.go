package chunk

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestReadHead(t *testing.T) {
	bits := math.Float64bits
	neg := func(v int64) uint64 { return uint64(v) }
	pad := strings.Repeat("x", 70000)
	tests := []struct {
		name string
		in   string
		want Head
		next int
	}{
		{"fixint", "\x7f", Head{Type: Uint, N: 127}, 1},
		{"negative fixint", "\xe0", Head{Type: Int, N: neg(-32)}, 1},
		{"nil", "\xc0", Head{Type: Nil}, 1},
		{"false", "\xc2", Head{Type: Bool}, 1},
		{"true", "\xc3", Head{Type: Bool, N: 1}, 1},
		{"uint8", "\xcc\xff", Head{Type: Uint, N: 255}, 2},
		{"uint16", "\xcd\xff\x01", Head{Type: Uint, N: 0xff01}, 3},
		{"uint32", "\xce\xff\x00\x00\x01", Head{Type: Uint, N: 0xff000001}, 5},
		{"uint64", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", Head{Type: Uint, N: math.MaxUint64}, 9},
		{"int8", "\xd0\x80", Head{Type: Int, N: neg(-128)}, 2},
		{"int8 not negative", "\xd0\x7f", Head{Type: Uint, N: 127}, 2},
		{"int16", "\xd1\x80\x00", Head{Type: Int, N: neg(-32768)}, 3},
		{"int32", "\xd2\x80\x00\x00\x00", Head{Type: Int, N: neg(-2147483648)}, 5},
		{"int64", "\xd3\x80\x00\x00\x00\x00\x00\x00\x00", Head{Type: Int, N: neg(math.MinInt64)}, 9},
		{"float32", "\xca\x3f\xc0\x00\x00", Head{Type: Float, N: bits(1.5)}, 5},
		{"float64", "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", Head{Type: Float, N: bits(1.5)}, 9},
		{"fixstr", "\xa2ab", Head{Type: Str, N: 2}, 1},
		{"str8", "\xd9\x02ab", Head{Type: Str, N: 2}, 2},
		{"str16", "\xda\x00\x02ab", Head{Type: Str, N: 2}, 3},
		{"str32", "\xdb\x00\x01\x11\x70" + pad, Head{Type: Str, N: 70000}, 5},
		{"bin8", "\xc4\x02ab", Head{Type: Bin, N: 2}, 2},
		{"bin16", "\xc5\x00\x02ab", Head{Type: Bin, N: 2}, 3},
		{"bin32", "\xc6\x00\x00\x00\x02ab", Head{Type: Bin, N: 2}, 5},
		{"ext8", "\xc7\x02\xffab", Head{Type: Ext, N: 2, ExtType: -1}, 3},
		{"ext16", "\xc8\x00\x02\x05ab", Head{Type: Ext, N: 2, ExtType: 5}, 4},
		{"ext32", "\xc9\x00\x00\x00\x02\x05ab", Head{Type: Ext, N: 2, ExtType: 5}, 6},
		{"ext8 empty", "\xc7\x00\x05", Head{Type: Ext, ExtType: 5}, 3},
		{"fixext1", "\xd4\x05a", Head{Type: Ext, N: 1, ExtType: 5}, 2},
		{"fixext16", "\xd8\x05" + pad[:16], Head{Type: Ext, N: 16, ExtType: 5}, 2},
		{"fixarray", "\x91\x00", Head{Type: Array, N: 1}, 1},
		{"array16", "\xdc\x00\x02\x00\x00", Head{Type: Array, N: 2}, 3},
		{"array32", "\xdd\x00\x00\x00\x02\x00\x00", Head{Type: Array, N: 2}, 5},
		{"fixmap", "\x81\x00\x00", Head{Type: Map, N: 1}, 1},
		{"map16", "\xde\x00\x01\x00\x00", Head{Type: Map, N: 1}, 3},
		{"map32", "\xdf\x00\x00\x00\x01\x00\x00", Head{Type: Map, N: 1}, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := []byte("\xc0" + tt.in)
			h, next := ReadHead(b, 1)
			if h != tt.want || next != tt.next+1 {
				t.Errorf("ReadHead = %+v, %d; want %+v, %d", h, next, tt.want, tt.next+1)
			}
			end, err := Skip(b, 1)
			if err != nil || end != len(b) {
				t.Errorf("Skip = %d, %v; want %d", end, err, len(b))
			}
			// Every shorter form must be refused and not read past its end.
			for n := 1; n < len(b); n += max(1, len(b)/100) {
				cut := b[:n:n]
				if _, err := Skip(cut, 1); !errors.Is(err, ErrTruncated) {
					t.Errorf("Skip of the first %d bytes: %v; want ErrTruncated", n, err)
				}
				if h, _ := ReadHead(cut, 1); h.Type != Invalid && n < next {
					t.Errorf("ReadHead of the first %d bytes = %+v; want Invalid", n, h)
				}
			}
		})
	}
}

func TestReadHead_RefusesWhatTheBytesCannotHold(t *testing.T) {
	tests := []struct {
		name, in string
		want     error
	}{
		{"nothing", "", ErrTruncated},
		{"reserved", "\xc1", ErrReserved},
		{"array32 of four billion", "\xdd\xff\xff\xff\xff\x00", ErrTruncated},
		{"map32 of four billion", "\xdf\xff\xff\xff\xff\x00\x00", ErrTruncated},
		{"map of one without a value", "\x81\x00", ErrTruncated},
		{"str32 of four billion", "\xdb\xff\xff\xff\xffab", ErrTruncated},
		{"ext32 of four billion", "\xc9\xff\xff\xff\xff\x00ab", ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := []byte(tt.in)
			if h, _ := ReadHead(b, 0); h.Type != Invalid {
				t.Errorf("ReadHead = %+v; want Invalid", h)
			}
			if err := HeadError(b, 0); !errors.Is(err, tt.want) {
				t.Errorf("HeadError = %v; want %v", err, tt.want)
			}
			if _, err := Skip(b, 0); !errors.Is(err, tt.want) {
				t.Errorf("Skip: %v; want %v", err, tt.want)
			}
		})
	}
}

func TestSkip_Insides(t *testing.T) {
	tests := []struct {
		name, in string
		end      int
		want     error
	}{
		{"nested", "\x92\x81\xa1a\x92\x01\x02\xc4\x01x\x07", 10, nil},
		{"reserved inside", "\x92\x01\xc1", 0, ErrReserved},
		{"truncated inside", "\x92\x01\xa5ab", 0, ErrTruncated},
		{"element missing", "\x92\x01", 0, ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			end, err := Skip([]byte(tt.in), 0)
			if !errors.Is(err, tt.want) || err == nil && end != tt.end {
				t.Errorf("Skip = %d, %v; want %d, %v", end, err, tt.end, tt.want)
			}
		})
	}
}

// A reader that descends would need a stack frame for each of these levels, and one
// that trusts lengths would count to 2^64.
func TestSkip_DeepAndHostile(t *testing.T) {
	const levels = 5_000_000
	deep := []byte(strings.Repeat("\x91", levels) + "\x01")
	if end, err := Skip(deep, 0); err != nil || end != len(deep) {
		t.Errorf("Skip = %d, %v; want %d", end, err, len(deep))
	}
	if _, err := Skip(deep[:levels], 0); !errors.Is(err, ErrTruncated) {
		t.Errorf("Skip without the innermost value: %v; want ErrTruncated", err)
	}
	for _, head := range []string{"\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff"} {
		if _, err := Skip([]byte(strings.Repeat(head, 1_000_000)), 0); !errors.Is(err, ErrTruncated) {
			t.Errorf("Skip of nested %x: %v; want ErrTruncated", head, err)
		}
	}
}

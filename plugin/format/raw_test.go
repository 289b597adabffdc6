package format

import (
	"errors"
	"testing"

	"out_kafka_reconnect/plugin/chunk"
)

func TestRaw(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		want string
		err  error
	}{
		{"text", fields(str("a"), num(1), str("log"), str("line \"\\ \n\xff")), "line \"\\ \n\xff", nil},
		{"empty", fields(str("log"), str("")), "", nil},
		{"first text decides", fields(str("log"), num(1), str("log"), str("x"), str("log"), str("y")), "x", nil},
		{"key as bin", fields(bin("log"), str("x")), "x", nil},
		{"missing", fields(str("a"), str("log")), "", ErrNoRawField},
		{"no fields", fields(), "", ErrNoRawField},
		{"number", fields(str("log"), num(1)), "", ErrNoRawField},
		{"binary", fields(str("log"), bin("x")), "", ErrNoRawField},
		{"map", fields(str("log"), string(fields(str("log"), str("x")))), "", ErrNoRawField},
		{"nested", fields(str("a"), string(fields(str("log"), str("x")))), "", ErrNoRawField},
		{"key that is no text", fields("\xc0", str("x")), "", ErrNoRawField},
		{"no map", []byte("\x90"), "", errNotMap},
		{"cut off", []byte("\x81\xa1a\xa5ab"), "", chunk.ErrTruncated},
	}
	r := NewRaw("log")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := r.AppendValue([]byte("before"), record(tt.in))
			if !errors.Is(err, tt.err) || string(got) != "before"+tt.want {
				t.Errorf("%q, %v; want before%q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// FuzzRaw feeds any bytes as a body.
func FuzzRaw(f *testing.F) {
	f.Add([]byte(fields(str("log"), str("x"))))
	f.Add([]byte("\x81\xa3log\xdb\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:len(in):len(in)]
		got, err := NewRaw("log").AppendValue([]byte("before"), record(in))
		if string(got[:6]) != "before" || err != nil && len(got) != 6 {
			t.Errorf("body %x: %q, %v", in, got, err)
		}
	})
}

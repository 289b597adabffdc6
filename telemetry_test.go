package main

import (
	"testing"
	"unsafe"

	"out_kafka_reconnect/plugin/chunk"
)

// This program is a host that has none of the functions.
func TestRegisterEvents_LeavesAnOlderHostAlone(t *testing.T) {
	var def [8]uint64
	for i := range def {
		def[i] = 0xb5b5b5b5b5b5b5b5
	}
	before := def
	registerEvents(unsafe.Pointer(&def))
	if def != before || allEvents.Load() {
		t.Errorf("%x, all events %v", def, allEvents.Load())
	}
}

func TestHostTelemetry_WithoutTheFunctions(t *testing.T) {
	for _, s := range []chunk.Signal{chunk.Metrics, chunk.Traces} {
		out, next, err := hostTelemetry{}.AppendOTLP([]byte("x"), s, []byte("\x81\x01\x02"), 1)
		if string(out) != "x" || next != 1 || err == nil {
			t.Errorf("%v: %q, %d, %v", s, out, next, err)
		}
	}
}

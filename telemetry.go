package main

// #include "telemetry.h"
import "C"

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"out_kafka_reconnect/plugin/chunk"
)

// allEvents tells that the host sends metrics and traces beside logs.
var allEvents atomic.Bool

// registerEvents has the host send us all that it can, if it knows a way to ask for that.
func registerEvents(def unsafe.Pointer) {
	allEvents.Store(C.okr_register_events(def) != 0)
}

// hostTelemetry reads metrics and traces with the host's own functions, whose memory it gives back.
// They need more stack than a flush has: it is not used on the thread of one.
type hostTelemetry struct{}

var (
	errContextRead  = errors.New("fluent bit can't read the metrics or traces")
	errContextWrite = errors.New("fluent bit can't write the metrics or traces as OTLP")
)

// AppendOTLP implements plugin.Telemetry.
func (hostTelemetry) AppendOTLP(dst []byte, s chunk.Signal, data []byte, at int) (out []byte, next int, err error) {
	event := C.int(C.OKR_EVENT_TRACES)
	if s == chunk.Metrics {
		event = C.OKR_EVENT_METRICS
	}
	position, length := C.size_t(at), C.size_t(0)
	message := C.okr_otlp(event, (*C.char)(unsafe.Pointer(unsafe.SliceData(data))), C.size_t(len(data)), &position, &length)
	next = int(position)
	switch {
	case message != nil:
		defer C.okr_otlp_free(event, message)
		return append(dst, unsafe.Slice((*byte)(unsafe.Pointer(message)), int(length))...), next, nil
	case next == at:
		return dst, next, errContextRead
	}
	return dst, next, errContextWrite
}

// Command out_kafka_reconnect is a Fluent Bit output plugin that writes logs to Apache
// Kafka and loses nothing when Kafka goes away. It is built as a shared library; this
// file holds the functions that Fluent Bit calls. They convert arguments and recover
// from panics; the decisions are in packages plugin and reconnect.
package main

// #include "host.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/fluent/fluent-bit-go/output"

	"out_kafka_reconnect/plugin"
)

const (
	pluginName        = "kafka_reconnect"
	pluginDescription = "Apache Kafka, with a reconnect supervisor: loses nothing in an outage"
)

// The build fails when our results have other numbers than the host's.
var (
	_ = [1]struct{}{}[plugin.Error-output.FLB_ERROR]
	_ = [1]struct{}{}[plugin.OK-output.FLB_OK]
	_ = [1]struct{}{}[plugin.Retry-output.FLB_RETRY]
)

var (
	// instances are those that Fluent Bit has made and not ended yet.
	instances plugin.Registry
	// reloading tells that the exit to come belongs to a hot reload.
	reloading atomic.Bool
	// hotReload tells that Fluent Bit runs with hot reload enabled.
	hotReload atomic.Bool
	// closeAtExit has what is parked closed at the end of the process.
	closeAtExit sync.Once
)

func main() {}

// FLBPluginPreRegister is called after loading; hot is 1 when a hot reload loads anew.
//
//export FLBPluginPreRegister
func FLBPluginPreRegister(hot C.int) (r C.int) {
	defer recovered(&r, plugin.Error)
	reloading.Store(hot == 1)
	if hot == 1 {
		instances.ExpectReload()
	}
	return 0
}

// FLBPluginRegister names the plugin, and says what it takes.
//
//export FLBPluginRegister
func FLBPluginRegister(def unsafe.Pointer) (r C.int) {
	defer recovered(&r, plugin.Error)
	registerEvents(def)
	return C.int(output.FLBPluginRegister(def, pluginName, pluginDescription))
}

// okr_init makes the instance of one [OUTPUT] section; FLBPluginInit in host.c calls it.
//
//export okr_init
func okr_init(p unsafe.Pointer) (r C.int) {
	defer recovered(&r, plugin.Error)
	setMemory()
	in, err := open(p)
	if err != nil {
		return C.int(plugin.Error)
	}
	trimSoon()
	C.okr_host_set_context(p, C.uintptr_t(instances.Add(in)))
	return C.int(plugin.OK)
}

// FLBPluginOutputPreRun is called once for each instance when all outputs are made.
//
//export FLBPluginOutputPreRun
func FLBPluginOutputPreRun(hotReloadEnabled C.int) (r C.int) {
	defer recovered(&r, plugin.Error)
	hotReload.Store(hotReloadEnabled != 0)
	if hotReloadEnabled != 0 {
		adviseReload()
	}
	return 0
}

// FLBPluginFlushCtx delivers one chunk.
//
//export FLBPluginFlushCtx
func FLBPluginFlushCtx(ctx, data unsafe.Pointer, length C.int, tag *C.char) (r C.int) {
	defer recovered(&r, plugin.Retry)
	in, ok := instances.Get(uintptr(ctx))
	if !ok {
		return C.int(plugin.Retry)
	}
	return C.int(flush(in, chunkBytes(data, length), tagText(tag)))
}

// FLBPluginFlush is what a host without contexts calls; there can be one instance then.
//
//export FLBPluginFlush
func FLBPluginFlush(data unsafe.Pointer, length C.int, tag *C.char) (r C.int) {
	defer recovered(&r, plugin.Retry)
	in, ok := instances.Only()
	if !ok {
		return C.int(plugin.Retry)
	}
	return C.int(flush(in, chunkBytes(data, length), tagText(tag)))
}

// FLBPluginOutputPreExit is called before the exits; byReload is 1 for a hot reload.
//
//export FLBPluginOutputPreExit
func FLBPluginOutputPreExit(byReload C.int) (r C.int) {
	defer recovered(&r, plugin.Error)
	reloading.Store(byReload == 1)
	if byReload == 1 {
		closeAtExit.Do(func() { C.okr_host_close_at_exit() })
	}
	return 0
}

// okr_close_parked is called by host.c when the process ends. After a refused reload Fluent Bit
// says "by reload" at a stop too, and no section comes back.
//
//export okr_close_parked
func okr_close_parked() {
	defer recovered(new(C.int), plugin.OK)
	instances.CloseParked()
}

// FLBPluginExitCtx ends one instance. The context is NULL for one that was never made.
//
//export FLBPluginExitCtx
func FLBPluginExitCtx(ctx unsafe.Pointer) (r C.int) {
	defer recovered(&r, plugin.OK)
	instances.End(uintptr(ctx), reloading.Load())
	return C.int(plugin.OK)
}

// FLBPluginExit ends what is left.
//
//export FLBPluginExit
func FLBPluginExit() (r C.int) {
	defer recovered(&r, plugin.OK)
	instances.CloseAll()
	return C.int(plugin.OK)
}

// okr_unregister releases what FLBPluginRegister made; FLBPluginUnregister in host.c calls it.
//
//export okr_unregister
func okr_unregister(def unsafe.Pointer) {
	defer recovered(new(C.int), plugin.OK)
	output.FLBPluginUnregister(def)
}

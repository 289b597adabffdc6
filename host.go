package main

// #include <stdlib.h>
// #include <string.h>
// #include "host.h"
import "C"

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/fluent/fluent-bit-go/output"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/internal/version"
	"out_kafka_reconnect/plugin"
	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/mskiam"
	"out_kafka_reconnect/reconnect/rdkafka"
)

// hostLog is Fluent Bit's log for one instance.
type hostLog struct {
	api      *C.okr_host_api
	instance *C.struct_flb_output_instance
}

// lastLog is the log of the newest instance, for what belongs to none.
var lastLog atomic.Pointer[slog.Logger]

// Enabled asks the host, which knows the level of the instance and of the service.
func (h hostLog) Enabled(level slog.Level) bool {
	return C.okr_host_log_check(h.api, h.instance, hostLevel(level)) != 0
}

// Print writes one line through the host.
func (h hostLog) Print(level slog.Level, line string) {
	text := C.CString(line)
	defer C.free(unsafe.Pointer(text))
	C.okr_host_log(h.api, hostLevel(level), text)
}

func hostLevel(l slog.Level) C.int {
	switch {
	case l >= slog.LevelError:
		return C.OKR_LOG_ERROR
	case l >= slog.LevelWarn:
		return C.OKR_LOG_WARN
	case l >= slog.LevelInfo:
		return C.OKR_LOG_INFO
	case l >= slog.LevelDebug:
		return C.OKR_LOG_DEBUG
	default:
		return C.OKR_LOG_TRACE
	}
}

// librdkafka is the configuration's view of the client binding.
type librdkafka struct{}

func (librdkafka) CheckProperty(name, value string) error { return rdkafka.CheckProperty(name, value) }
func (librdkafka) CheckFile(name, path string) error      { return rdkafka.CheckFile(name, path) }
func (librdkafka) Features() string                       { return rdkafka.Features() }

// open makes an instance of the section that Fluent Bit is initialising. It logs why when
// it can't: the host's own line says only that.
func open(p unsafe.Pointer) (*plugin.Instance, error) {
	host := (*C.okr_host_plugin)(p)
	// The plugin structure is shared by all instances and rewritten at each call, so both
	// pointers are taken now.
	hostLog := hostLog{host.api, host.instance}
	name := fmt.Sprintf("%s.%d", pluginName, instances.Number())
	prefix := "output:" + pluginName + ":" + name
	relay := flblog.NewRelay(hostLog, prefix)
	log := relay.Logger()
	defer relay.Drain()
	lastLog.Store(log)
	cfg, err := config.Decode(config.GetterFunc(func(name string) string {
		return output.FLBPluginConfigKey(p, name)
	}), librdkafka{})
	if err != nil {
		refuse(log, err)
		return nil, err
	}
	relay.Hide(cfg.Concealed()...)
	client := clientOptions(cfg)
	if err := rdkafka.CheckAll(client.Properties, client.Files); err != nil {
		refuse(log, err)
		return nil, err
	}
	for _, w := range cfg.Warnings {
		log.Warn(w) //nolint:sloglint // the text is made by package config
	}
	heir, same := instances.Claim(cfg)
	if same {
		heir.Resume(hostLog, prefix, name)
		lastLog.Store(heir.Logger())
		return heir, nil
	}
	log.Info("starting", "version", version.Version, "librdkafka", rdkafka.Version(), "features", rdkafka.Features(), "settings", cfg.Summary())
	log.Info("nothing is lost only with Retry_Limit no_limits in this section, storage.type filesystem at the inputs and a scheduler.cap of about 10 in [SERVICE], none of which a plugin can see")
	if cfg.Format.Bundles() && !allEvents.Load() {
		log.Info("this section gets logs only: for metrics and traces Fluent Bit must be 5.0 or newer")
	}
	client.Logger = log
	in, err := plugin.New(plugin.Options{
		Config:    cfg,
		Open:      rdkafka.Opener(client),
		Memory:    rdkafka.Memory{},
		Relay:     relay,
		Name:      name,
		Trim:      trim,
		Heir:      heir,
		Telemetry: hostTelemetry{},
		Registry:  &instances,
	})
	if err != nil {
		if heir != nil {
			instances.PutBack(heir)
		}
		refuse(log, err)
	}
	return in, err
}

// clientOptions are the settings of a section as the client takes them, without a logger.
func clientOptions(cfg *config.Config) rdkafka.Options {
	o := rdkafka.Options{
		KeepaliveIdle: cfg.TCPKeepalive(), KeepaliveTimeout: cfg.KeepaliveTimeout,
		// Sooner than the supervisor takes an attempt for timed out, so that it knows what the matter is.
		TokenTimeout:    cfg.ProbeTimeout / 5 * 4,
		TokenBackoffMin: cfg.ReconnectBackoffMin, TokenBackoffMax: cfg.ReconnectBackoffMax,
	}
	for _, p := range cfg.Properties() {
		if p.File != "" {
			o.Files = append(o.Files, rdkafka.Property{Name: p.Name, Value: p.File})
		} else {
			o.Properties = append(o.Properties, rdkafka.Property{Name: p.Name, Value: p.Value})
		}
	}
	if cfg.MSKIAM {
		o.Tokens = mskiam.Source(cfg.MSKRegion())
	}
	return o
}

// refuse writes all faults of a section as one message, a line for each.
func refuse(log *slog.Logger, err error) {
	text := "the section is refused:\n  " + strings.ReplaceAll(err.Error(), "\n", "\n  ")
	log.Error(text) //nolint:sloglint // the text of an error
}

// reloadAdvice tells once what a hot reload needs.
var reloadAdvice sync.Once

// adviseReload is called when Fluent Bit runs with hot reload.
func adviseReload() {
	reloadAdvice.Do(func() {
		if log := lastLog.Load(); log != nil {
			log.Info("hot reload is on: during an outage it waits reload_timeout and then hands the waiting chunks to this process; with hot_reload.ensure_thread_safety off in [SERVICE] they stay on disk instead")
		}
	})
}

// reloadWarning is printed once in the life of the process.
var reloadWarning sync.Once

// flush hands one chunk to the instance and says on which kind of thread we are.
func flush(in *plugin.Instance, chunk []byte, tag string) plugin.Result {
	worker := C.okr_on_worker() != 0
	if worker && hotReload.Load() {
		reloadWarning.Do(func() {
			in.Logger().Warn("hot reload and workers are both in use: Fluent Bit aborts at the second reload of an output written in Go; restart it instead of reloading, or remove workers from this section")
		})
	}
	return in.Flush(chunk, tag, worker)
}

// chunkBytes is a view of the chunk, which belongs to the host and dies with the call.
func chunkBytes(data unsafe.Pointer, length C.int) []byte {
	if data == nil || length <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(data), int(length))
}

// tagText is a view of the tag, which dies with the call too.
func tagText(tag *C.char) string {
	if tag == nil {
		return ""
	}
	return unsafe.String((*byte)(unsafe.Pointer(tag)), int(C.strlen(tag)))
}

// panics limits what a panic prints: the first one with its stack, later ones not at all,
// since a fault in a flush would come back with every retry.
var panics sync.Once

// recovered ends a panic at the edge: a Go panic would end Fluent Bit.
func recovered(r *C.int, result plugin.Result) {
	p := recover()
	if p == nil {
		return
	}
	*r = C.int(result)
	panics.Do(func() {
		text := fmt.Sprintf("panic in the plugin (logged once): %v\n%s", p, debug.Stack())
		if log := lastLog.Load(); log != nil {
			log.Error(text) //nolint:sloglint // one text for the log and for standard error
			return
		}
		fmt.Fprintln(os.Stderr, text)
	})
}

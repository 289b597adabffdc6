package main

import (
	"testing"

	"out_kafka_reconnect/plugin"
)

// What a dry run does, and a host that is confused: the calls answer, nothing panics.
func TestExports_WithoutAnInstance(t *testing.T) {
	if r := FLBPluginFlushCtx(nil, nil, 0, nil); r != 2 {
		t.Errorf("flush with an unknown context: %d, want retry", r)
	}
	if r := FLBPluginFlush(nil, 0, nil); r != 2 {
		t.Errorf("flush without an instance: %d, want retry", r)
	}
	if r := FLBPluginOutputPreExit(0); r != 0 {
		t.Errorf("pre-exit: %d", r)
	}
	for range 2 {
		if r := FLBPluginExitCtx(nil); r != 1 {
			t.Errorf("exit of no instance: %d", r)
		}
		if r := FLBPluginExit(); r != 1 {
			t.Errorf("exit: %d", r)
		}
	}
	if r := FLBPluginPreRegister(1); r != 0 || !reloading.Load() {
		t.Errorf("pre-register: %d", r)
	}
	FLBPluginPreRegister(0)
}

// A panic must not leave an export: it would end Fluent Bit. A null plugin structure makes
// one in Init, a null instance in Flush.
func TestExports_RecoverFromPanics(t *testing.T) {
	if r := okr_init(nil); r != 0 {
		t.Errorf("init of nothing: %d, want error", r)
	}
	if r := FLBPluginRegister(nil); r != 0 {
		t.Errorf("register of nothing: %d, want error", r)
	}
	okr_unregister(nil)
	instances.Add((*plugin.Instance)(nil))
	defer func() { instances = plugin.Registry{} }()
	if r := FLBPluginFlush(nil, 0, nil); r != 2 {
		t.Errorf("flush of a broken instance: %d, want retry", r)
	}
}

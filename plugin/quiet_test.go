package plugin

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"out_kafka_reconnect/internal/flblog"
)

// A tag is a view of the host's memory, which is somebody else's after the flush; a line that
// waits for the end of its minute must not look there.
func TestQuiet_KeepsNothingOfTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		q := newQuiet(flblog.NewRelay(h, "test").Logger())
		q.warn("odd", 1)
		memory := []byte("app.one")
		q.warn("odd", 2, "tag", unsafe.String(&memory[0], len(memory)))
		copy(memory, "garbage")
		time.Sleep(quietPeriod + 2*time.Second)
		if h.count("odd tag=app.one count=2") != 1 {
			t.Errorf("%q", h.lines)
		}
		q.close()
		time.Sleep(2 * time.Second)
	})
}

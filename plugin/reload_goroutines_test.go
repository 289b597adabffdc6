package plugin

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/reconnect/reconnecttest"
)

// Fifty hot reloads leave behind what one leaves: whether the section comes back as it was or with other settings, while
// Kafka is there and while it is away.
func TestReload_GoroutinesDoNotGrow(t *testing.T) {
	for _, mode := range []reconnecttest.Mode{reconnecttest.Serving, reconnecttest.Down, reconnecttest.Frozen} {
		for _, changes := range []bool{false, true} {
			inProcess(t, func(p *process) {
				settingsOf := func(n int) settings {
					if !changes {
						return nil
					}
					return settings{"client_id": fmt.Sprint("agent-", n)}
				}
				sec := p.start(settingsOf(0))
				p.net.Set(mode)
				first := 0
				for n := 1; n <= 50; n++ {
					sec.Flush(records(10*n, 5), "tag", false)
					sec.endByReload()
					sec = p.start(settingsOf(n))
					if n == 1 {
						first = goroutines()
						if first == 0 {
							t.Fatal("none is found")
						}
					}
				}
				if last := goroutines(); last > first {
					t.Errorf("mode %v, changes %v: %d goroutines after one reload, %d after fifty", mode, changes, first, last)
				}
				p.net.Set(reconnecttest.Serving)
				time.Sleep(10 * time.Second)
				p.wantStored(250)
			})
		}
	}
}

// goroutines counts those that the module has started, when what ends by itself has had the time to do so. The runtime's own
// come and go.
func goroutines() int {
	time.Sleep(time.Minute)
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "\ncreated by out_kafka_reconnect/")
}

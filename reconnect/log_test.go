package reconnect_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// The whole log of a ten minute outage at info and above, as an operator sees it.
func TestLog_TenMinuteOutage(t *testing.T) {
	bubble(t, setup{addrs: []string{"a:9092", "b:9092"}}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Down)
		r.produce(5)
		for range 600 {
			r.sleep(time.Second)
			r.sup.Admit()
		}
		r.net.Set(reconnecttest.Serving)
		r.wantWithin(fsm.Up, 6*time.Second)
		r.sleep(time.Minute)
		all := r.log.level("INFO", "WARN", "ERROR")
		bad := r.log.level("WARN", "ERROR")
		r.Logf("\n%s", strings.Join(all, ""))
		if len(bad) > 12 || len(r.log.level("ERROR")) != 1 {
			r.Errorf("%d lines at warning or above, %d errors", len(bad), len(r.log.level("ERROR")))
		}
		if n := r.log.count(`msg="all brokers still down"`); n != 10 {
			r.Errorf("told %d times in ten minutes that it is still down", n)
		}
		if n := r.log.count(`msg="reconnect attempt failed"`); n < 100 {
			r.Errorf("%d attempts logged at any level", n)
		}
		if n := len(all) - len(bad); n > 25 {
			r.Errorf("%d lines at info", n)
		}
		if n := r.log.count(`level=INFO msg="connected again"`); n != 1 {
			r.Errorf("the end is told %d times", n)
		}
	})
}

// A few outages one after the other each have their lines; only when they do not end
// there is less to read.
func TestLog_OutagesInARow(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		for range 5 {
			r.delivered(r.produce(1), 10*ms)
			r.sleep(2 * time.Second)
			r.net.Set(reconnecttest.Down)
			r.wantWithin(fsm.AllDown, time.Second)
			r.sleep(5 * time.Second)
			r.net.Set(reconnecttest.Serving)
			r.wantWithin(fsm.Up, 6*time.Second)
		}
		starts, ends := r.log.count(`level=ERROR msg="all brokers down"`), r.log.count(`level=INFO msg="connected again"`)
		if starts != 3 || ends != 3 {
			r.Errorf("%d beginnings, %d ends told, want 3 of 5", starts, ends)
		}
		if n := r.log.count(`level=INFO msg="broker connection lost"`); n != 3 {
			r.Errorf("the lost connection is told %d times, want once for each outage that is", n)
		}
		r.sleep(3 * time.Minute)
		r.net.Set(reconnecttest.Down)
		r.produce(1)
		r.wantWithin(fsm.AllDown, time.Second)
		if r.log.count("short_outages_before=2") != 1 {
			r.Errorf("the untold outages are not counted:\n%s", r.log)
		}
		if n := len(r.rec.lost); n != 6 {
			r.Errorf("told of %d lost connections, want 6", n)
		}
	})
}

// Messages are constant lower-case words and keys are snake_case, also in lines that no
// test makes.
func TestLog_Style(t *testing.T) {
	call := regexp.MustCompile(`\.(?:Debug|Info|Warn|Error|Log)\((?:context\.Background\(\), level, )?"([^"]*)"((?s:[^;]*?))\)\n`)
	word := regexp.MustCompile(`^[a-z][a-z0-9 ,:]*$`)
	key := regexp.MustCompile(`"([^"]*)",`)
	snake := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	n := 0
	for _, file := range []string{"logobserver.go", "loop.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(source), -1) {
			n++
			if !word.MatchString(m[1]) {
				t.Errorf("%s: message %q", file, m[1])
			}
			for _, k := range key.FindAllStringSubmatch(m[2], -1) {
				if !snake.MatchString(k[1]) {
					t.Errorf("%s: key %q of %q", file, k[1], m[1])
				}
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d log calls found, the expression is out of date", n)
	}
}

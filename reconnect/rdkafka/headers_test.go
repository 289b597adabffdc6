package rdkafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/test/e2e/embedded/broker"
)

func TestHeaders_ArriveWithTheirMessage(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	batch := numbered("alpha", 1, 3)
	at := int32(len(batch.Data))
	batch.Data = reconnect.AppendHeader(batch.Data, "reason", []byte("too large"))
	batch.Data = reconnect.AppendHeader(batch.Data, "bytes", []byte{0, 255})
	batch.Data = reconnect.AppendHeader(batch.Data, "null", nil)
	batch.Data = reconnect.AppendHeader(batch.Data, "empty", []byte{})
	batch.Messages[1].HdrOff, batch.Messages[1].HdrLen = at, int32(len(batch.Data))-at
	d := r.Produce(batch)
	wait(t, d, 5*time.Second)
	if d.Acked() != 3 {
		t.Fatalf("acked %d, failures %+v", d.Acked(), d.Failures())
	}
	got := ""
	for _, record := range read(t, b.Addrs()[0], "alpha", 3) {
		got += string(record.Value)
		for _, h := range record.Headers {
			got += fmt.Sprintf(" %s=%q(%v)", h.Key, h.Value, h.Value == nil)
		}
		got += "\n"
	}
	want := "{\"seq\":1}\n{\"seq\":2}" + ` reason="too large"(false) bytes="\x00\xff"(false) null=""(true) empty=""(false)` + "\n{\"seq\":3}\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A list that is cut off is refused: C must not read past it.
func TestHeaders_BrokenListIsRefused(t *testing.T) {
	b := newBroker(t, broker.Options{})
	r := openRig(t, b.Addrs()[0], fsm.ConnOpen)
	whole := reconnect.AppendHeader(nil, "name", []byte("value"))
	for _, list := range []string{
		string(whole[:3]), string(whole[:7]), string(whole[:8]), string(whole[:len(whole)-1]), string(whole) + "x",
		strings.Repeat("\xff", 8), "\x00\x00\x00\x00\xfe\xff\xff\xff",
	} {
		batch := numbered("alpha", 1, 1)
		batch.Messages[0].HdrOff, batch.Messages[0].HdrLen = int32(len(batch.Data)), int32(len(list))
		batch.Data = append(batch.Data, list...)
		d := r.Produce(batch)
		wait(t, d, 5*time.Second)
		if len(d.Failures()) != 1 || d.Failures()[0].Code != -186 || !d.Failures()[0].Refused {
			t.Errorf("%q: acked %d, failures %+v", list, d.Acked(), d.Failures())
		}
	}
}

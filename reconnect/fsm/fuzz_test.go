package fsm

import (
	"encoding/binary"
	"testing"
	"time"
)

// fuzzEventSize is the number of bytes that make one event.
const fuzzEventSize = 8

// FuzzMachine turns bytes into a configuration and events, every value reachable, and
// asserts the invariants: nothing panics, whatever comes.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 0})
	f.Add([]byte("\x01\x10\x40" + "\x03\x01\x10\x00\x01\x00\x00\x00" + "\x00\x10\x00\x10\x00\x00\x00\x03" + "\x08\x01\xff\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 3 {
			return
		}
		value := float64(data[1]) / 128 // up to almost 2: a Rand that breaks its contract
		cfg := Config{IdlePolicy: IdlePolicy(data[0] % 5), Rand: func() float64 { return value }}
		cfg.BackoffMax = time.Duration(data[2]) * 50 * time.Millisecond
		c := newChecked(t, cfg)
		c.fixed = true
		for data = data[3:]; len(data) >= fuzzEventSize; data = data[fuzzEventSize:] {
			c.step(fuzzEvent(data[:fuzzEventSize], c.m))
		}
		c.live()
	})
}

// fuzzEvent reads one event. Most bits are small choices, so that the fuzzer meets
// current events often; a few make the values extreme.
func fuzzEvent(b []byte, m *Machine) Event {
	e := Event{
		Kind:        EventKind(b[0] % (numEvents + 2)),
		Class:       Class(b[1] & 0x0f),
		ClientGen:   m.gen - int(b[1]>>4&1),
		Epoch:       m.epoch - int(b[1]>>5&1),
		Attempt:     m.beat.attempt - int(b[1]>>6&1),
		At:          m.now + time.Duration(binary.LittleEndian.Uint16(b[2:]))*time.Millisecond,
		Outstanding: int(b[7]&0x0f) - 1,
		Up:          int(b[4]&0x03) - 1,
		Failing:     int(b[4]>>2&0x03) - 1,
		Failed:      int(b[5]&0x03) - 1,
		Pending:     int(b[5]>>2&0x03) - 1,
		InFlight:    int(b[6]&0x03) - 1,
	}
	if e.Kind == SilenceChecked {
		e.Attempt = m.check.number - int(b[1]>>6&1)
	}
	e.LearnedOnly, e.Trouble = b[4]&0x10 != 0, b[4]&0x20 != 0
	e.Ready, e.Silent = int(b[5]>>4&0x03), int(b[5]>>6&0x03)-1
	e.Suspect, e.Alive = int(b[4]>>6&0x01), int(b[4]>>7&0x01)
	e.Next = time.Duration(b[7]) * time.Second
	switch b[6] >> 4 {
	case 1:
		e.At = 1<<63 - 1
	case 2:
		e.At = -1 << 63
	case 3:
		e.At *= 1000
	}
	if d, ok := m.Deadline(); ok && b[7]&0x80 != 0 {
		e.At = d
	}
	return e
}

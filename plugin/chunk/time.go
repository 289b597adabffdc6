package chunk

import "encoding/binary"

const (
	// groupStartSec and groupEndSec are the seconds that mark a group. Fluent Bit
	// writes -1 and -2 into an unsigned 32 bit field.
	groupStartSec = 0xffffffff
	groupEndSec   = 0xfffffffe

	// maxSec is the last second of the year 9999. What lies behind it is no time of
	// a log record but a unit mistaken (milliseconds, say), and RFC 3339 has no text
	// for it.
	maxSec = 253402300799
)

// readTime reads the time value at v[pos:] into e and sets its kind, because a group
// marker differs from a record by its time only. A negative number is not taken for
// a marker, although the host's decoder does so with some: a foreign client may send
// one with a real record, and a record must not vanish.
func (e *Entry) readTime(v []byte, pos int) {
	h, pos := ReadHead(v, pos)
	switch h.Type {
	case Ext:
		if h.ExtType != 0 || h.N != 8 {
			return
		}
		e.Sec, e.Nsec = EventTime(v[pos : pos+8])
		e.TimeOK = true
	case Uint:
		if h.N > maxSec {
			return
		}
		e.Sec, e.TimeOK = int64(h.N), true
	case Float:
		e.readFloatTime(h.Float())
		return // A float is never a marker.
	default:
		return
	}
	switch e.Sec {
	case groupStartSec:
		e.Kind = GroupStart
	case groupEndSec:
		e.Kind = GroupEnd
	}
}

// readFloatTime cuts below the nanosecond as the host does, so that both print the
// same digits. Not a number fails the comparison.
func (e *Entry) readFloatTime(f float64) {
	if !(f >= 0 && f < maxSec+1) {
		return
	}
	e.Sec, e.TimeOK = int64(f), true
	e.Nsec = int32((f - float64(e.Sec)) * 1e9)
}

// EventTime reads the payload of an ext of type 0, Fluent Bit's event time: seconds
// and nanoseconds, 32 bits each. Nanoseconds of a second and more are carried over.
// The slice must hold 8 bytes.
func EventTime(payload []byte) (sec int64, nsec int32) {
	s := binary.BigEndian.Uint32(payload)
	ns := binary.BigEndian.Uint32(payload[4:])
	return int64(s) + int64(ns/1e9), int32(ns % 1e9)
}

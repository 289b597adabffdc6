package format

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// TimestampFormat says how the time field is written.
type TimestampFormat uint8

const (
	// TimestampDouble is a JSON number of seconds with at most six fractional digits:
	// 1700000000.123457.
	TimestampDouble TimestampFormat = iota
	// TimestampISO8601 is a text in UTC with six fractional digits; what lies below the
	// microsecond is cut: "2023-11-14T22:13:20.123456Z".
	TimestampISO8601
	// TimestampISO8601NS is the same with all nine digits.
	TimestampISO8601NS
)

// timestampNames are the values of the option timestamp_format.
var timestampNames = [...]string{
	TimestampDouble:    "double",
	TimestampISO8601:   "iso8601",
	TimestampISO8601NS: "iso8601_ns",
}

// String returns the name that the option has for the format.
func (f TimestampFormat) String() string {
	if int(f) < len(timestampNames) {
		return timestampNames[f]
	}
	return fmt.Sprintf("TimestampFormat(%d)", uint8(f))
}

// ParseTimestampFormat returns the format with the given name. Fluent Bit takes any
// other text for double; here it is an error, and the caller knows the option's name.
func ParseTimestampFormat(name string) (TimestampFormat, error) {
	for f, n := range timestampNames {
		if n == name {
			return TimestampFormat(f), nil
		}
	}
	return 0, fmt.Errorf("format: %q is no timestamp format; allowed: double, iso8601, iso8601_ns", name)
}

// timeField writes the beginning of a record: the brace and the time. Most records of
// a chunk fall into few seconds, so everything up to the fraction is kept.
type timeField struct {
	key    []byte // quoted and escaped; nil: no time, the brace alone
	format TimestampFormat
	sec    int64
	prefix []byte // up to the fraction of sec; empty before the first record
}

// fractionBits is the number of bits behind the point that a float64 of 10^9 seconds
// has; one of more seconds has fewer.
const fractionBits = 23

func (t *timeField) append(dst []byte, sec int64, nsec int32) []byte {
	if t.key == nil {
		return append(dst, '{')
	}
	if uint32(nsec) >= 1e9 {
		// No walker gives such a time, but a caller may set one.
		u := time.Unix(sec, int64(nsec))
		sec, nsec = u.Unix(), int32(u.Nanosecond())
	}
	if sec != t.sec || len(t.prefix) == 0 {
		t.setPrefix(sec)
	}
	switch t.format {
	case TimestampISO8601:
		dst = append(dst, t.prefix...)
		return append(appendDigits(dst, uint32(nsec)/1000, 6), `Z"`...)
	case TimestampISO8601NS:
		dst = append(dst, t.prefix...)
		return append(appendDigits(dst, uint32(nsec), 9), `Z"`...)
	default:
		return t.appendDouble(dst, sec, nsec)
	}
}

// appendDouble is append for the format double.
func (t *timeField) appendDouble(dst []byte, sec int64, nsec int32) []byte {
	// Fluent Bit goes through a float64 and prints 16 digits of it. With ten digits
	// before the point six remain, rounded to even from the exact value of the
	// float64, which is a whole number of 2^-23 and so can be had without floats.
	v := float64(sec) + float64(nsec)/1e9
	if sec >= 1e9 && sec < 1e10 {
		exact := uint64((v-float64(sec))*(1<<fractionBits)) * 1e6
		micros := exact >> fractionBits
		rest := exact & (1<<fractionBits - 1)
		if rest > 1<<(fractionBits-1) || rest == 1<<(fractionBits-1) && micros&1 == 1 {
			micros++
		}
		if micros < 1e6 {
			dst = append(dst, t.prefix...)
			return trimZeros(appendDigits(dst, uint32(micros), 6))
		}
	}
	dst = append(dst, '{')
	dst = append(dst, t.key...)
	return appendSeconds(append(dst, ':'), v)
}

func (t *timeField) setPrefix(sec int64) {
	t.sec = sec
	p := append(t.prefix[:0], '{')
	p = append(p, t.key...)
	p = append(p, ':')
	if t.format == TimestampDouble {
		p = append(strconv.AppendInt(p, sec, 10), '.')
	} else {
		p = appendDate(append(p, '"'), sec)
	}
	t.prefix = p
}

// appendSeconds appends seconds that are no current time, or that the rounding has
// carried into the next second, with 16 digits in all and without an exponent. A whole
// number keeps its ".0" here even where Fluent Bit, having rounded up, drops it: the
// field is then of one JSON type always.
func appendSeconds(dst []byte, v float64) []byte {
	decimals := 16
	for n := math.Abs(v); n >= 1 && decimals > 1; n /= 10 {
		decimals--
	}
	return trimZeros(strconv.AppendFloat(dst, v, 'f', decimals, 64))
}

// trimZeros cuts the zeros at the end of a fraction except its first digit.
func trimZeros(dst []byte) []byte {
	n := len(dst)
	for dst[n-1] == '0' && dst[n-2] != '.' {
		n--
	}
	return dst[:n]
}

// appendDate appends the RFC 3339 date and time of day in UTC up to and with the point
// of the fraction. The zone of the process plays no part.
func appendDate(dst []byte, sec int64) []byte {
	return time.Unix(sec, 0).UTC().AppendFormat(dst, "2006-01-02T15:04:05.")
}

// dateText keeps the text of appendDate, as most records of a chunk fall into few seconds.
type dateText struct {
	sec  int64
	text []byte // empty before the first record
}

// of returns the text of a second; it is valid until the next call.
func (d *dateText) of(sec int64) []byte {
	if sec != d.sec || len(d.text) == 0 {
		d.sec, d.text = sec, appendDate(d.text[:0], sec)
	}
	return d.text
}

// appendDigits appends v as a decimal of the given width, with zeros in front.
func appendDigits(dst []byte, v uint32, width int) []byte {
	n := len(dst)
	dst = append(dst, "000000000"[:width]...)
	for i := n + width - 1; v > 0; i-- {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
	return dst
}

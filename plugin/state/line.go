package state

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"out_kafka_reconnect/plugin/delivery"
)

// A line is words and a checksum:
//
//	kafka_reconnect journal <version> <boot>
//	note <id> <since> <hash> <size> <glimpse> <messages> <open>
//	drop <id>
//	closed
//
// These are in the journal. In the file of a chunk there is only
//
//	open <messages> <open>
//
// since is in nanoseconds since 1970, hash and glimpse are hexadecimal, and open is "-", or the
// indexes as in 0-3,7.
const (
	headerWords = "kafka_reconnect journal"
	version     = "1"
	wordNote    = "note"
	wordDrop    = "drop"
	wordClosed  = "closed"
	wordOpen    = "open"
)

// bootID tells one run of the machine from the next; "-" where there is none.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id
	}
	return "-"
}

func headerLine() []byte { return lineOf(headerWords + " " + version + " " + bootID()) }
func closedLine() []byte { return lineOf(wordClosed) }

func noteLine(m delivery.Memo) []byte {
	return lineOf(fmt.Sprintf("%s %d %d %x %d %x %d %s", wordNote,
		m.ID, m.Since.UnixNano(), m.Key.Hash(), m.Key.Size(), uint64(m.Glimpse), m.Messages, ranges(m.Open)))
}

func dropLine(id uint64) []byte { return lineOf(fmt.Sprintf("%s %d", wordDrop, id)) }

func openLine(messages int, open []int) []byte {
	return lineOf(fmt.Sprintf("%s %d %s", wordOpen, messages, ranges(open)))
}

func parseOpen(line string) (messages int, open []int, err error) {
	body, ok := checked(line)
	w := strings.Split(body, " ")
	if !ok || len(w) != 3 || w[0] != wordOpen {
		return 0, nil, ErrCorrupt
	}
	var p parser
	messages = int(p.number(w[1], 10))
	return messages, p.indexes(w[2], messages), p.err
}

func parseHeader(body string) (boot string, err error) {
	rest, ok := strings.CutPrefix(body, headerWords+" ")
	if !ok {
		return "", errors.New("this is no journal")
	}
	v, boot, _ := strings.Cut(rest, " ")
	if v != version {
		return "", fmt.Errorf("version %q is unknown, this is %s", v, version)
	}
	return boot, nil
}

func parseNote(args string) (delivery.Memo, error) {
	w := strings.Split(args, " ")
	if len(w) != 7 {
		return delivery.Memo{}, fmt.Errorf("%d words, want 7", len(w))
	}
	var p parser
	m := delivery.Memo{
		ID:       p.number(w[0], 10),
		Since:    time.Unix(0, int64(p.number(w[1], 10))),
		Key:      delivery.KeyFrom(p.hash(w[2]), int(p.number(w[3], 10))),
		Glimpse:  delivery.Glimpse(p.number(w[4], 16)),
		Messages: int(p.number(w[5], 10)),
	}
	m.Open = p.indexes(w[6], m.Messages)
	return m, p.err
}

func parseDrop(args string) (uint64, error) {
	var p parser
	id := p.number(args, 10)
	return id, p.err
}

// parser keeps the first error.
type parser struct{ err error }

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *parser) number(s string, base int) uint64 {
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		p.fail(err)
	}
	return n
}

func (p *parser) hash(s string) (hash [16]byte) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(hash) {
		p.fail(fmt.Errorf("%q is no hash", s))
	}
	copy(hash[:], b)
	return hash
}

// indexes reads ranges of numbers that ascend and are below limit.
func (p *parser) indexes(s string, limit int) []int {
	if s == "-" {
		return nil
	}
	var list []int
	next := 0
	for r := range strings.SplitSeq(s, ",") {
		first, last, ok := strings.Cut(r, "-")
		if !ok {
			last = first
		}
		a, b := p.number(first, 10), p.number(last, 10)
		if p.err != nil || a < uint64(next) || b < a || b >= uint64(limit) {
			p.fail(fmt.Errorf("%q are no indexes below %d", s, limit))
			return nil
		}
		for i := int(a); i <= int(b); i++ {
			list = append(list, i)
		}
		next = int(b) + 1
	}
	return list
}

// ranges writes indexes that ascend.
func ranges(list []int) string {
	if len(list) == 0 {
		return "-"
	}
	var text []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i == j {
			text = append(text, strconv.Itoa(list[i]))
		} else {
			text = append(text, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(text, ",")
}

package rdkafka

/*
#include <stdlib.h>
#include "okr.h"
*/
import "C"

import (
	"context"
	"log/slog"
	"unsafe"

	"out_kafka_reconnect/reconnect"
)

// echoes are the errors that our own gate raises, as it refuses attempts. A real failure of
// these kinds is in the table of addresses, with its stage and text.
var echoes = map[int]bool{
	-193: true, // resolve
	-195: true, // transport
}

// run is the event goroutine: it sleeps until C has news and fetches them. It ends when
// Close closes the wake file.
func (c *Client) run(handle *C.okr_client) {
	defer close(c.ended)
	var counter [8]byte
	for {
		if _, err := c.wake.Read(counter[:]); err != nil {
			return
		}
		c.fetch(handle)
	}
}

// fetch takes everything that has come up. Chunks settle first, so that a flush that
// waits gets its answer before the supervisor hears of it.
func (c *Client) fetch(handle *C.okr_client) {
	var news C.okr_news
	C.okr_drain(handle, &news)
	for ch := C.okr_next_chunk(handle); ch != nil; ch = C.okr_next_chunk(handle) {
		c.settle(ch)
	}
	c.fetchWords(handle)
	if news.token_wanted != 0 {
		c.tokens.want()
	}
	if dropped := uint64(news.dropped); dropped != c.dropped {
		c.logger.Warn("client lines were dropped because too many came at once", "count", dropped-c.dropped)
		c.dropped = dropped
	}
	n := reconnect.Notice{Gen: c.gen, Kind: reconnect.NoticeReported}
	if news.acked != 0 {
		n.Kind = reconnect.NoticeAcked
	}
	if news.acked != 0 || news.reported != 0 {
		c.sink(n)
	}
	// Last, as it is the newest: an acknowledgement behind the loss of its broker would tell that one is back.
	if news.table_changed != 0 {
		c.sink(c.table(handle))
	}
}

// fetchWords empties the ring of log lines, errors and statistics.
func (c *Client) fetchWords(handle *C.okr_client) {
	var ev C.okr_event
	for C.okr_next_event(handle, &ev) != 0 {
		text := C.GoString(&ev.text[0])
		code := int(ev.code)
		switch ev.kind {
		case C.OKR_EV_LOG:
			c.logger.Debug("client", "syslog_level", code, "text", text)
		case C.OKR_EV_STATS:
			if c.logger.Enabled(context.Background(), slog.LevelInfo) {
				c.logger.Info("client statistics", "json", C.GoString(ev.heap))
			}
			C.free(unsafe.Pointer(ev.heap))
		case C.OKR_EV_ERROR:
			if echoes[code] {
				continue
			}
			c.sink(reconnect.Notice{Gen: c.gen, Kind: reconnect.NoticeError, Class: Classify(code), Code: code, Text: text})
		case C.OKR_EV_FATAL:
			c.sink(reconnect.Notice{Gen: c.gen, Kind: reconnect.NoticeFatal, Class: Classify(code), Code: code, Text: text})
		}
	}
}

// table fetches the whole table of addresses.
func (c *Client) table(handle *C.okr_client) reconnect.Notice {
	rows := make([]C.okr_addr_info, 16)
	var epoch C.uint64_t
	var noneLeft C.bool
	n := int(C.okr_table(handle, &rows[0], C.int(len(rows)), &epoch, &noneLeft))
	for n > len(rows) {
		rows = make([]C.okr_addr_info, n+16)
		n = int(C.okr_table(handle, &rows[0], C.int(len(rows)), &epoch, &noneLeft))
	}
	brokers := make([]reconnect.Broker, n)
	for i := range brokers {
		r := &rows[i]
		brokers[i] = reconnect.Broker{
			Addr:       C.GoString(&r.name[0]),
			Up:         int(r.up),
			InFlight:   int(r.inflight),
			Permits:    int(r.permits),
			Configured: c.configured[C.GoString(&r.name[0])],
			Member:     r.member != 0,
			Asked:      r.asked != 0,
			Attempts:   uint64(r.attempts),
			Failures:   uint64(r.failures),
			Ups:        uint64(r.ups),
			Shorts:     uint64(r.shorts),
			Class:      classOfStage(r.stage),
			Text:       C.GoString(&r.text[0]),
		}
	}
	return reconnect.Notice{Gen: c.gen, Kind: reconnect.NoticeBrokers, Brokers: brokers, Epoch: uint64(epoch), NoneLeft: bool(noneLeft)}
}

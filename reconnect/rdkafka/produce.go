package rdkafka

/*
#include <stdlib.h>
#include "okr.h"

_Static_assert(sizeof(okr_msg) == 40, "okr_msg mirrors reconnect.Message");
*/
import "C"

import (
	"slices"
	"unsafe"

	"out_kafka_reconnect/reconnect"
)

// The compiler refuses this when the Go and the C layout of a message differ in size.
var _ [unsafe.Sizeof(C.okr_msg{})]byte = [unsafe.Sizeof(reconnect.Message{})]byte{}

// codeClosed is reported for messages that meet a closed client: librdkafka's code for a
// destroyed handle.
const codeClosed = -197

// Produce hands a batch over in one crossing, see reconnect.Client.
func (c *Client) Produce(b *reconnect.Batch) *reconnect.Delivery {
	d := reconnect.NewDelivery()
	if len(b.Messages) == 0 {
		d.Settle(0, nil, nil)
		return d
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.c == nil {
		refuse(d, b, codeClosed)
		return d
	}
	topics, codes, free := c.topicHandles(b.Topics)
	defer free()
	id := c.expect(d, b.Topics)
	var data *C.char
	if len(b.Data) > 0 {
		data = (*C.char)(unsafe.Pointer(&b.Data[0]))
	} else {
		data = (*C.char)(unsafe.Pointer(&emptyData[0]))
	}
	// What a full queue leaves out is still the caller's, and its bytes are needed then.
	keep := b.Lent && len(b.Data) > 0 && !c.bounded
	var taken int
	produce := func() {
		taken = int(C.okr_produce(c.c, C.uint64_t(id), topics, codes,
			(*C.okr_msg)(unsafe.Pointer(&b.Messages[0])), C.int(len(b.Messages)), data, C.size_t(len(b.Data)), C.bool(keep)))
	}
	if len(b.Messages) < threadFrom {
		produce()
	} else {
		c.thread.do(produce)
	}
	switch {
	case taken < 0: // no memory for the chunk: nothing was handed over
		c.take(id)
		refuse(d, b, codeClosed)
		return d
	case taken < len(b.Messages):
		d.LeaveOut(len(b.Messages) - taken)
	}
	if keep {
		b.Data, b.Lent = nil, false
	}
	return d
}

// Memory lends blocks of C's memory, which the clients of this package keep.
type Memory struct{}

// lendFrom is how many bytes are worth a block of their own.
const lendFrom = 64 << 10

// Lend implements reconnect.Memory.
func (Memory) Lend(size int) []byte {
	if size < lendFrom {
		return nil
	}
	block := C.okr_block_new(C.size_t(size))
	if block == nil {
		return nil
	}
	return unsafe.Slice((*byte)(block), int(C.okr_block_size(block)))[:0]
}

// Return implements reconnect.Memory.
func (Memory) Return(lent []byte) { C.okr_block_free(unsafe.Pointer(unsafe.SliceData(lent))) }

var emptyData [1]byte

// expected is a delivery whose chunk is with C, and the topics that its messages index.
type expected struct {
	delivery *reconnect.Delivery
	topics   []string
}

// expect registers a delivery under a fresh id.
func (c *Client) expect(d *reconnect.Delivery, topics []string) uint64 {
	e := expected{d, slices.Clone(topics)} // the caller reuses its own
	c.pendingMu.Lock()
	defer c.pendingMu.Unlock()
	c.nextID++
	c.pending[c.nextID] = e
	return c.nextID
}

func (c *Client) take(id uint64) expected {
	c.pendingMu.Lock()
	defer c.pendingMu.Unlock()
	e := c.pending[id]
	delete(c.pending, id)
	return e
}

// topicHandles resolves the topics of a batch to handles, which live as long as the
// client. The arrays are C memory because Go memory that C reads may hold no C pointers
// to more than the call; free releases them.
func (c *Client) topicHandles(names []string) (handles *unsafe.Pointer, codes *C.int, free func()) {
	n := C.size_t(len(names))
	handles = (*unsafe.Pointer)(C.calloc(n, C.size_t(unsafe.Sizeof(uintptr(0)))))
	codes = (*C.int)(C.calloc(n, C.size_t(unsafe.Sizeof(C.int(0)))))
	hs, cs := unsafe.Slice(handles, len(names)), unsafe.Slice(codes, len(names))
	c.topicMu.Lock()
	for i, name := range names {
		t := c.topic(name)
		hs[i], cs[i] = t.handle, t.code
	}
	c.topicMu.Unlock()
	return handles, codes, func() {
		C.free(unsafe.Pointer(handles))
		C.free(unsafe.Pointer(codes))
	}
}

// topic returns the handle of a topic; topicMu is held. A name that librdkafka refuses is
// not remembered: the caller checks names, so this does not happen on the path of a record.
func (c *Client) topic(name string) topicHandle {
	if t, ok := c.topics[name]; ok {
		return t
	}
	var t topicHandle
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	t.handle = C.okr_topic(c.c, n, &t.code)
	if t.handle != nil {
		c.topics[name] = t
	}
	return t
}

// settle turns a chunk whose messages were all reported into the end of its delivery.
func (c *Client) settle(ch *C.okr_chunk) {
	e := c.take(uint64(C.okr_chunk_id(ch)))
	acked := int(C.okr_chunk_acked(ch))
	failures := chunkFailures(ch)
	left := chunkBatch(ch, e.topics).Left(failures)
	C.okr_chunk_free(ch)
	e.delivery.Settle(acked, failures, left)
}

// chunkBatch is the batch that a chunk was made of. It lies in the memory of C and is valid
// until the chunk is freed.
func chunkBatch(ch *C.okr_chunk, topics []string) *reconnect.Batch {
	var size C.size_t
	data := C.okr_chunk_data(ch, &size)
	msgs := C.okr_chunk_msgs(ch)
	return &reconnect.Batch{
		Topics:   topics,
		Data:     unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size)),
		Messages: unsafe.Slice((*reconnect.Message)(unsafe.Pointer(msgs)), int(C.okr_chunk_size(ch))),
	}
}

func chunkFailures(ch *C.okr_chunk) []reconnect.Failure {
	var one C.okr_failure
	if C.okr_chunk_failures(ch, &one, 1) == 0 {
		return nil
	}
	rows := make([]C.okr_failure, int(C.okr_chunk_size(ch)))
	rows = rows[:int(C.okr_chunk_failures(ch, &rows[0], C.int(len(rows))))]
	out := make([]reconnect.Failure, len(rows))
	texts := map[int]string{}
	for i, r := range rows {
		code := int(r.code)
		text, ok := texts[code]
		if !ok {
			text = Text(code)
			texts[code] = text
		}
		out[i] = reconnect.Failure{
			Index: int(r.index), Class: Classify(code), Code: code,
			Status: reconnect.Status(r.status), Text: text, Refused: r.refused != 0,
		}
	}
	return out
}

// refuse settles the delivery of a batch of which nothing was handed over.
func refuse(d *reconnect.Delivery, b *reconnect.Batch, code int) {
	failures := make([]reconnect.Failure, len(b.Messages))
	text := Text(code)
	for i := range failures {
		failures[i] = reconnect.Failure{Index: i, Class: Classify(code), Code: code, Text: text, Refused: true}
	}
	d.Settle(0, failures, b.Left(failures))
}

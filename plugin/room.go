package plugin

import "out_kafka_reconnect/reconnect"

// roomMargin is how many bytes are added to those expected, as the chunk at hand may become more.
const roomMargin = 16 << 10

// roomGrowth is how many bytes of messages a byte of a chunk is expected to become before there was one. It is more than most
// become: pages that are never written to take no memory, and a chunk that outgrows its room is copied.
const roomGrowth = 1.5

// roomWaste is how many times as large as what is expected the memory may be that is used again.
const roomWaste = 4

// room is where an encoder puts the bytes of its messages: into memory that is lent, which the client keeps so that
// nobody makes a copy, or, if nothing is lent, into a buffer that is used again and again.
type room struct {
	memory reconnect.Memory // nil: nothing is lent
	lent   []byte           // what is lent and no client keeps
	own    []byte
	growth float64 // how many bytes of messages a byte of a chunk becomes, at most; 0: there was none yet
}

// begin gives the batch room for the messages of a chunk of so many bytes.
func (r *room) begin(b *reconnect.Batch, size int) {
	r.forgetKept(b)
	if r.growth == 0 {
		r.growth = roomGrowth
	}
	r.growth = max(r.growth, 1)
	expected := int(r.growth*float64(size)) + roomMargin
	// What is much too large goes back too: the client may keep it for long, and the messages alone are counted.
	if r.memory != nil && (cap(r.lent) < expected || cap(r.lent)/roomWaste > expected) {
		r.giveBack()
		r.lent = r.memory.Lend(expected)
	}
	b.Lent, b.Data = r.lent != nil, r.own[:0]
	if b.Lent {
		b.Data = r.lent
	}
}

// end sees where the messages of that chunk are now.
func (r *room) end(b *reconnect.Batch, size int) {
	now := float64(len(b.Data)) / float64(max(size, roomMargin)) * 1.05 // of a few bytes it tells nothing
	r.growth = max(now, r.growth*0.9+now*0.1)
	switch {
	case !b.Lent:
		r.own = b.Data
	case cap(b.Data) != cap(r.lent): // it was too little, and an append has left it
		r.giveBack()
		b.Lent = false
	}
}

// drop gives up what there is, and returns how many bytes that were. The batch is empty then.
func (r *room) drop(b *reconnect.Batch) int {
	r.forgetKept(b)
	n := cap(r.lent) + cap(r.own)
	if !b.Lent && cap(b.Data) != cap(r.own) { // it has outgrown what was lent
		n += cap(b.Data)
	}
	r.giveBack()
	r.own = nil
	*b = reconnect.Batch{}
	return n
}

// forgetKept notes that a client keeps what was lent for the batch.
func (r *room) forgetKept(b *reconnect.Batch) {
	if !b.Lent {
		r.lent = nil
	}
}

func (r *room) giveBack() {
	if r.lent != nil {
		r.memory.Return(r.lent)
		r.lent = nil
	}
}

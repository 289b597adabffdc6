package broker

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Offsets in a record batch of format 2.
const (
	batchCRC        = 17
	batchAttributes = 21 // also where the bytes begin that the checksum covers
	logAppendTime   = 1 << 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stampAppendTime marks produced batches as stamped by the broker. kfake accepts message.timestamp.type but does not act on
// it; a batch that comes with the mark is stamped. The checksum is set anew because kfake checks it after us.
func stampAppendTime(req kmsg.Request) (kmsg.Response, error, bool) {
	produce, ok := req.(*kmsg.ProduceRequest)
	if !ok {
		return nil, nil, false
	}
	for _, topic := range produce.Topics {
		for _, partition := range topic.Partitions {
			markAppendTime(partition.Records)
		}
	}
	return nil, nil, false
}

// markAppendTime leaves a batch alone that is too short or whose checksum is wrong: refusing it is kfake's business.
func markAppendTime(batch []byte) {
	if len(batch) < batchAttributes+2 {
		return
	}
	covered := batch[batchAttributes:]
	if binary.BigEndian.Uint32(batch[batchCRC:]) != crc32.Checksum(covered, castagnoli) {
		return
	}
	attributes := binary.BigEndian.Uint16(covered)
	binary.BigEndian.PutUint16(covered, attributes|logAppendTime)
	binary.BigEndian.PutUint32(batch[batchCRC:], crc32.Checksum(covered, castagnoli))
}

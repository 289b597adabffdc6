package broker

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// batchCount is where a record batch of format 2 says how many records it holds.
const batchCount = 57

// discardProduce acknowledges a produce request and keeps nothing of it but the number of records.
func (b *Broker) discardProduce(req kmsg.Request) (kmsg.Response, error, bool) {
	b.cluster.KeepControl()
	b.mu.Lock()
	defer b.mu.Unlock()
	return answerProduce(req, func(in *kmsg.ProduceRequestTopicPartition, out *kmsg.ProduceResponseTopicPartition) {
		out.BaseOffset = b.discarded
		if len(in.Records) >= batchCount+4 {
			b.discarded += int64(binary.BigEndian.Uint32(in.Records[batchCount:]))
		}
	}), nil, true
}

package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fault is what produce requests are answered with instead of being done.
type fault struct {
	code  int16
	times int // how many requests are left; below zero all
}

// FailProduce answers the next produce requests with an error for each partition, and writes nothing; with times below
// zero all of them. The code 0 ends it.
func (b *Broker) FailProduce(code int16, times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault{code: code, times: times}
	if !b.faulty {
		b.faulty = true
		b.cluster.ControlKey(int16(kmsg.Produce), b.refuseProduce)
	}
}

// refuseProduce is asked at each produce request.
func (b *Broker) refuseProduce(req kmsg.Request) (kmsg.Response, error, bool) {
	b.cluster.KeepControl()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault.code == 0 || b.fault.times == 0 {
		return nil, nil, false
	}
	b.fault.times--
	return produceError(req, b.fault.code), nil, true
}

// produceError answers every partition of a produce request with one code.
func produceError(req kmsg.Request, code int16) kmsg.Response {
	return answerProduce(req, func(_ *kmsg.ProduceRequestTopicPartition, out *kmsg.ProduceResponseTopicPartition) {
		out.ErrorCode = code
	})
}

// answerProduce answers a produce request; fill does so for each partition.
func answerProduce(req kmsg.Request, fill func(*kmsg.ProduceRequestTopicPartition, *kmsg.ProduceResponseTopicPartition)) kmsg.Response {
	in := req.(*kmsg.ProduceRequest)
	out := in.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range in.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for i := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition = t.Partitions[i].Partition
			fill(&t.Partitions[i], &rp)
			rt.Partitions = append(rt.Partitions, rp)
		}
		out.Topics = append(out.Topics, rt)
	}
	return out
}

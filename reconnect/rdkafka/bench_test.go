package rdkafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

const (
	benchRecords = 5000
	benchSize    = 300
)

func mock(b *testing.B) string {
	b.Helper()
	m, err := kafka.NewMockCluster(1)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Close)
	if err := m.CreateTopic("alpha", 4, 1); err != nil {
		b.Fatal(err)
	}
	return m.BootstrapServers()
}

// BenchmarkProduce is a chunk of 5000 records of 300 bytes to the in-process mock, from
// the call to the last acknowledgement. The mock's own work is in the figure.
func BenchmarkProduce(b *testing.B) {
	props := append([]Property{{"bootstrap.servers", mock(b)}, {"broker.address.ttl", "0"}}, unbounded...)
	c, err := open(Options{Properties: props}, 1, nil, fsm.ConnOpen)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close(5 * time.Second) }()
	batch := &reconnect.Batch{Topics: []string{"alpha"}, Data: make([]byte, benchRecords*benchSize)}
	for i := range benchRecords {
		batch.Messages = append(batch.Messages, reconnect.Message{
			Partition: reconnect.PartitionAny, KeyLen: reconnect.NoKey, ValOff: int32(i * benchSize), ValLen: benchSize,
		})
	}
	<-c.Produce(batch).Done() // connected
	b.SetBytes(benchRecords * benchSize)
	b.ReportAllocs()
	for b.Loop() {
		d := c.Produce(batch)
		<-d.Done()
		if d.Acked() != benchRecords {
			b.Fatal(d.Failures())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords, "ns/record")
}

// BenchmarkProduce_GoClient is the same through the Go client of the module, one call for
// each record: the reference.
func BenchmarkProduce_GoClient(b *testing.B) {
	p, err := kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers": mock(b), "go.delivery.report.fields": "none", "queue.buffering.max.messages": 0,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	topic, value := "alpha", make([]byte, benchSize)
	reports := make(chan kafka.Event, benchRecords)
	chunk := func() error {
		for range benchRecords {
			m := kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: kafka.PartitionAny}, Value: value}
			if err := p.Produce(&m, reports); err != nil {
				return err
			}
		}
		for range benchRecords {
			if m, ok := (<-reports).(*kafka.Message); !ok || m.TopicPartition.Error != nil {
				return fmt.Errorf("report: %v", m)
			}
		}
		return nil
	}
	if err := chunk(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(benchRecords * benchSize)
	b.ReportAllocs()
	for b.Loop() {
		if err := chunk(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords, "ns/record")
}

//go:build cgo

package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka" //nolint:depguard // the plain client, to judge the broker without our binding
)

// A source sends the numbers 0, 1, 2 … through librdkafka to topic app.
type source struct {
	t        *testing.T
	producer *kafka.Producer
	reports  chan kafka.Event
	sent     []string
	acked    int
}

func newSource(t *testing.T, b *Broker) *source {
	t.Helper()
	producer, err := kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers":        strings.Join(b.Addrs(), ","),
		"enable.idempotence":       true,
		"reconnect.backoff.ms":     20,
		"reconnect.backoff.max.ms": 100,
		"socket.timeout.ms":        1000,
		"message.timeout.ms":       int(patience.Milliseconds()),
		"linger.ms":                0,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	return &source{t: t, producer: producer, reports: make(chan kafka.Event, 100)}
}

func (s *source) send() {
	s.t.Helper()
	topic, value := "app", fmt.Sprint(len(s.sent))
	s.sent = append(s.sent, value)
	if err := s.producer.Produce(&kafka.Message{
		TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Value: []byte(value),
	}, s.reports); err != nil {
		s.t.Fatalf("producing %s: %v", value, err)
	}
}

// settle waits until everything sent is acknowledged.
func (s *source) settle() {
	s.t.Helper()
	for ; s.acked < len(s.sent); s.acked++ {
		select {
		case e := <-s.reports:
			if m, ok := e.(*kafka.Message); !ok || m.TopicPartition.Error != nil {
				s.t.Fatalf("delivery report: %v", e)
			}
		case <-time.After(patience):
			s.t.Fatalf("%d of %d messages were reported", s.acked, len(s.sent))
		}
	}
}

// The plugin's client is librdkafka with idempotence, so the broker must take it through each kind of outage without a
// loss, a double or a change of order.
func TestBroker_TakesAnIdempotentLibrdkafkaThroughOutages(t *testing.T) {
	b := newBroker(t, Options{Topics: map[string]int{"app": 1}})
	s := newSource(t, b)
	for _, outage := range []struct {
		name       string
		begin, end func(...int) error
		lasting    time.Duration
	}{
		{"stop", b.Stop, b.Start, 100 * time.Millisecond},
		{"freeze", b.Freeze, b.Thaw, 100 * time.Millisecond},
		{"freeze past the socket's time-out", b.Freeze, b.Thaw, 2500 * time.Millisecond},
		{"disconnect", b.Disconnect, b.Start, 0},
	} {
		s.send()
		s.settle()
		s.send() // on its way, perhaps handled and not answered
		if err := outage.begin(); err != nil {
			t.Fatalf("%s: %v", outage.name, err)
		}
		s.send()
		<-time.After(outage.lasting) // the length of the outage is what is tested
		if err := outage.end(); err != nil {
			t.Fatalf("%s: %v", outage.name, err)
		}
		s.settle()
	}
	var got []string
	for _, r := range consume(t, b, len(s.sent)) {
		got = append(got, string(r.Value))
	}
	if end := b.Topics()["app"][0]; !slices.Equal(got, s.sent) || end != int64(len(s.sent)) {
		t.Errorf("records: got %q (end %d), want %q", got, end, s.sent)
	}
}

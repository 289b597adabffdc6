package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/test/e2e/embedded/broker"
)

const patience = 20 * time.Second

func newBroker(t *testing.T, opts broker.Options) *broker.Broker {
	t.Helper()
	b, err := broker.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// produce writes values to a partition of topic app, in order.
func produce(t *testing.T, b *broker.Broker, partition int32, values ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, value := range values {
		record := &kgo.Record{Topic: "app", Partition: partition, Value: []byte(value)}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatalf("producing %s: %v", value, err)
		}
	}
}

func seqs(numbers ...int) []string {
	values := make([]string, len(numbers))
	for i, n := range numbers {
		values[i] = fmt.Sprintf(`{"seq":%d,"log":"line"}`, n)
	}
	return values
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestRead_FindsLostDoubledAndLate(t *testing.T) {
	b := newBroker(t, broker.Options{Topics: map[string]int{"app": 3}, AppendTime: true})
	before := time.Now().Truncate(time.Millisecond)
	produce(t, b, 0, seqs(1, 2, 4, 3, 4)...)    // 3 is late, 4 doubled
	produce(t, b, 2, seqs(10, 12, 11, 3, 8)...) // 11 and 8 are late; this 3 is a copy only
	produce(t, b, 2, `{"seq":1.0}`, `{"log":"x"}`, `not json`, `{"seq":"7"}`)

	visited := 0
	res, err := Read(within(t, patience), Options{
		Brokers: b.Addrs(), Topic: "app", Expected: Range(2, 12),
		Visit: func(int64, *kgo.Record) { visited++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{5, 6, 7, 9}; !slices.Equal(res.Lost, want) {
		t.Errorf("lost: got %v, want %v", res.Lost, want)
	}
	if want := map[int64]int{3: 2, 4: 2}; !maps.Equal(res.Doubled, want) {
		t.Errorf("doubled: got %v, want %v", res.Doubled, want)
	}
	if want := []int64{3, 11, 8}; !slices.Equal(res.Late, want) {
		t.Errorf("late: got %v, want %v", res.Late, want)
	}
	if res.Records != 14 || len(res.Delivered) != 8 || res.Stray != 1 || res.Unreadables != 4 || visited != 10 {
		t.Errorf("got %d records, %d numbers, %d stray, %d unreadable, %d visited; want 14, 8, 1, 4, 10",
			res.Records, len(res.Delivered), res.Stray, res.Unreadables, visited)
	}
	want := []Partition{{ID: 0, Records: 5, Next: 5}, {ID: 1}, {ID: 2, Records: 9, Next: 9}}
	if !slices.Equal(res.Partitions, want) {
		t.Errorf("partitions: got %v, want %v", res.Partitions, want)
	}
	if res.FirstAppend.Before(before) || res.LastAppend.Before(res.FirstAppend) || res.LastAppend.After(time.Now()) {
		t.Errorf("appended from %v to %v, want both since %v", res.FirstAppend, res.LastAppend, before)
	}
	if res.Err() == nil {
		t.Error("it found nothing to complain about")
	}
	line := res.String()
	for _, part := range []string{
		"app: 14 records, 8 numbers, 4 lost [5 6 7 9], 2 doubled [3×2 4×2], 3 late [3 11 8], 1 not expected, 4 unreadable [",
		"; appended ", "; partitions 0:5 1:0 2:9",
	} {
		if !strings.Contains(line, part) {
			t.Errorf("line %q does not contain %q", line, part)
		}
	}
	if strings.Contains(line, "\n") {
		t.Errorf("more than one line: %q", line)
	}
}

func TestRead_EmptyAndTrimmedTopicsEnd(t *testing.T) {
	b := newBroker(t, broker.Options{Topics: map[string]int{"app": 2}})
	res, err := Read(within(t, patience), Options{Brokers: b.Addrs(), Topic: "app"})
	if err != nil || res.Records != 0 || res.Err() != nil || !res.FirstAppend.IsZero() {
		t.Errorf("empty: got %v, %v", res, err)
	}
	produce(t, b, 1, seqs(1, 2, 3)...)
	if err := b.Cluster().DeleteRecords("app", 1, 3); err != nil {
		t.Fatal(err)
	}
	res, err = Read(within(t, patience), Options{Brokers: b.Addrs(), Topic: "app", Expected: Range(1, 1)})
	if err != nil || res.Records != 0 || !slices.Equal(res.Lost, []int64{1}) {
		t.Errorf("trimmed: got %v, %v", res, err)
	}
}

func TestRead_RidesOutAnOutage(t *testing.T) {
	b := newBroker(t, broker.Options{Topics: map[string]int{"app": 1}})
	produce(t, b, 0, seqs(1, 2)...)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { started <- b.Start() })
	res, err := Read(within(t, patience), Options{Brokers: b.Addrs(), Topic: "app", Expected: Range(1, 2)})
	if err != nil || res.Err() != nil {
		t.Errorf("got %v, %v", res, err)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}

func TestRead_OtherFieldsAndFormats(t *testing.T) {
	b := newBroker(t, broker.Options{Topics: map[string]int{"app": 1}})
	produce(t, b, 0, `{"seq":1,"_n": 5 }`)
	for name, opts := range map[string]Options{
		"field":   {Field: "_n"},
		"extract": {Extract: func(r *kgo.Record) (int64, error) { return 5 + r.Offset, nil }},
	} {
		opts.Brokers, opts.Topic, opts.Expected = b.Addrs(), "app", slices.Values([]int64{5})
		if res, err := Read(within(t, patience), opts); err != nil || res.Err() != nil {
			t.Errorf("%s: got %v, %v", name, res, err)
		}
	}
}

func TestRead_SaysWhatIsMissing(t *testing.T) {
	if _, err := Read(t.Context(), Options{Topic: "app"}); err == nil {
		t.Error("no brokers: no error")
	}
	b := newBroker(t, broker.Options{})
	_, err := Read(within(t, 500*time.Millisecond), Options{Brokers: b.Addrs(), Topic: "absent"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "UNKNOWN_TOPIC_OR_PARTITION") {
		t.Errorf("absent topic: got %v", err)
	}
}

func TestWaitFor_WaitsForTopicAndNumbers(t *testing.T) {
	b := newBroker(t, broker.Options{})
	type answer struct {
		res *Result
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		res, err := WaitFor(within(t, patience), Options{Brokers: b.Addrs(), Topic: "app"}, 3)
		answers <- answer{res, err}
	}()
	if err := b.CreateTopic("app", 1, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, b, 0, seqs(1, 2, 2)...)
	select {
	case a := <-answers:
		t.Fatalf("two numbers were enough: %v, %v", a.res, a.err)
	case <-time.After(300 * time.Millisecond):
	}
	produce(t, b, 0, seqs(3)...)
	if a := <-answers; a.err != nil || len(a.res.Delivered) != 3 {
		t.Errorf("got %v, %v; want 3 numbers", a.res, a.err)
	}

	_, err := WaitFor(within(t, 300*time.Millisecond), Options{Brokers: b.Addrs(), Topic: "app"}, 4)
	want := `waiting for 4 numbers in topic "app", have 3`
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
		t.Errorf("too few: got %v", err)
	}
}

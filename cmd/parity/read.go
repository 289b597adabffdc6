package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"out_kafka_reconnect/test/e2e/parity"
)

// askEvery is how often a broker is asked how much it has.
const askEvery = 200 * time.Millisecond

// quietFor is how long nothing may arrive before that counts as all: what a section rejects never comes.
const quietFor = 3 * time.Second

// awaitEnd returns when both sides have stopped growing.
func (b *bout) awaitEnd(ctx context.Context) error {
	for _, side := range []*side{&b.builtin, &b.ours} {
		size, since := int64(-1), time.Now()
		for time.Since(since) < quietFor {
			var sum int64
			for _, marks := range side.broker.Topics() {
				for _, mark := range marks {
					sum += mark
				}
			}
			if sum != size {
				size, since = sum, time.Now()
			}
			select {
			case <-time.After(askEvery):
			case <-ctx.Done():
				return fmt.Errorf("waiting for %s to deliver, it has written %d messages: %w", side.output, size, ctx.Err())
			}
		}
	}
	return nil
}

var (
	fence = regexp.MustCompile(`fence-(\d{4})`)
	mark  = regexp.MustCompile(`([a-z-]+)#(\d{4})`)
)

// A sorter finds out of which section and record each message of a side is.
type sorter struct {
	bout *bout
	side *side
	// owners are the sections of topics that are listed, alone those of corpora of which a topic that is not listed may be.
	owners, alone map[string]*parity.Section
	// next is the record of a section whose fence comes next.
	next map[string]int
}

// read reads all topics of a side.
func (b *bout) read(ctx context.Context, side *side) error {
	s := &sorter{bout: b, side: side, owners: map[string]*parity.Section{}, alone: map[string]*parity.Section{}, next: map[string]int{}}
	side.messages = map[string][][]parity.Message{}
	for i := range b.sections {
		section := &b.sections[i]
		side.messages[section.Name] = make([][]parity.Message, len(b.corpora[section.Corpus].Records))
		for _, topic := range section.Topics() {
			s.owners[topic] = section
		}
		s.alone[section.Corpus] = section
	}
	if err := consume(ctx, side.broker.Addrs(), s.take); err != nil {
		return err
	}
	for i := range b.sections {
		section := &b.sections[i]
		c := b.corpora[section.Corpus]
		if got := s.next[section.Name]; got != len(c.Records) && !c.Marked {
			return fmt.Errorf("section %s: %d of %d fences have arrived", section.Name, got, len(c.Records))
		}
	}
	return nil
}

// take puts a message where it belongs.
func (s *sorter) take(r *kgo.Record) error {
	section := s.owners[r.Topic]
	if found := mark.FindSubmatch(r.Value); found != nil {
		if section == nil {
			section = s.alone[string(found[1])]
		}
		n, err := strconv.Atoi(string(found[2]))
		if err != nil {
			return err
		}
		return s.put(section, n, r)
	}
	if section == nil {
		return fmt.Errorf("topic %q has a message that belongs to no record: %.200q", r.Topic, r.Value)
	}
	n := s.next[section.Name]
	found := fence.FindSubmatch(r.Value)
	if found == nil {
		return s.put(section, n, r)
	}
	s.next[section.Name]++
	if at, err := strconv.Atoi(string(found[1])); err != nil || at != n {
		return fmt.Errorf("section %s: fence %s comes where %d is due", section.Name, found[1], n)
	}
	return nil
}

// put adds a message to those of a record.
func (s *sorter) put(section *parity.Section, n int, r *kgo.Record) error {
	if section == nil || n >= len(s.side.messages[section.Name]) {
		return fmt.Errorf("topic %q has a message of a record that was not sent: %.200q", r.Topic, r.Value)
	}
	all := s.side.messages[section.Name]
	all[n] = append(all[n], s.bout.message(r))
	return nil
}

func (b *bout) message(r *kgo.Record) parity.Message {
	m := parity.Message{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, h.Key+"="+string(h.Value))
	}
	// Produce times lie within the run.
	m.EventTime = r.Attrs.TimestampType() != 0 || r.Timestamp.Before(b.begin.Truncate(time.Millisecond)) || r.Timestamp.After(time.Now())
	return m
}

// consume gives each record of a broker to a function, in the order of each partition.
func consume(ctx context.Context, addrs []string, take func(*kgo.Record) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	left := int64(0)
	from := map[string]map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		left += o.Offset
		if from[o.Topic] == nil {
			from[o.Topic] = map[int32]kgo.Offset{}
		}
		from[o.Topic][o.Partition] = kgo.NewOffset().AtStart()
	})
	client.AddConsumePartitions(from)
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			if err == nil {
				err = take(r)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

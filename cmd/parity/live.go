package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/test/e2e/embedded/broker"
	"out_kafka_reconnect/test/e2e/kafka/freeport"
	"out_kafka_reconnect/test/e2e/parity"
	"out_kafka_reconnect/test/e2e/rig"
	"out_kafka_reconnect/test/e2e/secure"
)

// partitions is how many the topics have in which keys count.
const partitions = 3

// A side is one of the two outputs, with a Kafka of its own: both are told the same topics.
type side struct {
	output string
	extra  string
	broker *broker.Broker
	// messages of each section, by record.
	messages map[string][][]parity.Message
}

// A bout is one run of both.
type bout struct {
	builtin, ours side
	corpora       map[string]parity.Corpus
	sections      []parity.Section
	begin         time.Time
}

// fight runs both outputs in one Fluent Bit over all records, and returns what Kafka received from each.
func fight(ctx context.Context, plugin, program string, sections []parity.Section) (*bout, error) {
	b := &bout{
		builtin: side{output: "kafka"}, ours: side{output: "kafka_reconnect", extra: "    workers 1\n    rdkafka.client.rack password=" + secure.Password + "\n"},
		corpora: map[string]parity.Corpus{}, sections: sections, begin: time.Now(),
	}
	for _, c := range parity.Corpora() {
		b.corpora[c.Name] = c
	}
	for _, side := range []*side{&b.builtin, &b.ours} {
		if err := b.open(side); err != nil {
			return nil, err
		}
		defer side.broker.Close()
	}
	dir, err := os.MkdirTemp("", "parity-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := b.run(ctx, plugin, program, dir); err != nil {
		return nil, err
	}
	for _, side := range []*side{&b.builtin, &b.ours} {
		if err := b.read(ctx, side); err != nil {
			return nil, fmt.Errorf("reading what %s has written: %w", side.output, err)
		}
	}
	return b, nil
}

// open starts the broker of a side.
func (b *bout) open(side *side) error {
	topics := map[string]int{}
	for i := range b.sections {
		s := &b.sections[i]
		for _, topic := range s.Topics() {
			topics[topic] = 1
			if b.corpora[s.Corpus].Marked {
				topics[topic] = partitions
			}
		}
	}
	var err error
	side.broker, err = broker.New(broker.Options{
		Topics: topics, Kfake: []kfake.Opt{kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(partitions)},
	})
	return err
}

// conf holds the input and all the sections.
func (b *bout) conf(port int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "[INPUT]\n    name forward\n    listen 127.0.0.1\n    port %d\n", port)
	for i := range b.sections {
		s := &b.sections[i]
		for _, side := range []*side{&b.builtin, &b.ours} {
			fmt.Fprintf(&text, "\n[OUTPUT]\n    name %s\n    alias %s.%s\n    match %s.*\n    brokers %s\n    retry_limit no_limits\n%s",
				side.output, side.output, s.Name, s.Corpus, side.broker.Addrs()[0], side.extra)
			for _, k := range s.Config(side == &b.ours) {
				fmt.Fprintf(&text, "    %s %s\n", k.Name, k.Value)
			}
		}
	}
	return text.String()
}

// patience is how long Fluent Bit may take for all records.
const patience = time.Minute

// logTail is how many lines of Fluent Bit are shown when it fails.
const logTail = 20

// run feeds all records to Fluent Bit and returns when it has delivered them.
func (b *bout) run(ctx context.Context, plugin, program, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lease, err := freeport.Take(1)
	if err != nil {
		return err
	}
	defer lease.Release()
	port := lease.Ports()[0]
	host, err := rig.NewHost("fluent-bit", rig.HostOptions{
		Program: program, Plugin: plugin, Dir: dir, Tally: rig.NewTally(),
	})
	if err != nil {
		return err
	}
	defer func() { _ = host.Close() }()
	if err := host.Configure(rig.Conf{Outputs: b.conf(port), Service: fmt.Sprintf("flush %g", flushEvery.Seconds())}); err != nil {
		return err
	}
	if err := host.Start(ctx); err != nil {
		return err
	}
	err = b.feed(ctx, port)
	if err == nil {
		err = b.awaitEnd(ctx)
	}
	if err == nil {
		_, err = host.Stop(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w; the last lines of Fluent Bit:\n%s", err, host.LogLines().Tail(logTail))
	}
	return host.LogLines().Leak(secure.Secrets) // each of our sections holds one
}

// lot is how many records are sent between two flushes. When the flushes of thousands of chunks end at once, the engine of
// Fluent Bit 5.1.1 waits for itself at a full pipe.
const lot = 40

// flushEvery is the flush interval of Fluent Bit.
const flushEvery = 200 * time.Millisecond

// feed sends each record with a tag of its own, and so in a chunk of its own: a record that makes an output give up a chunk
// takes nothing with it. A fence follows each.
func (b *bout) feed(ctx context.Context, port int) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	send := func(tag string, chunk []byte) {
		message := chunktest.Bin(chunktest.Str(chunktest.Array(nil, 2), tag), string(chunk))
		if err == nil {
			_, err = conn.Write(message)
		}
	}
	for _, c := range parity.Corpora() {
		for n, r := range c.Records {
			if n%lot == lot-1 {
				time.Sleep(flushEvery)
			}
			send(fmt.Sprintf("%s.%04d.record", c.Name, n), r.Chunk)
			if !c.Marked {
				send(fmt.Sprintf("%s.%04d.fence", c.Name, n), c.FenceChunk(n))
			}
		}
	}
	return errors.Join(err, conn.Close())
}

// Command embedded runs an embedded Kafka broker that is stopped, started and frozen by commands.
//
// It is for tests whose client is another program: the broker ends when its standard input does, so it cannot outlive the
// test. Each line on standard input is one command, each answered by one line of JSON on standard output:
//
//	start, stop    open the ports; shut them and close all connections, keeping the data
//	freeze, thaw   stop answering, without closing anything; go on
//	disconnect     close all connections and keep listening
//	topics         the high watermark of each partition
//	status         nothing but the answer
//	quit           end
//
// A command may name nodes: "stop 0 2". The first line of output comes without a command, when the broker is ready.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"

	"out_kafka_reconnect/test/e2e/embedded/broker"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// status is the answer to every command.
type status struct {
	OK         bool               `json:"ok"`
	Command    string             `json:"command"`
	Error      string             `json:"error,omitempty"`
	State      string             `json:"state"`
	Addrs      []string           `json:"addrs"`
	Connects   int                `json:"connects"`
	Open       int                `json:"open"`
	IdleClosed int                `json:"idle_closed"`
	Topics     map[string][]int64 `json:"topics,omitempty"`
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	opts, err := parse(args, stderr)
	if err != nil {
		return 2
	}
	b, err := broker.New(opts)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "embedded:", err)
		return 1
	}
	defer b.Close()

	out := json.NewEncoder(stdout)
	if err := out.Encode(answer(b, "ready", nil)); err != nil {
		return 1
	}
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if err := out.Encode(answer(b, words[0], obey(b, words[0], words[1:]))); err != nil {
			return 1
		}
		if words[0] == "quit" {
			break
		}
	}
	return 0
}

func parse(args []string, stderr io.Writer) (broker.Options, error) {
	opts := broker.Options{Topics: map[string]int{}}
	flags := flag.NewFlagSet("embedded", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("port", "port of a node; repeat it for more nodes (default: one node, a free port)", func(s string) error {
		port, err := strconv.ParseUint(s, 10, 16)
		opts.Ports = append(opts.Ports, int(port))
		return err
	})
	flags.Func("topic", "topic to make, as name:partitions; repeat it for more", func(s string) error {
		name, count, found := strings.Cut(s, ":")
		partitions, err := strconv.Atoi(count)
		if !found || name == "" || err != nil || partitions < 1 {
			return fmt.Errorf("%q is not name:partitions", s)
		}
		opts.Topics[name] = partitions
		return nil
	})
	flags.DurationVar(&opts.IdleClose, "idle", 0, "close connections that were idle for so long (default: never)")
	flags.BoolVar(&opts.AppendTime, "append-time", false, "stamp records with the time of their append")
	flags.BoolVar(&opts.Discard, "discard", false, "acknowledge records and keep none, for benchmarks")
	flags.BoolVar(&opts.StartDown, "down", false, "refuse connections until the first start")
	flags.Func("max-bytes", "largest batch that is taken, message.max.bytes", func(s string) error {
		opts.Kfake = append(opts.Kfake, kfake.BrokerConfigs(map[string]string{"message.max.bytes": s}))
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("embedded: unexpected argument %q", flags.Arg(0))
		_, _ = fmt.Fprintln(stderr, err)
		return opts, err
	}
	return opts, nil
}

// obey does one command.
func obey(b *broker.Broker, command string, words []string) error {
	nodes := make([]int, len(words))
	for i, word := range words {
		node, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("%s: %q is not a node number", command, word)
		}
		nodes[i] = node
	}
	switch command {
	case "start":
		return b.Start(nodes...)
	case "stop":
		return b.Stop(nodes...)
	case "freeze":
		return b.Freeze(nodes...)
	case "thaw":
		return b.Thaw(nodes...)
	case "disconnect":
		return b.Disconnect(nodes...)
	case "topics", "status", "quit":
		return nil
	}
	return fmt.Errorf("%q is unknown; allowed: start, stop, freeze, thaw, disconnect, topics, status, quit", command)
}

func answer(b *broker.Broker, command string, err error) status {
	stats := b.Stats()
	s := status{
		OK:         err == nil,
		Command:    command,
		State:      b.State(),
		Addrs:      b.Addrs(),
		Connects:   stats.Connects,
		Open:       stats.Open,
		IdleClosed: stats.IdleClosed,
	}
	if err != nil {
		s.Error = err.Error()
	}
	if command == "topics" {
		s.Topics = b.Topics()
	}
	return s
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// discarding is a broker in a process of its own, so that its work is not counted. It acknowledges everything and keeps
// nothing.
type discarding struct {
	addr string
	cmd  *exec.Cmd
	in   io.WriteCloser // it ends with its input
}

// brokerProgram is test/e2e/embedded, as make broker leaves it.
const brokerProgram = "build/embedded"

// startBroker starts one with so many topics.
func startBroker(ctx context.Context, topics int) (*discarding, error) {
	args := []string{"-discard"}
	for i := range topics {
		args = append(args, "-topic", topicName(i)+":"+strconv.Itoa(partitions))
	}
	d := &discarding{cmd: exec.CommandContext(ctx, brokerProgram, args...)}
	d.cmd.Stderr = os.Stderr
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		d.in, err = d.cmd.StdinPipe()
	}
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w; run: make broker", brokerProgram, err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct {
		Addrs []string `json:"addrs"`
	}
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err == nil && len(ready.Addrs) == 0 {
		err = fmt.Errorf("it says %s", line)
	}
	if err != nil {
		d.stop()
		return nil, fmt.Errorf("starting %s: %w", brokerProgram, err)
	}
	d.addr = ready.Addrs[0]
	return d, nil
}

// partitions is how many a topic has.
const partitions = 3

func (d *discarding) stop() {
	_ = d.in.Close()
	_ = d.cmd.Wait() // it has nothing to tell
}

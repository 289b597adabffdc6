package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"out_kafka_reconnect/plugin"
	"out_kafka_reconnect/test/e2e/kafka/freeport"
	"out_kafka_reconnect/test/e2e/rig"
)

const (
	// profiled is how long the path is profiled.
	profiled = 10 * time.Second
	// lockRate is of how many waits for a lock one is noted, waitRate from how many nanoseconds on another wait is.
	lockRate = 5
	waitRate = 10_000
)

// profile flushes chunks to a broker in another process and leaves three profiles, each with its flame graph as a page
// that any browser shows. Threads of librdkafka are in the CPU profile as external code.
func profile(ctx context.Context, s settings, stdout io.Writer) error {
	if err := os.MkdirAll(s.profile, 0o755); err != nil {
		return err
	}
	broker, err := startBroker(ctx, 1)
	if err != nil {
		return err
	}
	defer broker.stop()
	in, err := open(section{"brokers": broker.addr, "topics": topicName(0)}, nil, stdout)
	if err != nil {
		return err
	}
	defer in.Close()
	like := makeChunk(usual.perChunk, 0)
	if err := flushAll(ctx, []*plugin.Instance{in}, usual.callers, 2*usual.callers, like); err != nil {
		return err
	}
	runtime.SetMutexProfileFraction(lockRate)
	runtime.SetBlockProfileRate(waitRate)
	cpu, err := os.Create(filepath.Join(s.profile, "cpu.pprof"))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	records := 0
	for began := time.Now(); time.Since(began) < profiled; records += 100 * usual.perChunk {
		if err = flushAll(ctx, []*plugin.Instance{in}, usual.callers, 100, like); err != nil {
			break
		}
	}
	pprof.StopCPUProfile()
	if err == nil {
		err = cpu.Close()
	}
	if err != nil {
		return err
	}
	for _, name := range []string{"mutex", "block"} {
		f, err := os.Create(filepath.Join(s.profile, name+".pprof"))
		if err == nil {
			err = pprof.Lookup(name).WriteTo(f, 0)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(stdout, "%d records in %s:\n", records, profiled)
	for _, name := range []string{"cpu", "mutex", "block"} {
		page, err := flameGraph(ctx, filepath.Join(s.profile, name+".pprof"))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(stdout, page)
	}
	return nil
}

// flameGraph leaves the flame graph of a profile beside it, as the page that go tool pprof serves: it needs nothing else.
func flameGraph(ctx context.Context, path string) (page string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	lease, err := freeport.Take(1)
	if err != nil {
		return "", err
	}
	defer lease.Release()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lease.Ports()[0]))
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-no_browser", "-http="+address, path)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt) // go ends with its tool
		_ = cmd.Wait()
	}()
	page = path + ".html"
	for {
		body, err := get(ctx, "http://"+address+"/ui/flamegraph")
		if err == nil {
			return page, os.WriteFile(page, body, 0o644)
		}
		if rig.Pause(ctx, 50*time.Millisecond) != nil { // it was not up yet
			return "", fmt.Errorf("asking go tool pprof for the flame graph of %s: %w", path, err)
		}
	}
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(answer.Body)
}

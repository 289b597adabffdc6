package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"time"

	"out_kafka_reconnect/plugin"
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
	if err := flushAll([]*plugin.Instance{in}, usual.callers, 2*usual.callers, like); err != nil {
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
	for began := time.Now(); time.Since(began) < profiled && ctx.Err() == nil; records += 100 * usual.perChunk {
		if err = flushAll([]*plugin.Instance{in}, usual.callers, 100, like); err != nil {
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

var served = regexp.MustCompile(`http://\S+`)

// flameGraph leaves the flame graph of a profile beside it, as the page that go tool pprof serves: it needs nothing else.
func flameGraph(ctx context.Context, path string) (page string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-no_browser", "-http=127.0.0.1:0", path)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	var url string
	for lines := bufio.NewScanner(said); url == "" && lines.Scan(); {
		url = served.FindString(lines.Text())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ui/flamegraph", nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking go tool pprof for the flame graph of %s: %w", path, err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking go tool pprof for the flame graph of %s: %s, %w", path, answer.Status, err)
	}
	page = path + ".html"
	return page, os.WriteFile(page, body.Bytes(), 0o644)
}

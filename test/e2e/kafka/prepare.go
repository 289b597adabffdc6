package kafka

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// prepare makes what speeds up every later start. Requires the lock.
func (d *Distribution) prepare(ctx context.Context) error {
	if _, err := os.Stat(d.templatePath()); err != nil {
		if err := d.makeTemplate(ctx); err != nil {
			return err
		}
	}
	archive := filepath.Join(d.dir, "classes-"+d.archiveKey()+".jsa")
	if _, err := os.Stat(archive); err != nil {
		if err := d.makeArchive(ctx, archive); err != nil {
			return err
		}
	}
	d.archive = archive
	return nil
}

// templatePath is the bootstrap checkpoint that every new node gets a copy of.
func (d *Distribution) templatePath() string { return filepath.Join(d.dir, "bootstrap.checkpoint") }

// makeTemplate formats a node with Kafka's own tool and keeps the bootstrap checkpoint, which holds the feature levels of
// a new cluster and nothing of the node. Copying it spares each new node the second that the tool takes, and a node without
// one would run with the oldest feature levels, unlike the users' clusters.
func (d *Distribution) makeTemplate(ctx context.Context) error {
	dir, err := os.MkdirTemp(d.dir, "format-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	data := filepath.Join(dir, "data")
	config := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(config, []byte(strings.Join([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@127.0.0.1:9093",
		"listeners=CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093", "controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name=CLIENT", "log.dirs=" + data, "",
	}, "\n")), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, d.java.path, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
		"-cp", d.classPath(), "kafka.tools.StorageTool", "format", "--cluster-id", newID(), "--config", config)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("formatting a template: %w", outputError(err, output))
	}
	checkpoint, err := os.ReadFile(filepath.Join(data, "bootstrap.checkpoint"))
	if err != nil {
		return fmt.Errorf("formatting a template: %w", err)
	}
	return writeWhole(d.templatePath(), checkpoint)
}

// archiveKey changes with whatever makes an archive unusable: the Java, its own archive, and the class path. The JVM would
// ignore a wrong one without a word and start slowly.
func (d *Distribution) archiveKey() string {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, d.java.path, d.java.version, d.classPath())
	for _, path := range append([]string{
		filepath.Join(filepath.Dir(filepath.Dir(d.java.path)), "lib", "server", "classes.jsa"),
	}, d.jars...) {
		if info, err := os.Stat(path); err == nil {
			_, _ = fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// makeArchive runs one node through a small life, and has the JVM archive the classes that it loaded on the way. It
// halves both the time and the CPU of every start.
func (d *Distribution) makeArchive(ctx context.Context, archive string) error {
	part, dir := archive+".part", filepath.Join(d.dir, "train")
	for _, stale := range []string{part, dir} {
		if err := os.RemoveAll(stale); err != nil {
			return err
		}
	}
	c, err := New(d, Options{Dir: dir, jvmFlags: []string{"-XX:ArchiveClassesAtExit=" + part}})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := c.WaitReady(ctx); err != nil {
		return err
	}
	if err := exercise(ctx, c); err != nil {
		return fmt.Errorf("making the archive of loaded classes: %w", err)
	}
	if err := c.Stop(); err != nil {
		return err
	}
	if err := os.Rename(part, archive); err != nil {
		return fmt.Errorf("making the archive of loaded classes: %w; the node said:\n%s", err, c.Log(1, 20))
	}
	return nil
}

// exercise makes a node load what it needs to create a topic, to append and to be read.
func exercise(ctx context.Context, c *Cluster) error {
	if err := c.CreateTopic(ctx, "app", 1, 1, nil); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.ConsumeTopics("app"), kgo.DefaultProduceTopic("app"))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
		return err
	}
	return client.PollFetches(ctx).Err0()
}

func (d *Distribution) classPath() string { return strings.Join(d.jars, string(os.PathListSeparator)) }

package kafka

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Version is the Kafka that Install fetches. It is in pom.xml too; a test compares the two.
const Version = "4.3.1"

// copyDependencies is the goal that fetches the jars, with the version that was tried.
const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

//go:embed pom.xml
var pom []byte

// A Distribution is an installed Kafka, ready for New.
type Distribution struct {
	dir     string
	java    java
	jars    []string // in the order of the class path, which an archive of loaded classes depends on
	archive string   // the archive of loaded classes; empty only while it is being made
}

// manifest is written last, so a cache without one, or one whose files do not match it, is not whole.
type manifest struct {
	Kafka string `json:"kafka"`
	Jars  []jar  `json:"jars"`
}

type jar struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Install returns the Kafka in cacheDir and puts it there first if need be, which takes about half a minute and the
// network. An empty cacheDir means out_kafka_reconnect/kafka-VERSION in the user's cache folder. Test binaries that
// install at the same time wait for each other. A missing tool is an error that says what to install.
func Install(ctx context.Context, cacheDir string) (*Distribution, error) {
	if cacheDir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding the cache folder: %w; set XDG_CACHE_HOME", err)
		}
		cacheDir = filepath.Join(base, "out_kafka_reconnect", "kafka-"+Version)
	}
	cacheDir, err := filepath.Abs(cacheDir)
	if err != nil {
		return nil, fmt.Errorf("finding the cache folder: %w", err)
	}
	j, err := findJava(ctx)
	if err != nil {
		return nil, fmt.Errorf("installing kafka: %w", err)
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("installing kafka: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(cacheDir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("installing kafka: %w", err)
	}
	defer unlock()

	d := &Distribution{dir: cacheDir, java: j}
	if err := d.fetch(ctx); err != nil {
		return nil, fmt.Errorf("installing kafka: %w", err)
	}
	if err := d.prepare(ctx); err != nil {
		return nil, fmt.Errorf("installing kafka: %w", err)
	}
	return d, nil
}

// lock takes a file lock that ends with the process at the latest. It asks again and again, because a blocking call could
// not be called off.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (d *Distribution) libs() string { return filepath.Join(d.dir, "libs") }

// fetch makes sure that the jars are there. Requires the lock.
func (d *Distribution) fetch(ctx context.Context) error {
	if d.readManifest() == nil {
		return nil
	}
	mvn, err := findMaven()
	if err != nil {
		return err
	}
	if err := d.removeStale(); err != nil {
		return err
	}
	pomPath := filepath.Join(d.dir, "pom.xml")
	if err := os.WriteFile(pomPath, pom, 0o644); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(d.dir, "fetch-")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-f", pomPath, copyDependencies,
		"-DincludeScope=runtime", "-DoutputDirectory="+fresh)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetching kafka %s with maven: %w", Version, outputError(err, output))
	}
	if err := os.Rename(fresh, d.libs()); err != nil {
		return err
	}
	if err := d.writeManifest(); err != nil {
		return err
	}
	return d.readManifest()
}

// removeStale removes an install that is not whole, and what installs that were killed left behind. The Maven of one of
// those may still be at work, which is why each writes to a folder of its own.
func (d *Distribution) removeStale() error {
	stale := []string{d.manifestPath(), d.templatePath(), d.libs()}
	for _, pattern := range []string{"fetch-*", "format-*", "*.part", "*.jsa"} {
		found, err := filepath.Glob(filepath.Join(d.dir, pattern))
		if err != nil {
			return err
		}
		stale = append(stale, found...)
	}
	for _, path := range stale {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func (d *Distribution) manifestPath() string { return filepath.Join(d.dir, "installed.json") }

// readManifest returns nil when the cache is whole, and then d.jars is set.
func (d *Distribution) readManifest() error {
	data, err := os.ReadFile(d.manifestPath())
	if err != nil {
		return err
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("reading %s: %w", d.manifestPath(), err)
	}
	if m.Kafka != Version || len(m.Jars) == 0 {
		return fmt.Errorf("reading %s: it is about kafka %q with %d jars", d.manifestPath(), m.Kafka, len(m.Jars))
	}
	jars := make([]string, len(m.Jars))
	for i, j := range m.Jars {
		jars[i] = filepath.Join(d.libs(), j.Name)
		info, err := os.Stat(jars[i])
		if err != nil {
			return err
		}
		if info.Size() != j.Size {
			return fmt.Errorf("checking %s: it has %d bytes, not %d", jars[i], info.Size(), j.Size)
		}
	}
	d.jars = jars
	return nil
}

func (d *Distribution) writeManifest() error {
	entries, err := os.ReadDir(d.libs()) // sorted by name
	if err != nil {
		return err
	}
	m := manifest{Kafka: Version}
	broker := "kafka_2.13-" + Version + ".jar"
	found := false
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".jar") {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		m.Jars = append(m.Jars, jar{Name: entry.Name(), Size: info.Size()})
		found = found || entry.Name() == broker
	}
	if !found {
		return fmt.Errorf("checking %s: maven left no %s there: %w", d.libs(), broker, fs.ErrNotExist)
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(d.manifestPath(), data)
}

// writeWhole leaves the old file or the new one, never a half.
func writeWhole(path string, data []byte) error {
	if err := os.WriteFile(path+".part", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

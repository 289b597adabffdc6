package kafka

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPom_NamesTheVersionOfTheCache(t *testing.T) {
	if !strings.Contains(string(pom), "<version>"+Version+"</version>") {
		t.Errorf("pom.xml does not name version %s", Version)
	}
}

func TestInstall_MissingJavaIsAnErrorThatHelps(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, home := range []string{"", t.TempDir()} {
		t.Setenv("JAVA_HOME", home)
		_, err := Install(t.Context(), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "apt-get install openjdk-17-jdk-headless") {
			t.Errorf("JAVA_HOME %q: got %v", home, err)
		}
	}
}

// fakeTool puts a shell script into a folder.
func fakeTool(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestInstall_OldJavaAndMissingMavenAreErrorsThatHelp(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv("JAVA_HOME", "")
	for _, step := range []struct{ answer, want string }{
		{`java version "1.8.0_402"`, "it is version 8; install Java 17"},
		{`openjdk version "17.0.15" 2025-04-15`, "apt-get install maven"},
	} {
		fakeTool(t, bin, "java", "echo '"+step.answer+"' >&2")
		if _, err := Install(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: got %v, want %q in it", step.answer, err, step.want)
		}
	}
}

func TestMajorVersion(t *testing.T) {
	for answer, want := range map[string]int{
		`openjdk version "17.0.15" 2025-04-15`: 17,
		`openjdk version "21" 2023-09-19`:      21,
		`java version "1.8.0_402"`:             8,
		`segmentation fault`:                   0,
	} {
		if got := majorVersion(answer); got != want {
			t.Errorf("%q: got %d, want %d", answer, got, want)
		}
	}
}

func TestManifest_HalfAnInstallIsNotWhole(t *testing.T) {
	broker := "kafka_2.13-" + Version + ".jar"
	fill := func(t *testing.T, names ...string) *Distribution {
		t.Helper()
		d := &Distribution{dir: t.TempDir()}
		if err := os.Mkdir(d.libs(), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(d.libs(), name), []byte("jar"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}

	whole := fill(t, "a.jar", broker, "README")
	if err := whole.writeManifest(); err != nil {
		t.Fatal(err)
	}
	if err := whole.readManifest(); err != nil || len(whole.jars) != 2 {
		t.Errorf("whole: got %v with jars %q", err, whole.jars)
	}
	if fill(t, broker).readManifest() == nil {
		t.Error("jars without a manifest were taken for whole")
	}
	if fill(t, "a.jar").writeManifest() == nil {
		t.Error("jars without the broker were taken for whole")
	}
	if err := os.Truncate(filepath.Join(whole.libs(), broker), 1); err != nil {
		t.Fatal(err)
	}
	if whole.readManifest() == nil {
		t.Error("a cut jar was taken for whole")
	}
	if err := os.Remove(filepath.Join(whole.libs(), broker)); err != nil {
		t.Fatal(err)
	}
	if whole.readManifest() == nil {
		t.Error("a missing jar was taken for whole")
	}
}

func TestLock_OneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("locking twice: got %v", err)
	}
	unlock()
	unlock, err = lock(t.Context(), path)
	if err != nil {
		t.Fatalf("locking after unlocking: %v", err)
	}
	unlock()
}

package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// oldestJava is what Kafka 4 needs for a broker.
const oldestJava = 17

const (
	javaHint = "install Java 17 or newer (Debian: apt-get install openjdk-17-jdk-headless, or default-jdk-headless where " +
		"that has no candidate), or set JAVA_HOME"
	mavenHint = "install Maven (Debian: apt-get install maven); it is needed once, to fill the cache"
)

// java is the Java that runs the nodes.
type java struct {
	path    string
	version string // the whole answer of java -version
}

// findJava looks in JAVA_HOME, then in PATH.
func findJava(ctx context.Context) (java, error) {
	path, err := exec.LookPath("java")
	if home := os.Getenv("JAVA_HOME"); home != "" {
		path, err = exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	if err != nil {
		return java{}, fmt.Errorf("looking for java: %w; %s", err, javaHint)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return java{}, fmt.Errorf("looking for java: %w; %s", err, javaHint)
	}
	version, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if err != nil {
		return java{}, fmt.Errorf("running %s -version: %w; %s", path, err, javaHint)
	}
	if major := majorVersion(string(version)); major < oldestJava {
		return java{}, fmt.Errorf("checking %s: it is version %d; %s", path, major, javaHint)
	}
	return java{path: path, version: string(version)}, nil
}

var versionPattern = regexp.MustCompile(`version "(?:1\.)?(\d+)`)

// majorVersion returns 0 when the answer of java -version cannot be read.
func majorVersion(answer string) int {
	match := versionPattern.FindStringSubmatch(answer)
	if match == nil {
		return 0
	}
	major, err := strconv.Atoi(match[1])
	if err != nil {
		return 0
	}
	return major
}

func findMaven() (string, error) {
	path, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("looking for mvn: %w; %s", err, mavenHint)
	}
	return path, nil
}

// outputError adds the end of what a program printed to the error with which it ended.
func outputError(err error, output []byte) error {
	return errors.Join(err, errors.New(tail(output, 20)))
}

// Compile compiles one Java source against Kafka's classes, into a folder for Options.ClassPath.
func (d *Distribution) Compile(ctx context.Context, dir, name string, source []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, source, 0o644); err != nil {
		return err
	}
	javac, err := exec.LookPath(filepath.Join(filepath.Dir(d.java.path), "javac"))
	if err != nil {
		return fmt.Errorf("looking for javac: %w; %s", err, javaHint)
	}
	output, err := exec.CommandContext(ctx, javac, "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "-cp", d.classPath(), "-d", dir, path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("compiling %s: %w", name, outputError(err, output))
	}
	return nil
}

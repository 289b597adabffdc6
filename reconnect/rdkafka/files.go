package rdkafka

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileProperties name files, or a folder of them, that librdkafka reads when a client is
// opened and never again. The keytab and the assertion of OAuth are not among them: they
// are read anew with each ticket and token.
var fileProperties = []string{
	"https.ca.location",
	"sasl.oauthbearer.assertion.private.key.file",
	"ssl.ca.location",
	"ssl.certificate.location",
	"ssl.crl.location",
	"ssl.key.location",
	"ssl.keystore.location",
}

// maxFile bounds what is read of one file: certificates and keys are a few kilobytes, a
// bundle of all authorities some hundred.
const maxFile = 4 << 20

// files are the contents of the files of a configuration, by path, as hashes. Content and
// not time of change: orchestrators swap links, and write what is the same again.
type files map[string][sha256.Size]byte

// lookAt reads the files that the properties name, and those that hold a property.
func lookAt(properties, holding []Property) files {
	seen := files{}
	for _, p := range properties {
		if slices.Contains(fileProperties, p.Name) && p.Value != "" && p.Value != "probe" {
			seen[p.Value] = contents(p.Value)
		}
	}
	for _, p := range holding {
		seen[p.Value] = contents(p.Value)
	}
	return seen
}

// changed names the paths whose content is another by now, or returns nothing.
func (f files) changed() string {
	var paths []string
	for path, was := range f {
		if contents(path) != was {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return strings.Join(paths, ", ")
}

// contents is the hash of a file or of the files of a folder. What can't be read has a hash
// too, so that its return is a change.
func contents(path string) [sha256.Size]byte {
	h := sha256.New()
	paths := []string{path}
	if entries, err := os.ReadDir(path); err == nil {
		paths = nil
		for _, e := range entries {
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	}
	for _, p := range paths {
		fmt.Fprintf(h, "%q\n", p)
		if err := copyFile(h, p); err != nil {
			fmt.Fprintf(h, "unreadable: %v\n", errors.Is(err, os.ErrNotExist))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func copyFile(w io.Writer, path string) error {
	// Before it is opened: a pipe would block, and the client reads no folder in a folder.
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	_, err = io.Copy(w, io.LimitReader(f, maxFile))
	return err
}

// defaultPort is librdkafka's.
const defaultPort = "9092"

// configured are the addresses of the configuration, as the gate's table names them.
func configured(properties []Property) map[string]bool {
	addrs := map[string]bool{}
	for _, p := range properties {
		if p.Name != "bootstrap.servers" && p.Name != "metadata.broker.list" {
			continue
		}
		for item := range strings.SplitSeq(p.Value, ",") {
			if _, after, ok := strings.Cut(item, "://"); ok {
				item = after
			}
			item = strings.TrimSpace(item)
			if host, port, err := net.SplitHostPort(item); err == nil {
				addrs[host+":"+port] = true
			} else if item != "" {
				addrs[strings.Trim(item, "[]")+":"+defaultPort] = true
			}
		}
	}
	return addrs
}

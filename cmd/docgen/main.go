// Command docgen writes the generated files of the repository: the parts of the
// documentation that come from tables in the code, and the list of librdkafka's
// properties that the code embeds. With -check it writes nothing and tells which files
// are stale.
//
// A new generated file, or a generated part of a file, is one more line in documents.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

// remedy is what to do about a stale file.
const remedy = "make docs"

func main() {
	root := flag.String("C", ".", "the root `folder` of the repository")
	check := flag.Bool("check", false, "write nothing; exit with 1 if a file is stale")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	stale := false
	for _, d := range documents() {
		changed, err := d.update(*root, !*check)
		switch {
		case errors.Is(err, errNoLibrary):
			fmt.Fprintf(os.Stderr, "docgen: %s: skipped: %v\n", d.path, err)
		case err != nil:
			fmt.Fprintf(os.Stderr, "docgen: %s: %v\n", d.path, err)
			os.Exit(2)
		case changed && *check:
			fmt.Fprintf(os.Stderr, "docgen: %s is stale; run: %s\n", d.path, remedy)
			stale = true
		case changed:
			fmt.Println("docgen: wrote", d.path)
		}
	}
	if stale {
		os.Exit(1)
	}
}

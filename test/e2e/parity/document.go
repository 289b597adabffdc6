package parity

import (
	"fmt"
	"os"
	"strings"
)

// The table of the document stands between these.
const (
	tableBegin = "<!-- make parity writes what follows -->\n"
	tableEnd   = "<!-- end of what make parity writes -->\n"
)

// RewriteDocument puts a table into a page, in place of the one that is there.
func RewriteDocument(path, version, table string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), tableBegin)
	_, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table", path)
	}
	text = fmt.Appendf(nil, "%s%s\nWith Fluent Bit %s:\n\n%s\n%s%s", head, tableBegin, version, table, tableEnd, tail)
	return os.WriteFile(path, text, 0o644)
}

package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shown is how many numbers of a list are printed.
const shown = 10

const clock = "15:04:05.000"

// String returns one line that says what is there and what is wrong.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d records, %d numbers", r.Topic, r.Records, len(r.Delivered))
	fmt.Fprintf(&b, ", %d lost%s", len(r.Lost), list(r.Lost, func(n int64) string { return fmt.Sprint(n) }))
	doubled := slices.Sorted(maps.Keys(r.Doubled))
	fmt.Fprintf(&b, ", %d doubled%s", len(doubled), list(doubled, func(n int64) string {
		return fmt.Sprintf("%d×%d", n, r.Doubled[n])
	}))
	fmt.Fprintf(&b, ", %d late%s", len(r.Late), list(r.Late, func(n int64) string { return fmt.Sprint(n) }))
	if r.Stray > 0 {
		fmt.Fprintf(&b, ", %d not expected", r.Stray)
	}
	if r.Unreadables > 0 {
		fmt.Fprintf(&b, ", %d unreadable [%s]", r.Unreadables, strings.Join(r.Unreadable, "; "))
	}
	if !r.FirstAppend.IsZero() {
		fmt.Fprintf(&b, "; appended %s to %s", r.FirstAppend.Format(clock), r.LastAppend.Format(clock))
	}
	b.WriteString("; partitions")
	for _, p := range r.Partitions {
		fmt.Fprintf(&b, " %d:%d", p.ID, p.Records)
	}
	return b.String()
}

func list(numbers []int64, show func(int64) string) string {
	if len(numbers) == 0 {
		return ""
	}
	words := make([]string, 0, shown+1)
	for _, n := range numbers[:min(len(numbers), shown)] {
		words = append(words, show(n))
	}
	if len(numbers) > shown {
		words = append(words, "…")
	}
	return " [" + strings.Join(words, " ") + "]"
}

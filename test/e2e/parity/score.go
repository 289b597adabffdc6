package parity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Score is what the judge found.
type Score struct {
	sections []sectionScore
	reasons  map[*Reason]int
	// Worse are the records that are worse, with the messages of both.
	Worse []string
}

type sectionScore struct {
	name     string
	verdicts [Worse + 1]int
	reasons  []*Reason
}

// Add adds a judgement.
func (s *Score) Add(section *Section, r Record, builtin, ours []Message) {
	if n := len(s.sections); n == 0 || s.sections[n-1].name != section.Name {
		s.sections = append(s.sections, sectionScore{name: section.Name})
	}
	j := Judge(section, r, builtin, ours)
	last := &s.sections[len(s.sections)-1]
	last.verdicts[j.Verdict]++
	if s.reasons == nil {
		s.reasons = map[*Reason]int{}
	}
	for _, reason := range j.Reasons {
		s.reasons[reason]++
		if !slices.Contains(last.reasons, reason) {
			last.reasons = append(last.reasons, reason)
		}
	}
	if j.Verdict == Worse {
		text := fmt.Sprintf("section %s, record %q:", section.Name, r.Name)
		for _, side := range []struct {
			name     string
			messages []Message
		}{{"built-in", builtin}, {"ours", ours}} {
			for _, m := range side.messages {
				text += fmt.Sprintf("\n  %-8s  %s", side.name, &m)
			}
			if len(side.messages) == 0 {
				text += fmt.Sprintf("\n  %-8s  no message", side.name)
			}
		}
		s.Worse = append(s.Worse, text)
	}
}

// Unused are the reasons that no record needed. They are out of date.
func (s *Score) Unused() (unused []string) {
	for _, r := range allReasons {
		if s.reasons[r] == 0 {
			unused = append(unused, r.Name)
		}
	}
	return unused
}

// Markdown is the table, and the reasons behind it.
func (s *Score) Markdown() string {
	var b strings.Builder
	b.WriteString("| section | records | equal | same | better | differs | worse | reasons |\n|---|---|---|---|---|---|---|---|\n")
	var sum [Worse + 1]int
	row := func(name string, v [Worse + 1]int, reasons string) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %s |\n",
			name, v[Equal]+v[Same]+v[Better]+v[Differs]+v[Worse], v[Equal], v[Same], v[Better], v[Differs], v[Worse], reasons)
	}
	for _, one := range s.sections {
		var names []string
		for _, r := range one.reasons {
			names = append(names, r.Name)
		}
		slices.Sort(names)
		row(one.name, one.verdicts, strings.Join(names, ", "))
		for i, n := range one.verdicts {
			sum[i] += n
		}
	}
	row("all", sum, "")
	b.WriteString("\n| reason | records | |\n|---|---|---|\n")
	for _, r := range slices.SortedFunc(slices.Values(allReasons), func(a, b *Reason) int { return cmp.Compare(a.Name, b.Name) }) {
		kind := map[Verdict]string{Same: " (same)", Differs: " (differs)"}[r.Verdict]
		fmt.Fprintf(&b, "| %s%s | %d | %s |\n", r.Name, kind, s.reasons[r], r.Text)
	}
	return b.String()
}

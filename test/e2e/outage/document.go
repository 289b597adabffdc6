package outage

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"out_kafka_reconnect/test/chart"
)

//go:embed reliability_head.md
var documentHead string

// document returns docs/reliability.md.
func document(results []*Result) string {
	var b strings.Builder
	b.WriteString(documentHead)
	b.WriteString("## Results\n\n" + summary(results) + "\n\n")
	b.WriteString("Where a bar has a number of its own in a run it stands behind the `/`.\n\n")
	b.WriteString("| fault | host | logged | lost | doubled | late, in its chunk | first delivery s | drained s | attempts | lines | RSS MiB | built-in output | |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, run := range Matrix() {
		for _, r := range of(results, run) {
			b.WriteString(row(run, r))
		}
	}
	b.WriteString(notKept(results))
	b.WriteString("\n## Run by run\n\nRecords logged and acknowledged (written by the broker) over time; below, the state of the plugin as its log tells it.\n")
	for _, run := range Matrix() {
		found := of(results, run)
		if len(found) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", run.Name, run.Title)
		for _, r := range found {
			fmt.Fprintf(&b, "![%s in %s](outage/%s)\n", run.Name, hostName(r.Host), r.pictureFile())
		}
	}
	return b.String()
}

// of returns the results of a run.
func of(results []*Result, run Run) []*Result {
	return slices.DeleteFunc(slices.Clone(results), func(r *Result) bool { return r.Run != run.Name })
}

// pictureFile is the name of the file with the plot.
func (r *Result) pictureFile() string { return r.Run + "." + r.Host + ".svg" }

// summary is one sentence about all runs.
func summary(results []*Result) string {
	var accepted, lost, doubled, allowed, failed int
	for _, r := range results {
		accepted, lost, doubled, allowed = accepted+r.Accepted, lost+r.Lost, doubled+r.Doubled, allowed+r.DoubledAllowed
		if len(r.Failures) > 0 {
			failed++
		}
	}
	kept := "All bars were kept in every run."
	if failed > 0 {
		kept = fmt.Sprintf("All bars were kept in %d runs, and not in %d.", len(results)-failed, failed)
	}
	return fmt.Sprintf("%d runs, %s records logged: **%s lost**, **%s doubled** (%s in flight when the agent ended). %s",
		len(results), chart.Thousands(accepted), chart.Thousands(lost), chart.Thousands(doubled), chart.Thousands(allowed), kept)
}

func row(run Run, r *Result) string {
	doubled := chart.Thousands(r.Doubled)
	if run.Bars.InFlight {
		doubled += " / " + chart.Thousands(r.DoubledAllowed)
	}
	inChunk := chart.Thousands(r.LateInChunk)
	if !r.Exact {
		inChunk = "≤ " + inChunk
	}
	verdict := "kept"
	if len(r.Failures) > 0 {
		verdict = "**not kept**"
	}
	builtIn := run.BuiltIn
	if builtIn == "" {
		builtIn = "–"
	}
	cells := []string{
		fmt.Sprintf("[%s](#%s)", run.Name, run.Name), hostName(r.Host), chart.Thousands(r.Accepted), chart.Thousands(r.Lost), doubled,
		chart.Thousands(r.Late) + ", " + inChunk,
		chart.Tenths(r.First) + " / " + chart.Tenths(r.FirstAllowed), chart.Tenths(r.Drained),
		fmt.Sprintf("%d / %d", r.Attempts, r.AttemptsAllowed), fmt.Sprint(r.Lines), fmt.Sprintf("%.0f", r.PeakRSS), builtIn, verdict,
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// notKept lists the bars that were not kept.
func notKept(results []*Result) string {
	var b strings.Builder
	for _, r := range results {
		for _, f := range r.Failures {
			fmt.Fprintf(&b, "- %s in %s: %s\n", r.Run, hostName(r.Host), f)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nBars that were not kept:\n\n" + b.String()
}

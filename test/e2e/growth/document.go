package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"out_kafka_reconnect/test/chart"
)

//go:embed growth_head.md
var documentHead string

// sections are those of the series: what a reader must know of each.
var sections = []struct{ series, title, file, text string }{
	{byChunk, "Records in a chunk", "chunk.svg", "A chunk costs the plugin some microseconds, whatever is in it, so its cost of a record is flat from a hundred records on, and up to twice as much for ten or twenty. To a broker a " +
		"chunk costs the way there and back: a request, an answer, and the threads that are woken for them. That is librdkafka's, and shows " +
		"for small chunks only, and an agent has those when it has little to do: a chunk is what it gathers in a second."},
	{byTopics, "Topics", "topics.svg", "Each record names its topic in a field. The plugin's own cost is flat. librdkafka sends one request for each partition that has " +
		"records, so the same records in more topics are more requests; that is what grows."},
	{byInstances, "Instances", "instances.svg", "Sections of one process, each with a client of its own. They share nothing on the way of a record."},
	{byCallers, "Flushes at once", "callers.svg", "What `workers` does: flushes of one section that run at the same time. No lock is held while records are read, encoded " +
		"or handed over, so the cost stays; a chunk waits for its acknowledgement, so more of them at once are faster until the processors are busy."},
}

// document returns docs/growth.md.
func document(r *report) string {
	var d strings.Builder
	d.WriteString(documentHead)
	fmt.Fprintf(&d, "Measured on %s: %s; Fluent Bit %s.\n", r.Day, r.Machine, r.FluentBit)
	for _, s := range sections {
		fmt.Fprintf(&d, "\n## %s\n\n%s\n\n", s.title, wrap(s.text))
		seriesTable(&d, r, s.series)
		fmt.Fprintf(&d, "\n![CPU of a record by %s](growth/%s)\n", s.series, s.file)
	}
	d.WriteString("\n## Chunks waiting\n\n" + wrap("An outage in which so many chunks of ten records come and wait, and its end; the client is the one in memory. Taking a chunk "+
		"is its first flush: it is encoded and kept. Refusing it is each later flush, delivering it is what follows when Kafka is back, and "+
		"telling is the flush that answers OK. All are CPU nanoseconds of one chunk.") + "\n\n")
	d.WriteString("| chunks | taking | refusing | delivering | telling | with `ordered`: taking | refusing | delivering | telling |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range r.Backlogs {
		if l.Ordered {
			continue
		}
		fmt.Fprintf(&d, "| %s | %s", chart.Thousands(l.Chunks), l.cells())
		for _, o := range r.Backlogs {
			if o.Ordered && o.Chunks == l.Chunks {
				fmt.Fprintf(&d, " | %s", o.cells())
			}
		}
		d.WriteString(" |\n")
	}
	d.WriteString("\n![CPU of a waiting chunk](growth/backlog.svg)\n")
	hostTables(&d, r)
	return d.String()
}

func (l backlog) cells() string {
	var cells []string
	for _, v := range []float64{l.Take, l.Refuse, l.Drain, l.Collect} {
		cells = append(cells, rounded(v))
	}
	return strings.Join(cells, " | ")
}

// rounded is a number without a fraction.
func rounded(v float64) string { return chart.Thousands(int(math.Round(v))) }

// seriesTable has a row for each point and a column for each path.
func seriesTable(d *strings.Builder, r *report, series string) {
	fmt.Fprintf(d, "| %s | plugin alone, CPU ns a record | allocations a chunk | client alone, CPU ns a record | to a broker, CPU ns a record | records/s |\n|---|---|---|---|---|---|\n", series)
	for _, x := range r.xs(series) {
		a, c, w := r.at(series, alone, x), r.at(series, client, x), r.at(series, whole, x)
		fmt.Fprintf(d, "| %s | %s | %s | %s | %s | %s |\n", chart.Thousands(x), rounded(a.CPU), rounded(a.Allocs), rounded(c.CPU), rounded(w.CPU), rounded(1e9/w.Wall))
	}
}

// xs lists the places of a series.
func (r *report) xs(series string) []int {
	var xs []int
	for _, p := range r.Points {
		if p.Series == series && !slices.Contains(xs, p.X) {
			xs = append(xs, p.X)
		}
	}
	return xs
}

// at returns a point; one that is missing is all zeros, which no test lets pass.
func (r *report) at(series, path string, x int) point {
	for _, p := range r.Points {
		if p.Series == series && p.Path == path && p.X == x {
			return p
		}
	}
	return point{}
}

// hostTables are the figures of whole agents.
func hostTables(d *strings.Builder, r *report) {
	d.WriteString("\n## Start\n\n" + wrap("From the start of the C host: opening the two libraries with Go's runtime, up to the end of the first two calls; then making an instance, with its client.") +
		"\n\n| output | loading, ms | instance, ms |\n|---|---|---|\n")
	for _, s := range r.Starts {
		fmt.Fprintf(d, "| %s | %s | %s |\n", s.Output, chart.Tenths(s.Load), chart.Tenths(s.Init))
	}
	fmt.Fprintf(d, "\n## Nothing to do\n\n%s\n\n", wrap(fmt.Sprintf("%s, %.0f seconds after some records, watched for %.0f seconds; without this plugin loaded in the "+
		"first two rows. Own memory is what is in no file: the rest is code, which the system can drop and read again. The libraries are read from the disk before each row, as after a boot.", r.agent(), settles.Seconds(), idleFor.Seconds())))
	d.WriteString("| output | RSS MiB | its own | CPU, % of a core | threads |\n|---|---|---|---|---|\n")
	for _, i := range r.Idles {
		fmt.Fprintf(d, "| %s | %s | %s | %.2f | %d |\n", i.Output, chart.Tenths(i.MiB), chart.Tenths(i.Own), i.CPU, i.Thread)
	}
	fmt.Fprintf(d, "\n## A million records waiting\n\n%s\n\n", wrap(fmt.Sprintf("%s with `storage.type filesystem` and one output; Kafka is away when it starts, %s records of about %d bytes come, Kafka comes back, "+
		"all is delivered, and a minute later the last column is taken. The null output takes everything at once: what it shows is the host's own. RSS counts the chunk files that are mapped.",
		r.agent(), chart.Thousands(soakRecords), soakSize+20)))
	d.WriteString("| output | MiB before | peak | all waiting | after a minute | of that its own | delivered in s | lost | doubled |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range r.Soaks {
		cells := "– | – | –"
		if s.Delivered {
			cells = fmt.Sprintf("%s | %s | %s", chart.Tenths(s.Seconds), chart.Thousands(s.Lost), chart.Thousands(s.Doubled))
		}
		fmt.Fprintf(d, "| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %s |\n", s.Output, s.Before, s.Peak, s.Waiting, s.After, s.Own, cells)
	}
}

// agent is the host of the last tables.
func (r *report) agent() string {
	if r.FluentBit == "" {
		return "The C host"
	}
	return "Fluent Bit"
}

// lineWidth is that of the documents.
const lineWidth = 130

// wrap breaks a text into lines.
func wrap(text string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		switch {
		case width == 0:
		case width+1+len(word) > lineWidth:
			b.WriteByte('\n')
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}

package herd

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"out_kafka_reconnect/test/chart"
)

//go:embed scale_head.md
var documentHead string

// document returns docs/scale.md.
func document(b book) string {
	var d strings.Builder
	d.WriteString(documentHead)

	fmt.Fprintf(&d, "## %s agents, one broker\n\n%s\n", chart.Thousands(most), verdict(b))
	d.WriteString(tableHead)
	for _, o := range outages {
		for _, p := range policies {
			d.WriteString(row(b.of(outageOf(p, o))))
		}
	}
	for _, o := range outages {
		fmt.Fprintf(&d, "\n![Attempts a second in an outage of %s](herd/%s)\n", length(o), attemptsFile(o))
	}
	d.WriteString("\n![Share of agents that are connected](herd/" + connectedFile + ")\n")

	d.WriteString("\n## Outages of other lengths\n\n" +
		"The shorter the outage the shorter the waits that it ends in, and the sooner all are back: an outage of a second ends in waits of a\n" +
		"second. What is spread over less than the longest wait can't keep a bar that is made of it" + keptFrom(b) + ".\n\n" +
		"![The busiest second by the length of the outage](herd/" + lengthsFile + ")\n")

	d.WriteString("\n## Fewer agents\n\n" + tableHead)
	for _, n := range sizes[:len(sizes)-1] {
		for _, o := range outages {
			for _, p := range policies {
				c := outageOf(p, o)
				c.Agents = n
				d.WriteString(row(b.of(c)))
			}
		}
	}

	d.WriteString("\n## Three brokers\n\n" +
		"A round of kafka_reconnect is one attempt for each address, all at once. Each broker sees what the only one of a cluster would see;\n" +
		"the bar is for one of them, and all other columns count all three.\n\n" + tableHead)
	for _, o := range outages {
		for _, p := range policies {
			c := outageOf(p, o)
			c.Brokers = 3
			d.WriteString(row(b.of(c)))
		}
	}

	fmt.Fprintf(&d, "\n## Kafka comes back slowly\n\n"+
		"The broker accepts %d connections a second, keeps %d waiting and refuses the others. No way of asking could connect 99 %% of\n"+
		"%s agents in less than %s s. An agent that was refused goes on with its backoff.\n\n", slowly, backlog, chart.Thousands(most), chart.Tenths(0.99*most/slowly))
	d.WriteString(tableHead)
	for _, o := range outages[:2] {
		for _, p := range policies {
			d.WriteString(row(b.of(outageOf(p, o).slow())))
		}
	}
	d.WriteString("\n![Share of agents that are connected to a slow Kafka](herd/" + slowFile + ")\n")

	d.WriteString("\n## A wrong choice\n\n" +
		"`reconnect_backoff_min` is what a short outage costs in time, `reconnect_backoff_max` divides the load of a long one. Both alike is\n" +
		"wrong at either end: two equal long ones leave no way up on which the agents could spread, so that they knock in waves and stay away\n" +
		"for seconds after the shortest break; two equal short ones are a storm that lasts as long as the outage.\n\n" + tableHead)
	for _, o := range outages[:2] {
		for _, p := range append([]Policy{ours}, wrong...) {
			d.WriteString(row(b.of(outageOf(p, o))))
		}
	}
	d.WriteString("\nThe same with a Kafka that comes back slowly:\n\n" + tableHead)
	for _, o := range outages[:2] {
		for _, p := range append([]Policy{ours}, wrong...) {
			d.WriteString(row(b.of(outageOf(p, o).slow())))
		}
	}
	return d.String()
}

// verdict is one sentence about the bar.
func verdict(b book) string {
	highest, bar := 0, 0
	for _, o := range outages {
		r := b.of(outageOf(ours, o))
		highest, bar = max(highest, r.PeakOne), r.Bar
	}
	kept := "is kept"
	if highest > bar {
		kept = "is **not kept**"
	}
	return fmt.Sprintf("The bar %s: in the busiest second of these outages Kafka sees %s attempts, %s are allowed.\n", kept, chart.Thousands(highest), chart.Thousands(bar))
}

// keptFrom tells from which length of the outage on the bar is kept.
func keptFrom(b book) string {
	from := len(lengths)
	for ; from > 0; from-- {
		if r := b.of(outageOf(ours, seconds(lengths[from-1]))); r.PeakOne > r.Bar {
			break
		}
	}
	if from == len(lengths) {
		return ""
	}
	return fmt.Sprintf(": kafka_reconnect keeps it\nfrom outages of %d s on", lengths[from])
}

const tableHead = "| agents | outage | policy | attempts an agent | in its last second | in the first second after | busiest second / bar | 50 % s | 99 % s | all s |\n" +
	"|---|---|---|---|---|---|---|---|---|---|\n"

func row(r Result) string {
	tenths := func(ms int) string { return chart.Tenths(float64(ms) / 1000) }
	busiest := fmt.Sprintf("%s / %s", chart.Thousands(r.PeakOne), chart.Thousands(r.Bar))
	if r.PeakOne > r.Bar {
		busiest = "**" + busiest + "**"
	}
	cells := []string{
		chart.Thousands(r.Agents), length(seconds(r.OutageS)), r.Policy,
		chart.Tenths(float64(r.Attempts) / float64(r.Agents)), chart.Thousands(r.LastSecond), chart.Thousands(r.FirstSecond), busiest,
		tenths(r.Half), tenths(r.Most), tenths(r.All),
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// length writes a round length of time.
func length(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	default:
		return fmt.Sprintf("%d s", d/time.Second)
	}
}

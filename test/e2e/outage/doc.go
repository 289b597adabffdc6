// Package outage is the matrix of faults: the plugin in a host, real Apache Kafka, one fault after the other, and an audit
// of every record.
//
// A [Run] is one row: the Kafka that it needs, what is added to the output section, and the fault as steps over time. While
// they go on numbered records are logged at a steady rate; then the topic is read to its end. A [Result] is what was found,
// with a verdict for each of the bars that the plugin has to keep. Results are written as JSON lines, as a plot for each
// run, and as the tables of docs/reliability.md.
//
// The tests need the build tag e2e. Without -full they run the few faults that are marked as short.
package outage

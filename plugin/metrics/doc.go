// Package metrics serves the counters of instances over HTTP, in the text format of
// Prometheus.
//
// An [Endpoint] is the part of one instance. Instances with the same address share one
// server, which lives from the first Open to the last Close: a hot reload ends with a server
// at the same address, whether the old instance is closed before the new one is opened or
// after it. Each server has a registry of its own, so nothing of the host process is shown
// and nothing of the global registry is used.
//
// Nothing is counted here but the latency of acknowledgements, once for each chunk. What
// else there is to see is read from the [Source] when somebody asks, so it costs nothing on
// the path of a record.
//
// Metrics never stop delivery: an address that can't be had is one warning and tried again,
// and a panic of a Source spoils that one scrape.
package metrics

package config

var metricsOptions = []Option{
	typed(Option{
		Name:    "metrics_listen",
		Allowed: listenAllowed,
		Doc:     "Where to serve the counters of this output for Prometheus, under `/metrics`; not at all unless set.",
		Note: "Without a host it is the loopback address: `9308`, `:9308` and `127.0.0.1:9308` are the same. Sections with" +
			" the same address share it; another name for the same host, such as `localhost:9308`, collides. Whoever reaches the" +
			" address can read the counters: there is no login. If the address is in use, one line" +
			" says so, delivery goes on, and the address is tried again. What there is to see is in" +
			" [metrics.md](metrics.md).",
	}, KindText, func(c *Config) *string { return &c.MetricsListen }, parseListen, func(s string) string { return s }),
}

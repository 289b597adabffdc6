package outage

// hostName is how people call a host.
func hostName(kind string) string {
	if kind == "fluent-bit" {
		return "Fluent Bit"
	}
	return "the C host"
}

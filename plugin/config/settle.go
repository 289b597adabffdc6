package config

import "strings"

// idempotenceRules are what librdkafka demands of an idempotent producer; it makes none
// if a property that was set explicitly breaks one.
var idempotenceRules = []struct {
	name, needs string
	broken      func(value string) bool
}{
	{"acks", "acks all", ifNumber(func(n int64) bool { return n != -1 })},
	{"max.in.flight.requests.per.connection", "at most 5", ifNumber(func(n int64) bool { return n > 5 })},
	{"message.send.max.retries", "at least 1", ifNumber(func(n int64) bool { return n < 1 })},
	{"queue.buffering.backpressure.threshold", "1", ifNumber(func(n int64) bool { return n > 1 })},
	{"queuing.strategy", "fifo", func(v string) bool { return strings.EqualFold(strings.TrimSpace(v), "lifo") }},
}

// ifNumber applies a test to values that are numbers.
func ifNumber(test func(int64) bool) func(string) bool {
	return func(value string) bool {
		n, err := integer(value)
		return err == nil && test(n)
	}
}

// settle makes the final list of client properties: the defaults of this plugin with
// the section's values in their places, then the rest of the section's.
func (d *decoder) settle() {
	idempotence := d.idempotence()
	d.warnClient()
	inPlace := make(map[string]bool, len(Settings))
	for _, s := range Settings {
		inPlace[s.Name] = true
		p := Property{Name: s.Name, Value: s.value(d.cfg)}
		if own, ok := d.find(s.Name); ok {
			p.Value, p.Secret = own.value, own.secret
		} else if s.Name == "enable.idempotence" {
			p.Value = idempotence
		}
		if s.Name == "socket.keepalive.enable" {
			d.cfg.keepaliveProbes = isTrue(p.Value)
		}
		d.cfg.properties = append(d.cfg.properties, p)
	}
	for _, p := range d.client {
		if !inPlace[p.name] {
			d.cfg.properties = append(d.cfg.properties, Property{Name: p.name, Value: p.value, File: p.file, Secret: p.secret})
		}
	}
}

// idempotence decides about enable.idempotence: on, unless the section says no or has
// a property that librdkafka does not allow with it.
func (d *decoder) idempotence() string {
	own, set := d.find("enable.idempotence")
	if set && !isTrue(own.value) {
		d.warn(own.key + " false: a connection that breaks can double what was in flight")
		return "false"
	}
	p, needs, found := d.idempotenceConflict()
	switch {
	case !found:
		return "true"
	case set:
		d.fault(p.key, p.shown()+" contradicts "+own.key+" true, which needs "+needs)
		return "true"
	}
	d.warn(p.key + " " + p.shown() + " switches idempotence off, which needs " + needs +
		": a connection that breaks can double what was in flight")
	return "false"
}

// idempotenceConflict finds the first property that excludes idempotence.
func (d *decoder) idempotenceConflict() (p clientProperty, needs string, found bool) {
	for _, rule := range idempotenceRules {
		if p, ok := d.find(rule.name); ok && rule.broken(p.value) {
			return p, rule.needs, true
		}
	}
	return clientProperty{}, "", false
}

// warnClient warns of properties that are allowed and take a promise away.
func (d *decoder) warnClient() {
	isZero := ifNumber(func(n int64) bool { return n == 0 })
	if p, ok := d.find("acks"); ok && isZero(p.value) {
		d.warn(p.key + " 0: the brokers acknowledge nothing, so records can be lost and nobody notices")
	}
	if p, ok := d.find("test.mock.num.brokers"); ok && !isZero(p.value) {
		d.warn(p.key + ": records go to a mock cluster inside this process and nowhere else")
	}
}

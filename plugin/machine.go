package plugin

import (
	"math/rand/v2"

	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/reconnect/fsm"
)

// machineConfig is the supervisor's part of the section.
func machineConfig(c *config.Config) fsm.Config {
	return fsm.Config{
		BackoffMin:        c.ReconnectBackoffMin,
		BackoffMax:        c.ReconnectBackoffMax,
		ProbeTimeout:      c.ProbeTimeout,
		IdlePolicy:        idlePolicies[c.IdlePolicy],
		IdleTimeout:       c.IdleTimeout,
		KeepaliveInterval: c.KeepaliveInterval,
		KeepaliveTimeout:  c.KeepaliveTimeout,
		StallTimeout:      c.StallTimeout,
		// Close cuts this short where its own limit is shorter.
		DrainTimeout: max(c.ShutdownTimeout, c.ReloadTimeout),
		Rand:         rand.Float64,
	}
}

// idlePolicies joins the word of the section to the machine's policy.
var idlePolicies = map[config.IdlePolicy]fsm.IdlePolicy{
	config.IdleKeepalive: fsm.IdleKeepalive,
	config.IdleKeep:      fsm.IdleKeep,
	config.IdleClose:     fsm.IdleClose,
}

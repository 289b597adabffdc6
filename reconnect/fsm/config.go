package fsm

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the times of one machine. A zero field takes the default that its
// comment names; Validate refuses contradictions.
type Config struct {
	// BackoffMin is the first step of the backoff; default 100ms.
	BackoffMin time.Duration
	// BackoffMax is the largest step and a hard upper bound of every wait; default 5s.
	BackoffMax time.Duration
	// ProbeTimeout bounds one round of attempts in Probing; default 5s.
	ProbeTimeout time.Duration
	// ConnectTimeout bounds the time in Connecting, and the time that an attempt may
	// hang in Up while no broker is up; default ProbeTimeout.
	ConnectTimeout time.Duration
	// Settle is how long known addresses that are still untried may hold up the verdict
	// that all brokers are down, from the first failure of another on; default 1s, because a
	// refused client asks again within a second.
	Settle time.Duration
	// IdlePolicy says what happens to unused connections; default IdleKeepalive.
	IdlePolicy IdlePolicy
	// IdleTimeout without a record closes the connections (policy IdleClose); default 4m,
	// below the five minutes that cloud load balancers use to drop a silent flow.
	IdleTimeout time.Duration
	// KeepaliveInterval without activity starts a heartbeat (policy IdleKeepalive);
	// default 60s.
	KeepaliveInterval time.Duration
	// KeepaliveTimeout is how long a heartbeat may take; default 10s.
	KeepaliveTimeout time.Duration
	// StallTimeout without an acknowledgement while records are outstanding makes the
	// machine look for silent connections; default 15s.
	StallTimeout time.Duration
	// RenewAfter is how many rounds of attempts may fail in a row because the login was
	// refused, or with nothing but learned addresses, before the client is replaced by a
	// new one, and how many stalls in a row may pass without a known cause; default 10.
	RenewAfter int
	// DrainTimeout bounds Draining; default 3s.
	DrainTimeout time.Duration
	// Rand returns a number in [0, 1). It is called by the owner of the machine only, at
	// most once a backoff step. Nil means no jitter: always the middle.
	Rand func() float64
}

// DefaultConfig returns the defaults, without jitter.
func DefaultConfig() Config { return Config{}.withDefaults() }

// Validate tells everything that is wrong with the configuration at once.
func (c Config) Validate() error {
	var errs []error
	d := c.withDefaults()
	for _, f := range d.fields() {
		if *f.value < 0 {
			errs = append(errs, fmt.Errorf("fsm: %s %s is negative", f.name, *f.value))
		}
	}
	if d.RenewAfter < 0 {
		errs = append(errs, fmt.Errorf("fsm: RenewAfter %d is negative", d.RenewAfter))
	}
	if d.BackoffMin > d.BackoffMax {
		errs = append(errs, fmt.Errorf("fsm: BackoffMin %s is above BackoffMax %s", d.BackoffMin, d.BackoffMax))
	}
	if d.IdlePolicy >= numPolicies {
		errs = append(errs, fmt.Errorf("fsm: IdlePolicy %s; allowed: keepalive, keep, close", d.IdlePolicy))
	}
	return errors.Join(errs...)
}

type field struct {
	name     string
	value    *time.Duration
	standard time.Duration
}

func (c *Config) fields() []field {
	return []field{
		{"BackoffMin", &c.BackoffMin, 100 * time.Millisecond},
		{"BackoffMax", &c.BackoffMax, 5 * time.Second},
		{"ProbeTimeout", &c.ProbeTimeout, 5 * time.Second},
		{"ConnectTimeout", &c.ConnectTimeout, c.ProbeTimeout},
		{"Settle", &c.Settle, time.Second},
		{"IdleTimeout", &c.IdleTimeout, 4 * time.Minute},
		{"KeepaliveInterval", &c.KeepaliveInterval, time.Minute},
		{"KeepaliveTimeout", &c.KeepaliveTimeout, 10 * time.Second},
		{"StallTimeout", &c.StallTimeout, 15 * time.Second},
		{"DrainTimeout", &c.DrainTimeout, 3 * time.Second},
	}
}

// withDefaults fills what is zero.
func (c Config) withDefaults() Config {
	fields := c.fields()
	for _, f := range fields {
		if *f.value == 0 {
			*f.value = f.standard
		}
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = c.ProbeTimeout
	}
	if c.RenewAfter == 0 {
		c.RenewAfter = 10
	}
	return c
}

// usable is withDefaults for a machine that must run whatever it is given: what is
// negative becomes the default too.
func (c Config) usable() Config {
	for _, f := range c.fields() {
		*f.value = max(*f.value, 0)
	}
	c.RenewAfter = max(c.RenewAfter, 0)
	c = c.withDefaults()
	if c.IdlePolicy >= numPolicies {
		c.IdlePolicy = IdleKeepalive
	}
	return c
}

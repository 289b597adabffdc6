package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Equal tells whether two sections mean the same in everything.
func (c *Config) Equal(o *Config) bool { return reflect.DeepEqual(c, o) }

// SameDestination tells whether two sections make the same messages of a chunk and send
// them to the same topics of the same cluster: one that has a bootstrap address in common.
// Then what one of them has delivered, the other need not deliver again.
func (c *Config) SameDestination(o *Config) bool {
	return c.DestinationID() == o.DestinationID() && c.SharesBroker(o.BrokerList())
}

// DestinationID stands for what the messages are made of and the topics that they go to: all
// of SameDestination but the cluster. It is the same in every process and every release, so
// that it may name a file: a new option changes nothing while it has its default.
func (c *Config) DestinationID() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %t", c.Format, c.Topics, c.MessageKeySet)
	if c.Format.Bundles() { // which record is in which message depends on it
		fmt.Fprintf(h, " %d", c.MaxMessageBytes())
	}
	for opt, v := range c.shaping() {
		fmt.Fprintf(h, " %s=%q", opt.Name, v)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// DestinationSettings is what DestinationID stands for in the words of the section, each
// "name value". No secret is in it.
func (c *Config) DestinationSettings() []string {
	lines := []string{"topics " + joinList(c.Topics), "format " + c.Format.String()}
	if c.Format.Bundles() {
		lines = append(lines, fmt.Sprint(rdkafkaPrefix, "message.max.bytes ", c.MaxMessageBytes()))
	}
	for opt, v := range c.shaping() {
		switch {
		case opt.Secret || holdsSecret(v):
			v = hidden
		case strings.ContainsFunc(v, unicode.IsControl):
			v = strconv.Quote(v)
		}
		lines = append(lines, opt.Name+" "+v)
	}
	return lines
}

// shaping goes through the options, topics and format apart, that rule what the messages are
// made of and where they go, and have another value than by default.
func (c *Config) shaping() iter.Seq2[Option, string] {
	return func(yield func(Option, string) bool) {
		for _, s := range Sections {
			if !s.Shapes {
				continue
			}
			for _, opt := range s.Options {
				if v := opt.get(c); v != opt.Default && !yield(opt, v) {
					return
				}
			}
		}
	}
}

// BrokerList is Brokers as a list.
func (c *Config) BrokerList() []string { return strings.Split(c.Brokers, ",") }

// SharesBroker tells whether one of the addresses is a bootstrap address of the section.
func (c *Config) SharesBroker(addrs []string) bool {
	own := c.BrokerList()
	return slices.ContainsFunc(addrs, func(a string) bool { return slices.Contains(own, a) })
}

package config

import (
	"reflect"
	"slices"
	"strings"
)

// Equal tells whether two sections mean the same in everything.
func (c *Config) Equal(o *Config) bool { return reflect.DeepEqual(c, o) }

// SameDestination tells whether two sections make the same messages of a chunk and send
// them to the same topics of the same cluster: one that has a bootstrap address in common.
// Then what one of them has delivered, the other need not deliver again.
func (c *Config) SameDestination(o *Config) bool {
	if c.Format != o.Format || c.MessageKeySet != o.MessageKeySet || !slices.Equal(c.Topics, o.Topics) {
		return false
	}
	for _, s := range Sections {
		if !s.Shapes {
			continue
		}
		for _, opt := range s.Options {
			if opt.get(c) != opt.get(o) {
				return false
			}
		}
	}
	brokers := strings.Split(o.Brokers, ",")
	return slices.ContainsFunc(strings.Split(c.Brokers, ","), func(b string) bool { return slices.Contains(brokers, b) })
}

package parity

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// A Verdict is on the messages of one record.
type Verdict uint8

// The verdicts, from good to bad.
const (
	// Equal messages are the same in all bytes.
	Equal Verdict = iota
	// Same messages differ, and every reader gets the same from them.
	Same
	// Better messages differ for listed reasons.
	Better
	// Differs is for messages that are neither: which one is right depends on what is around, and our choice is documented.
	Differs
	// Worse messages differ without a listed reason.
	Worse
)

// A Judgement is a verdict with its reasons, which Equal and Worse have not.
type Judgement struct {
	Verdict Verdict
	Reasons []*Reason
}

// Judge compares what Kafka has of a record from both outputs.
func Judge(s *Section, r Record, builtin, ours []Message) Judgement {
	c := &comparison{section: s, given: r, traits: traitsOf(r.Chunk)}
	if !c.messages(builtin, ours) {
		return Judgement{Verdict: Worse}
	}
	j := Judgement{Reasons: c.reasons}
	for _, reason := range c.reasons {
		j.Verdict = max(j.Verdict, reason.Verdict)
	}
	return j
}

// A comparison collects the reasons for the differences of one record. Its methods return false where they find none.
type comparison struct {
	section *Section
	given   Record
	traits  traits
	reasons []*Reason
}

// because notes a reason, if it holds.
func (c *comparison) because(r *Reason, holds bool) bool {
	if holds && !slices.Contains(c.reasons, r) {
		c.reasons = append(c.reasons, r)
	}
	return holds
}

// messages compares those of a record. What we have more is behind what both have.
func (c *comparison) messages(builtin, ours []Message) bool {
	format := c.section.format()
	switch {
	case len(ours) < len(builtin):
		return len(ours) == 0 && format == "avro" && c.because(misfits, c.given.Misfit && c.madeUp(builtin[0].Value))
	case len(ours) > len(builtin):
		if len(builtin) == 0 {
			hard := format == "gelf" && c.traits.gelfTrouble || format == "otlp_proto" && (c.traits.ext || c.traits.oddKey || c.traits.huge) ||
				format == "avro" && !c.given.Misfit
			return c.because(rescued, hard && c.readable(ours[0].Value))
		}
		for _, m := range ours[len(builtin):] {
			if !c.because(neighbours, (format == "gelf" || format == "raw") && c.readable(m.Value)) {
				return false
			}
		}
	}
	for i := range builtin {
		if !c.message(format, &builtin[i], &ours[i]) {
			return false
		}
	}
	return true
}

func (c *comparison) message(format string, b, o *Message) bool {
	if !c.address(b, o) {
		return false
	}
	if bytes.Equal(b.Value, o.Value) {
		return true
	}
	// Other bytes without a reason are worse, however little they differ.
	return c.value(format, b.Value, o.Value) && len(c.reasons) > 0
}

// value compares values that differ.
func (c *comparison) value(format string, b, o []byte) bool {
	switch format {
	case "json":
		return c.json(string(b), string(o))
	case "gelf":
		return c.gelf(string(b), string(o))
	case "otlp_json", "otlp_proto":
		return c.otlp(format, b, o)
	case "avro":
		return c.avro(b, o)
	}
	return false
}

// legalTopic is Kafka's rule.
var legalTopic = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// address compares all but the values.
func (c *comparison) address(b, o *Message) bool {
	if b.sameAddress(o) {
		return true
	}
	byDefault := c.section.Topics()[0]
	legal := func(name string) bool { return legalTopic.MatchString(name) && name != "." && name != ".." }
	moved := *o
	moved.Topic, moved.Partition = b.Topic, b.Partition
	switch {
	case !moved.sameAddress(b):
		return false
	case o.Topic == byDefault:
		return c.because(topicNames, !legal(b.Topic)) || c.because(topicEnds, c.traits.control)
	case b.Topic == byDefault:
		return c.because(topicBegins, legal(o.Topic) && strings.HasPrefix(byDefault, o.Topic))
	}
	return false
}

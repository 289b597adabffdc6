package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the type of an option's value, as the documentation names it.
type Kind string

// The kinds.
const (
	KindText     Kind = "text"
	KindList     Kind = "list"
	KindBool     Kind = "yes/no"
	KindNumber   Kind = "number"
	KindDuration Kind = "duration"
	KindSize     Kind = "size"
	KindChoice   Kind = "choice"
)

// Option is one row of the option table.
type Option struct {
	// Name is the key in the section; Aliases are other spellings of it.
	Name    string
	Aliases []string
	// Kind is set by the function that makes the row.
	Kind Kind
	// Default is what an unset key means, in the words of the section; empty means that
	// the option has no value then.
	Default string
	// Allowed tells the allowed values; the function that makes the row fills it in
	// from the bounds or words that it checks.
	Allowed string
	// Secret hides the value in every message.
	Secret bool
	// Lenient tells that the built-in output takes an unknown word for the default, as this
	// one does with strict off.
	Lenient bool
	// Doc is one sentence; Note is what else there is to know, or empty.
	Doc, Note string

	// set parses the text into the Config; its error continues `config: key: "value" …`.
	set func(*Config, string) error
	// get is the effective value in the words of the section; it reads back with set.
	get func(*Config) string
}

// Section is a group of options with a heading.
type Section struct {
	Title, Intro string
	// Shapes tells that the options rule the bytes of the messages and where they go.
	Shapes  bool
	Options []Option
}

// Options is the whole table, in the order of the documentation.
func Options() []Option {
	var all []Option
	for _, s := range Sections {
		all = append(all, s.Options...)
	}
	return all
}

// typed completes a row whose value is a field of the Config.
func typed[T any](o Option, k Kind, at func(*Config) *T, parse func(string) (T, error), show func(T) string) Option {
	o.Kind = k
	o.set = func(c *Config, value string) error {
		v, err := parse(value)
		if err != nil {
			return err
		}
		*at(c) = v
		return nil
	}
	o.get = func(c *Config) string { return show(*at(c)) }
	return o
}

// text makes a row whose value is taken as it is.
func text(o Option, at func(*Config) *string) Option {
	return typed(o, KindText, at, func(s string) (string, error) { return s, nil }, asIs)
}

// asIs shows a text.
func asIs(s string) string { return s }

// yesNo makes a boolean row.
func yesNo(o Option, at func(*Config) *bool) Option {
	o.Allowed = "true, on, yes, false, off, no"
	return typed(o, KindBool, at, parseBool, func(b bool) string { return fmt.Sprint(b) })
}

// number makes a row of a whole number from lo to hi.
func number(o Option, lo, hi int, at func(*Config) *int) Option {
	return bounded(o, KindNumber, lo, hi, at, parseInt, func(n int) string { return fmt.Sprint(n) })
}

// duration makes a row of a duration from lo to hi.
func duration(o Option, lo, hi time.Duration, at func(*Config) *time.Duration) Option {
	return bounded(o, KindDuration, lo, hi, at, parseDuration, formatDuration)
}

// size makes a row of a number of bytes from lo to hi.
func size(o Option, lo, hi int64, at func(*Config) *int64) Option {
	return bounded(o, KindSize, lo, hi, at, parseSize, formatSize)
}

// bounded makes a row whose value lies between two bounds, both allowed.
func bounded[T ~int | ~int64](o Option, k Kind, lo, hi T, at func(*Config) *T, parse func(string) (T, error), show func(T) string) Option {
	o.Allowed = show(lo) + " to " + show(hi)
	check := func(s string) (T, error) {
		v, err := parse(s)
		switch {
		case err != nil:
			return 0, err
		case v < lo:
			return 0, fmt.Errorf("is below %s; allowed: %s", show(lo), o.Allowed)
		case v > hi:
			return 0, fmt.Errorf("is above %s; allowed: %s", show(hi), o.Allowed)
		}
		return v, nil
	}
	return typed(o, k, at, check, show)
}

// unknownWord is the error of a word that is none of the allowed ones, which it holds.
type unknownWord string

func (allowed unknownWord) Error() string { return "is unknown; allowed: " + string(allowed) }

// choice makes a row whose value is one of the words, in any letter case.
func choice[T ~uint8](o Option, words []string, at func(*Config) *T) Option {
	o.Allowed = strings.Join(words, ", ")
	parse := func(s string) (T, error) {
		s = strings.ToLower(strings.TrimSpace(s))
		if i := slices.Index(words, s); i >= 0 {
			return T(i), nil
		}
		return 0, unknownWord(o.Allowed)
	}
	return typed(o, KindChoice, at, parse, func(v T) string { return word(words, v) })
}

// ignored makes a row that is accepted from a section of the built-in output and has
// no effect; it earns a warning with the reason.
func ignored(o Option, k Kind, reason string) Option {
	o.Kind = k
	o.set = func(c *Config, _ string) error {
		c.Warnings = append(c.Warnings, o.Name+" has no effect: "+reason)
		return nil
	}
	o.get = func(*Config) string { return "" }
	return o
}

// prefixed adds the dotted spelling to the rows of a section: reconnect.backoff_min
// for reconnect_backoff_min, reconnect.idle_policy for idle_policy.
func prefixed(options ...Option) []Option {
	for i := range options {
		o := &options[i]
		o.Aliases = append(o.Aliases, "reconnect."+strings.TrimPrefix(o.Name, "reconnect_"))
	}
	return options
}

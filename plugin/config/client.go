package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// clientProperty is a librdkafka property that the section sets.
type clientProperty struct {
	// key is what the section calls it: rdkafka.linger.ms, or "rdkafka_options: linger.ms".
	key string
	// written is the name that the section uses; name is the canonical one.
	written, name string
	value         string
	// file holds the value, if it is not empty.
	file   string
	secret bool
	// anonymous tells that even the name may be a piece of a secret.
	anonymous bool
}

// shown is the value as messages print it.
func (p clientProperty) shown() string {
	if p.secret {
		return hidden
	}
	return shown(p.value)
}

// readClientProperties asks for every property that librdkafka knows and reads the
// catch-all, and keeps what may be applied in d.client.
func (d *decoder) readClientProperties(g Getter) {
	for _, n := range propertyNames {
		if value := g.Get(rdkafkaPrefix + n.name); value != "" {
			d.addClientProperty(clientProperty{key: rdkafkaPrefix + n.name, name: n.name, value: value})
		}
	}
	if g.Get(rdkafkaPrefix) != "" {
		d.oversight(rdkafkaPrefix, "names no property; write rdkafka.NAME, with no blank behind the dot")
	}
	d.readCatchAll(d.text["rdkafka_options"])
}

// readCatchAll reads rdkafka_options. An item that can't be understood may be a piece
// of a password with a comma in it; after a secret such items are told by their
// position only.
func (d *decoder) readCatchAll(text string) {
	const key = "rdkafka_options: "
	afterSecret := false
	for i, item := range splitItems(text) {
		if item == "" {
			continue
		}
		p := clientProperty{key: fmt.Sprintf("%sitem %d", key, i+1), anonymous: true}
		name, value, ok := strings.Cut(item, "=")
		p.name, p.value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || p.name == "" {
			d.fault(p.key, `is not name=value; a comma inside a value is written "\,"`)
			continue
		}
		lower := strings.TrimPrefix(strings.ToLower(p.name), "rdkafka.")
		if _, known := propertyByName[lower]; known {
			p.name, p.key, p.anonymous = lower, key+lower, false
			afterSecret = afterSecret || isSecret(lower, p.value)
		} else if !afterSecret {
			p.key, p.anonymous = key+quote(p.name), false
			afterSecret = soundsSecret(lower)
		}
		if p.value == "" {
			d.fault(p.key, "has no value; an environment variable that is not set gives none")
			continue
		}
		if swallowed := nextItem(p.value); swallowed != "" {
			d.fault(p.key, "has a further property in its value, "+swallowed+`; items are separated by commas`)
			continue
		}
		d.addClientProperty(p)
	}
}

// otherSeparator finds what separates items elsewhere, with the name behind it.
var otherSeparator = regexp.MustCompile(`[;|&\s]\s*(?:rdkafka\.)?([\w.]+)\s*=`)

// nextItem gives the name of a property that a value of rdkafka_options has swallowed, as it is
// separated by something else than a comma. Names that librdkafka does not know are part of a
// value, as in connection strings.
func nextItem(value string) string {
	for _, match := range otherSeparator.FindAllStringSubmatch(value, -1) {
		name := strings.ToLower(match[1])
		if _, known := propertyByName[name]; known {
			return name
		}
	}
	return ""
}

// splitItems splits at commas. A backslash takes its meaning from a comma and from a
// backslash behind it; before anything else it is an ordinary character.
func splitItems(text string) []string {
	var items []string
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == ',' || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		case c == ',':
			items = append(items, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	return append(items, strings.TrimSpace(b.String()))
}

// addClientProperty judges one property and keeps it, drops it with a warning, or
// notes a fault.
func (d *decoder) addClientProperty(p clientProperty) {
	listed, known := propertyByName[p.name]
	// The value under a name that nobody knows may be a piece of a secret.
	p.secret = !known || isSecret(p.name, p.value)
	p.written, p.name = p.name, canonical(p.name)
	if first, ok := d.find(p.name); ok {
		if first.value != p.value {
			d.fault(p.key, "is also set as "+first.key+", to another value; keep one of them")
		}
		return
	}
	if rule, ok := ruleFor(Owned, p.name); ok {
		w := p.key + " is not applied: " + rule.Why
		if rule.Use != "" {
			w += "; use " + rule.Use
		}
		d.warn(w)
		return
	}
	switchedOff := listed.kind == kindBoolean && isFalse(p.value)
	if rule, ok := ruleFor(Refused, p.name); ok && !switchedOff {
		d.fault(p.key, p.shown()+" is refused: "+rule.Why)
		return
	}
	if listed.scope == scopeConsumer {
		d.warn(p.key + " is not applied: it is for consumers, and this is a producer")
		return
	}
	if err := d.verdict(p, listed.kind); err != nil {
		text := p.shown() + " " + err.Error()
		if !d.forgives(p.name) {
			d.bad[rdkafkaPrefix+p.name] = true
			d.fault(p.key, text)
			return
		}
		// As the built-in output does: what librdkafka refuses is left out.
		d.warn(p.key + " " + text + "; it is not applied")
		return
	}
	d.client = append(d.client, p)
}

// forgives tells whether a property that is refused may be left out: with strict off, unless
// something that was meant to be secured would be open then.
func (d *decoder) forgives(name string) bool {
	return !d.cfg.Strict && !strings.HasPrefix(strings.ToLower(name), unitTestPrefix) &&
		!slices.ContainsFunc([]string{"sasl.", "ssl", "security.", "enable.ssl.", "enable.sasl.", "https."}, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
}

// verdict returns nil if librdkafka takes the property, and means what is written.
func (d *decoder) verdict(p clientProperty, kind string) error {
	if strings.HasPrefix(strings.ToLower(p.name), unitTestPrefix) {
		return errors.New("is refused: it is for librdkafka's own unit tests")
	}
	if err := checkNumber(kind, p.value); err != nil {
		return err
	}
	if d.checker == nil {
		return nil
	}
	err := d.checker.CheckProperty(p.name, p.value)
	if err == nil {
		return nil
	}
	reason := err.Error()
	switch {
	case p.anonymous:
		reason = d.unrevealing(reason, otherText) + `; a comma inside a value is written "\,"`
	case p.secret:
		reason = d.unrevealing(reason, p.name)
	}
	return errors.New("is refused by librdkafka: " + oneLine(reason))
}

// unrevealing leaves of a reason what librdkafka says of any other value of the property too.
func (d *decoder) unrevealing(reason, name string) string {
	err := d.checker.CheckProperty(name, otherText)
	if err == nil {
		return hidden
	}
	return common(reason, err.Error())
}

// checkNumber refuses what librdkafka would read only in part: it takes 30s for 30, and
// that as milliseconds. Words, such as acks "all", are left to librdkafka.
func checkNumber(kind, value string) error {
	s := strings.ToLower(strings.TrimSpace(value))
	switch {
	case s == "":
		return nil
	case kind == kindInteger && strings.ContainsRune("+-0123456789", rune(s[0])):
		return checkInteger(s)
	case kind == kindFloat:
		return checkFloat(s)
	}
	return nil
}

// checkFloat is for the kind float, which C reads as text in front of anything else: also
// what is no number, which is in every range.
func checkFloat(s string) error {
	unsigned := strings.TrimLeft(s, "+-")
	digits := strings.ContainsRune("+-.0123456789", rune(s[0]))
	if !digits && !strings.HasPrefix(unsigned, "inf") && !strings.HasPrefix(unsigned, "nan") {
		return nil // librdkafka refuses it
	}
	_, errWhole := integer(s)
	n, err := strconv.ParseFloat(s, 64)
	if errWhole != nil && (err != nil || math.IsInf(n, 0) || math.IsNaN(n) || strings.Contains(s, "_")) {
		return errors.New("is not a number; librdkafka takes no units and would drop what follows the digits;" +
			" a fraction is written with a point")
	}
	return nil
}

// checkInteger is the same for whole numbers.
func checkInteger(s string) error {
	n, err := integer(s)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (n < math.MinInt32 || n > math.MaxInt32):
		return errors.New("is out of the range of a 32-bit number")
	case err != nil:
		return errors.New("is not a whole number; librdkafka takes no units and would drop what follows the digits")
	}
	return nil
}

// find looks a property of the section up by its canonical name.
func (d *decoder) find(name string) (clientProperty, bool) {
	for _, p := range d.client {
		if p.name == name {
			return p, true
		}
	}
	return clientProperty{}, false
}

// isFalse and isTrue read librdkafka's booleans.
func isFalse(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "false", "f", "0":
		return true
	}
	return false
}

func isTrue(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "true", "t", "1":
		return true
	}
	return false
}

// integer reads a number as C does: decimal, octal with a leading 0, hexadecimal. Go's
// other forms are none.
func integer(value string) (int64, error) {
	s := strings.ToLower(strings.TrimSpace(value))
	digits := strings.TrimLeft(s, "+-")
	if strings.Contains(s, "_") || strings.HasPrefix(digits, "0b") || strings.HasPrefix(digits, "0o") {
		return 0, errInt
	}
	return strconv.ParseInt(s, 0, 64)
}

package config

import (
	"errors"
	"slices"
	"strings"
)

// decoder is the state of one Decode.
type decoder struct {
	checker Checker
	cfg     *Config
	// text is what the section says, by the option's Name; key is the spelling that
	// the section used for it.
	text, key map[string]string
	// bad holds the options and, as rdkafka.<name>, the properties whose value was refused;
	// comparing them with others would only add noise.
	bad map[string]bool
	// client are the properties of librdkafka that the section sets.
	client []clientProperty
	faults faults
}

// Decode reads one section. The error holds all faults of the section, one a line, and
// is fit for one log message. The checker may be nil in tests: librdkafka's own
// judgement and the features of its build are not asked then.
func Decode(g Getter, checker Checker) (*Config, error) {
	d := &decoder{
		checker: checker,
		cfg:     new(Config),
		text:    make(map[string]string),
		key:     make(map[string]string),
		bad:     make(map[string]bool),
	}
	if errNames != nil {
		d.fault("rdkafka_names.txt", errNames.Error())
	}
	d.readOptions(g)
	d.readForeign(g)
	d.readMisnamed(g)
	d.readMisspelt(g)
	d.readClientProperties(g)
	d.readSecretFiles()
	d.impliedByIAM()
	d.validate()
	d.settle()
	if len(d.faults) > 0 {
		return nil, d.faults
	}
	d.cfg.summary = d.summarize()
	return d.cfg, nil
}

// readOptions reads the option table. Each name is asked for once. Strict comes first, as
// the others are judged by it.
func (d *decoder) readOptions(g Getter) {
	options := Options()
	strict := slices.IndexFunc(options, func(o Option) bool { return o.Name == "strict" })
	options = slices.Concat(options[strict:strict+1], options[:strict], options[strict+1:])
	for _, o := range options {
		if o.Default != "" {
			if err := o.set(d.cfg, o.Default); err != nil {
				d.fault(o.Name, "has a default that is refused: "+err.Error())
			}
		}
		if value, key := d.readOption(g, o); value != "" {
			d.text[o.Name], d.key[o.Name] = value, key
			d.apply(o, value, key)
		}
	}
}

// apply sets an option to what the section says.
func (d *decoder) apply(o Option, value, key string) {
	err := o.set(d.cfg, value)
	if err == nil {
		return
	}
	text := told(value, o.Secret, err)
	if _, unknown := errors.AsType[unknownWord](err); unknown && o.Lenient && !d.cfg.Strict {
		d.warn(key + " " + text + "; it is taken for " + o.Default + ", as in the built-in output")
		return
	}
	d.bad[o.Name] = true
	d.fault(key, text)
}

// readOption gives the value of an option and the spelling under which it is set.
func (d *decoder) readOption(g Getter, o Option) (value, key string) {
	for _, name := range append([]string{o.Name}, o.Aliases...) {
		v := g.Get(name)
		switch {
		case v == "":
		case value == "":
			value, key = v, name
		case v != value:
			d.fault(name, "is also set as "+key+", to another value; keep one of them")
		}
	}
	return value, key
}

// fault notes one thing that is wrong with the section. The text never holds a secret.
func (d *decoder) fault(key, text string) {
	d.faults = append(d.faults, errors.New("config: "+cut(key, maxValue)+": "+cut(text, maxFault)))
}

// warn notes one thing that the section probably does not mean.
func (d *decoder) warn(text string) {
	d.cfg.Warnings = append(d.cfg.Warnings, text)
}

// oversight notes a key that the built-in output would ignore in silence: a fault with
// strict, a warning without. The text continues the sentence that begins with the key.
func (d *decoder) oversight(key, text string) {
	if d.cfg.Strict {
		d.fault(key, text+" (strict off: only a warning)")
		return
	}
	d.warn(key + " " + text)
}

// hint is a warning whose text continues the sentence that begins with the key.
func (d *decoder) hint(key, text string) { d.warn(key + " " + text) }

// set tells whether the section sets an option.
func (d *decoder) set(name string) bool { return d.text[name] != "" }

// label is the spelling of an option in the section.
func (d *decoder) label(name string) string {
	if key := d.key[name]; key != "" {
		return key
	}
	return name
}

// summarize writes what differs from the defaults.
func (d *decoder) summarize() string {
	var parts []string
	add := func(key, value string, secret bool) {
		switch {
		case secret:
			value = hidden
		case value == "" || strings.ContainsAny(value, " \"=") || quote(value) != `"`+value+`"`:
			value = quote(value)
		}
		parts = append(parts, key+"="+value)
	}
	var plain Config
	for _, o := range Options() {
		if o.Default != "" {
			_ = o.set(&plain, o.Default) // readOptions has reported it
		}
		if value := o.get(d.cfg); value != o.get(&plain) {
			add(o.Name, value, o.Secret || holdsSecret(value))
		}
	}
	for _, p := range d.client {
		if p.name != "bootstrap.servers" && p.file == "" { // shown as brokers, and as the option that names the file
			add(rdkafkaPrefix+p.written, p.value, p.secret)
		}
	}
	return strings.Join(parts, " ")
}

// joinList writes a list as the section does.
func joinList(items []string) string { return strings.Join(items, ",") }

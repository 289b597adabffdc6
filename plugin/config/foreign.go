package config

// ForeignKey is a key of the built-in kafka output that this one does not have yet. It
// is asked for so that a section that is moved here does not lose it in silence.
type ForeignKey struct {
	Name    string
	Aliases []string
	// Refuse tells that going on without the key would change what is written or
	// whether it can be written at all.
	Refuse bool
	// Switch tells that the value is a boolean, and that false is the same as unset.
	Switch bool
	// Note says what the key is about.
	Note string
}

// Foreign lists those keys.
var Foreign = []ForeignKey{
	{Name: "aws_msk_iam", Refuse: true, Switch: true, Note: "login with AWS IAM"},
	{Name: "aws_msk_iam_cluster_arn", Note: "login with AWS IAM; alone it does nothing"},
	{Name: "group_id", Note: "consumer groups, which an output has none of"},
}

// readForeign asks for the keys of Foreign. Their values are never printed: some are
// secrets, and none helps to mend the section.
func (d *decoder) readForeign(g Getter) {
	for _, k := range Foreign {
		for _, name := range append([]string{k.Name}, k.Aliases...) {
			if value := g.Get(name); value != "" {
				d.judgeForeign(k, name, value)
			}
		}
	}
}

func (d *decoder) judgeForeign(k ForeignKey, name, value string) {
	if on, err := parseBool(value); k.Switch && err == nil && !on {
		return
	}
	if k.Refuse {
		d.fault(name, "is not supported yet ("+k.Note+"); remove it, or keep this section on the built-in kafka output")
		return
	}
	d.warn(name + " has no effect: it is about " + k.Note)
}

// Package config turns one [OUTPUT] section into a Config: typed, checked and ready
// to use, so that nothing behind it parses text again.
//
// One table, Sections, holds every option: name, aliases, kind, default, allowed
// values, sentence. It drives reading, docs/configuration.md (cmd/docgen), the
// start-up line and the hiding of secrets. Fluent Bit gives a plugin no list of the
// keys of its section, each must be asked for by name; so the tables of this package
// are also the complete list of questions: the options with their aliases, the keys of
// the built-in kafka output that are not supported (Foreign), one rdkafka.<name> for each
// property in rdkafka_names.txt and for each name of other clients (Misnamed). A test
// compares what is asked with them. Behind these come the likely slips of all of them, as
// a misspelt key exists only for whoever asks for it.
//
// Decode runs once per section, in Fluent Bit's init call on its thread. It reads,
// parses, fills in defaults, compares the options with each other and settles the list
// of client properties. It opens nothing, logs nothing and starts nothing; all it
// calls are the Getter and the Checker. All faults of a section come back in one
// error, so that a section is mended once. What is no fault but would surprise comes
// back in Config.Warnings. Neither ever holds the value of a secret.
//
// A Config is not changed after Decode has returned it and may be read from any
// goroutine.
package config

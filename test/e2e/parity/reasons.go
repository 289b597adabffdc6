package parity

// A Reason says why a message that differs from the built-in output's is as good or better.
type Reason struct {
	// Name is short, for the table.
	Name string
	// Text says what the built-in output does, and what we do.
	Text string
	// Verdict is that on a message that differs for this reason alone.
	Verdict Verdict
}

// The reasons. A difference without one makes a record worse.
var (
	escapes = &Reason{Name: "letters", Verdict: Same, Text: "Text that is not ASCII stands as itself in JSON, not as `\\u` escapes " +
		"(`json_escape_unicode on` brings them)."}
	spelling = &Reason{Name: "spelling", Verdict: Same, Text: "The same values, written otherwise: `1e+21` for `1e21`, `\\u007f` for the " +
		"character itself, the fields of protobuf messages in another order."}
	digits = &Reason{Name: "digits", Verdict: Better, Text: "Floats of 64 bits have all digits that they need to be read back; the built-in output rounds to 16, " +
		"from which readers get another number."}
	singleDigits = &Reason{Name: "digits of float32", Verdict: Same, Text: "A float of 32 bits with all digits of the same number in 64 bits; the built-in output " +
		"writes 16 of them, from which readers get the same float of 32 bits."}
	badText = &Reason{Name: "UTF-8", Verdict: Better, Text: "A byte that is not UTF-8 becomes U+FFFD, in OTLP the text becomes bytes. The built-in output drops " +
		"the byte, puts letters of the private use area in its place, reads overlong forms as the letter, or passes on what is no valid JSON or protobuf."}
	controls = &Reason{Name: "controls", Verdict: Better, Text: "A text with a NUL is whole in OTLP; the built-in output cuts it off there."}
	exts     = &Reason{Name: "ext", Verdict: Better, Text: "An ext is written in a form that readers take. In JSON the built-in output writes escapes that are no JSON, " +
		"or an empty text; in GELF text that is no JSON; in OTLP the ext costs the record its body; in Avro other bytes than the ext's are written."}
	oddFloats = &Reason{Name: "NaN", Verdict: Better, Text: "NaN and infinities are `null` in JSON, left out in GELF and the texts that OTLP has for them; " +
		"the built-in output writes `nan`, which is no JSON."}
	oddNames = &Reason{Name: "keys", Verdict: Better, Text: "Keys that are no text become one. In JSON the built-in output writes them without quotes, in GELF it drops the " +
		"field, in OTLP they cost the record its body."}
	duplicates = &Reason{Name: "twice", Verdict: Better, Text: "A key that is there as a text and as something that reads the same is there once; the built-in output writes both."}
	singles    = &Reason{Name: "float32", Verdict: Better, Text: "Floats of 32 bits are in GELF; the built-in output drops them."}
	quotes     = &Reason{Name: "quotes", Verdict: Better, Text: "Texts inside lists are escaped in GELF; the built-in output writes what is no JSON."}
	blanks     = &Reason{Name: "blanks", Verdict: Better, Text: "Fields of maps inside maps inside lists have a blank between them in GELF."}
	names      = &Reason{Name: "names", Verdict: Better, Text: "`gelf_host_key` and `gelf_timestamp_key` count; the built-in output takes them and does nothing with them."}
	rescued    = &Reason{Name: "written", Verdict: Better, Text: "A record that the built-in output gives up is written: in GELF with a float above 1e300 or so, or with a level that " +
		"is null or a map; in OTLP's protobuf with an ext, an integer above 2^63 or a key that is no text; in Avro with a value that the " +
		"schema has a place for and the built-in output does not put there, or with a field first that the schema has no name for."}
	neighbours = &Reason{Name: "neighbours", Verdict: Better, Text: "A record that can't be written does not take those behind it in its chunk with it."}
	topicNames = &Reason{Name: "topic names", Verdict: Differs, Text: "With `dynamic_topic` a record whose topic has no name that Kafka takes goes to the default topic, with " +
		"a line in the log. The built-in output sends it to that topic: Kafka refuses it and the record is lost, a broker of another kind may take it."}
	topicEnds = &Reason{Name: "topic ends", Verdict: Better, Text: "A topic whose name has a NUL is not possible, and the record goes to the default topic; the built-in " +
		"output sends it to a topic whose name ends there."}
	topicBegins = &Reason{Name: "topic begins", Verdict: Better, Text: "With `dynamic_topic` a topic whose name begins that of the default topic is a topic of its own; the built-in " +
		"output takes it for the default topic."}
	fields = &Reason{Name: "fields", Verdict: Better, Text: "In OTLP the fields beside `log` or `message` are attributes, and flags, event name and the count of dropped attributes " +
		"are there; the built-in output drops them."}
	integers = &Reason{Name: "integers", Verdict: Better, Text: "An integer above 2^63 is a text in OTLP; the built-in output writes a number that no reader of OTLP's JSON takes."}
	times    = &Reason{Name: "times", Verdict: Better, Text: "A time that is an integer is in nanoseconds in OTLP, as it must be; the built-in output writes the seconds."}
	misfits  = &Reason{Name: "misfits", Verdict: Better, Text: "In Avro a record that lacks a field without a default is set apart; the built-in output writes 0, false or " +
		"nothing there, which no reader can tell from a value."}
	unknown = &Reason{Name: "unknown", Verdict: Better, Text: "In Avro a field that the schema has no name for is left out alone; the built-in output drops those behind it as well, " +
		"and writes 0, false or nothing for them."}
	depths = &Reason{Name: "depth", Verdict: Better, Text: "What is nested deeper than readers of protobuf go stands there as JSON in OTLP; the built-in output writes what they refuse."}
)

var allReasons = []*Reason{
	escapes, spelling, digits, singleDigits, badText, controls, exts, oddFloats, oddNames, duplicates, singles, quotes, blanks, names, rescued, neighbours,
	topicNames, topicEnds, topicBegins, fields, integers, times, depths, misfits, unknown,
}

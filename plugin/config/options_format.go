package config

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

var formatOptions = []Option{
	yesNo(Option{
		Name: "json_escape_unicode", Default: "false",
		Doc: "Whether `format json` writes text that is not ASCII as `\\u` escapes.",
		Note: "The built-in output takes this from `json.escape_unicode` of the service, where it is on by default; a plugin" +
			" can't read that. To a reader of JSON both are the same text.",
	}, func(c *Config) *bool { return &c.JSONEscapeUnicode }),
	choice(Option{
		Name: "json_invalid_utf8", Default: "replace",
		Doc: "What `format json` does with bytes of a text that are not valid UTF-8.",
		Note: "`replace`: each becomes U+FFFD. `remove`: they are left out. `refuse`: the record can't be written and is a" +
			" dead letter, but for bytes of the tag under `tag_key`, which are replaced.",
	}, invalidUTF8, func(c *Config) *InvalidUTF8 { return &c.JSONInvalidUTF8 }),
	text(Option{
		Name: "raw_log_key",
		Doc:  "The top-level key whose text is the message with `format raw`, which needs it.",
		Note: "A record without a text under it can't be written and is a dead letter.",
	}, func(c *Config) *string { return &c.RawLogKey }),
	text(Option{
		Name: "gelf_short_message_key", Default: "short_message",
		Doc: "The top-level key that becomes `short_message` with `format gelf`.",
		Note: "A record without it can't be written and is a dead letter. Null or a map there passes, and gives a message" +
			" without `short_message`.",
	}, func(c *Config) *string { return &c.GELFShortMessageKey }),
	text(Option{
		Name: "gelf_full_message_key", Default: "full_message",
		Doc: "The top-level key that becomes `full_message` with `format gelf`.",
	}, func(c *Config) *string { return &c.GELFFullMessageKey }),
	text(Option{
		Name: "gelf_level_key", Default: "level",
		Doc: "The top-level key that becomes `level` with `format gelf`.",
		Note: "Numbers stay, the keywords of syslog become their number, any other text stays. A number below 0, a float," +
			" a boolean, a binary value or an array makes the record a dead letter.",
	}, func(c *Config) *string { return &c.GELFLevelKey }),
	text(Option{
		Name: "gelf_host_key", Default: "host",
		Doc:  "The top-level key that becomes `host` with `format gelf`.",
		Note: "The built-in output accepts it and looks for `host` all the same.",
	}, func(c *Config) *string { return &c.GELFHostKey }),
	text(Option{
		Name: "gelf_timestamp_key", Default: "timestamp",
		Doc:  "The top-level key that becomes `timestamp` with `format gelf`, in place of the time of the record.",
		Note: "The built-in output accepts it and looks for `timestamp` all the same.",
	}, func(c *Config) *string { return &c.GELFTimestampKey }),
	text(Option{
		Name: "schema_str", Allowed: "an Avro schema in JSON, of a record or map",
		Doc:  "The schema with `format avro`.",
		Note: "It needs `schema_id`. Without both of them the schema is fetched, see [Schema registry](#schema-registry).",
	}, func(c *Config) *string { return &c.SchemaText }),
	number(Option{
		Name: "schema_id", Default: "0",
		Doc:  "The number of the schema with `format avro`, which stands in front of each message.",
		Note: "`0` is the same as none.",
	}, 0, 1<<31-1, func(c *Config) *int { return &c.SchemaID }),
	choice(Option{
		Name: "avro_unknown_fields", Default: "ignore",
		Doc: "What becomes of fields that the schema has no name for, with `format avro`.",
		Note: "`ignore`: the record is written without them, as by the built-in output; the log and a metric tell of them." +
			" `reject`: the record can't be written and is a dead letter.",
	}, unknownFields, func(c *Config) *UnknownFields { return &c.AvroUnknownFields }),
	text(Option{
		Name: "schema_registry_subject", Aliases: []string{"schema.registry.subject"},
		Doc: "The subject whose schema is fetched; without it the one of `schema_id` is.",
	}, func(c *Config) *string { return &c.SchemaSubject }),
	typed(Option{
		Name: "schema_registry_version", Aliases: []string{"schema.registry.version"}, Default: versionLatest,
		Allowed: "latest, or a number from 1",
		Doc:     "The version of the subject's schema.",
		Note:    "`latest` is what is the latest when the plugin asks. It asks once and keeps the answer until Fluent Bit ends.",
	}, KindText, func(c *Config) *int { return &c.SchemaVersion }, parseVersion, formatVersion),
	choice(Option{
		Name: "schema_registry_framing", Aliases: []string{"serializer.framing"}, Default: "cp1",
		Doc: "What stands in front of each message with `format avro`: a zero and the number of the schema in four bytes.",
	}, framings, func(c *Config) *framing { return &c.framing }),
	yesNo(Option{
		Name: "otlp_logs_partition_by_resource", Default: "false",
		Doc: "Whether each resource gets messages of its own with `format otlp_json` and `otlp_proto`, with a hash of its" +
			" attributes as their key.",
		Note: "Records without a resource get messages without a key. `message_key` has no effect then.",
	}, func(c *Config) *bool { return &c.OTLPPartitionByResource }),
}

var registryOptions = []Option{
	typed(Option{
		Name: "schema_registry_url", Aliases: []string{"schema.registry.url"},
		Allowed: "http or https addresses, separated by commas",
		Doc:     "Where the schema registry is; after a failure the next address is asked.",
		Note: "A redirect is followed, but not from https to http; the login is not sent to another host. An answer may have 16 MB." +
			" What a registry answers is logged without the login, up to 600 bytes.",
	}, KindList, func(c *Config) *[]string { return &c.RegistryURLs }, parseURLs, joinList),
	text(Option{
		Name: "schema_registry_http_user", Aliases: []string{"schema.registry.http.user"},
		Doc: "The user to log in with.",
	}, func(c *Config) *string { return &c.RegistryUser }),
	text(Option{
		Name: "schema_registry_http_passwd", Aliases: []string{"schema.registry.http.password"}, Secret: true,
		Doc: "The password of that user.",
	}, func(c *Config) *string { return &c.RegistryPassword }),
	text(Option{
		Name: "schema_registry_bearer_token", Aliases: []string{"schema.registry.bearer.token"}, Secret: true,
		Doc: "The token to log in with, if there is no user.",
	}, func(c *Config) *string { return &c.RegistryToken }),
	text(Option{
		Name: "schema_registry_ca_file", Allowed: "the path of a file in PEM",
		Doc:  "The certificate authorities to trust with https; without it those of the system.",
		Note: "The built-in output has `tls.ca_file` for this, which Fluent Bit does not show to a plugin.",
	}, func(c *Config) *string { return &c.RegistryCAFile }),
}

// versionLatest is the word for the latest version of a subject, and VersionLatest what it
// is in the Config.
const (
	versionLatest = "latest"
	VersionLatest = -1
)

func parseVersion(text string) (int, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	if s == versionLatest {
		return VersionLatest, nil
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return 0, errors.New("is no version; allowed: latest, or a number from 1")
	}
	return int(n), nil
}

func formatVersion(n int) string {
	if n == VersionLatest {
		return versionLatest
	}
	return strconv.Itoa(n)
}

// parseURLs reads the addresses of the registry.
func parseURLs(text string) ([]string, error) {
	items := parseList(text)
	if len(items) == 0 {
		return nil, errors.New("names no address; write for example http://registry:8081")
	}
	for _, item := range items {
		u, err := url.Parse(item)
		switch {
		case strings.Contains(item, "@"): // first, for the other error quotes it
			return nil, errors.New("names a user; that belongs into schema_registry_http_user and schema_registry_http_passwd")
		case err == nil && u.RawQuery != "":
			return nil, errors.New("has a query; a token belongs into schema_registry_bearer_token")
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Fragment != "":
			return nil, fmt.Errorf("has %s, which is no http or https address", shown(item))
		}
	}
	return items, nil
}

// needs are the options that only some formats look at.
var needs = []struct {
	formats []Format
	names   []string
}{
	{[]Format{FormatJSON, FormatMsgPack}, []string{"timestamp_key", "timestamp_format", "tag_key", "metadata_key"}},
	{[]Format{FormatJSON, FormatMsgPack, FormatGELF}, []string{"add_timestamp"}},
	{[]Format{FormatJSON}, []string{"json_escape_unicode", "json_invalid_utf8"}},
	{[]Format{FormatRaw}, []string{"raw_log_key"}},
	{[]Format{FormatGELF}, []string{
		"gelf_short_message_key", "gelf_full_message_key", "gelf_level_key", "gelf_host_key", "gelf_timestamp_key",
	}},
	{[]Format{FormatAvro}, []string{
		"schema_str", "schema_id", "avro_unknown_fields", "schema_registry_subject", "schema_registry_version",
		"schema_registry_framing", "schema_registry_url", "schema_registry_http_user", "schema_registry_http_passwd", "schema_registry_bearer_token",
		"schema_registry_ca_file",
	}},
	{[]Format{FormatOTLPJSON, FormatOTLPProto}, []string{"otlp_logs_partition_by_resource"}},
	// A message of many records has no field to route by.
	{[]Format{FormatJSON, FormatMsgPack, FormatGELF, FormatRaw, FormatAvro}, []string{
		"topic_key", "dynamic_topic", "max_dynamic_topics", "message_key_field",
	}},
}

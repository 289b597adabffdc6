package plugin

import (
	"fmt"

	"out_kafka_reconnect/plugin/config"
	"out_kafka_reconnect/plugin/format"
	"out_kafka_reconnect/plugin/schema"
)

// tagWriter is a format that can put the tag into the value, and must know it before the
// records of a chunk.
type tagWriter interface{ SetTag(tag string) }

// newValueEncoder makes what writes the values of the messages. It is nil for Avro, which needs
// a schema first: ready makes it then; and for the formats that have a bundler instead.
func newValueEncoder(c *config.Config) format.Encoder {
	timestampKey := c.TimestampKey
	if !c.AddTimestamp {
		timestampKey = ""
	}
	timestampFormat := timestampFormats[c.TimestampFormat]
	switch c.Format {
	case config.FormatMsgPack:
		return format.NewMsgPack(format.MsgPackConfig{
			TimestampKey:    timestampKey,
			TimestampFormat: timestampFormat,
			TagKey:          c.TagKey,
			MetadataKey:     c.MetadataKey,
		})
	case config.FormatGELF:
		return format.NewGELF(format.GELFConfig{
			HostKey:         c.GELFHostKey,
			TimestampKey:    c.GELFTimestampKey,
			ShortMessageKey: c.GELFShortMessageKey,
			FullMessageKey:  c.GELFFullMessageKey,
			LevelKey:        c.GELFLevelKey,
			NoTimestamp:     !c.AddTimestamp,
		})
	case config.FormatRaw:
		return format.NewRaw(c.RawLogKey)
	case config.FormatAvro, config.FormatOTLPJSON, config.FormatOTLPProto:
		return nil
	default:
		return format.NewJSON(format.JSONConfig{
			TimestampKey:    timestampKey,
			TimestampFormat: timestampFormat,
			EscapeUnicode:   c.JSONEscapeUnicode,
			InvalidUTF8:     invalidUTF8[c.JSONInvalidUTF8],
			TagKey:          c.TagKey,
			MetadataKey:     c.MetadataKey,
		})
	}
}

// messageOverhead is more than what a message has around its key and value on the wire, the head
// of a batch included: a broker judges the batch.
const messageOverhead = 128

// newBundler makes what writes messages of many records, or nil if the format has one for each.
func newBundler(c *config.Config) format.Bundler {
	if !c.Format.Bundles() {
		return nil
	}
	return format.NewOTLP(otlpConfig(c))
}

// newSignals makes what writes metrics and traces, or nil if the format has no form for them.
func newSignals(c *config.Config) *format.OTLPSignals {
	if !c.Format.Bundles() {
		return nil
	}
	return format.NewOTLPSignals(otlpConfig(c))
}

func otlpConfig(c *config.Config) format.OTLPConfig {
	return format.OTLPConfig{
		JSON:       c.Format == config.FormatOTLPJSON,
		ByResource: c.OTLPPartitionByResource,
		MaxBytes:   c.MaxMessageBytes() - messageOverhead - len(c.MessageKey),
	}
}

// timestampFormats and invalidUTF8 join the words of the section to those of the format; the
// two packages do not know each other.
var (
	timestampFormats = map[config.TimestampFormat]format.TimestampFormat{
		config.TimestampDouble:    format.TimestampDouble,
		config.TimestampISO8601:   format.TimestampISO8601,
		config.TimestampISO8601NS: format.TimestampISO8601NS,
	}
	invalidUTF8 = map[config.InvalidUTF8]format.InvalidUTF8{
		config.InvalidReplace: format.InvalidReplace,
		config.InvalidRemove:  format.InvalidRemove,
		config.InvalidRefuse:  format.InvalidRefuse,
	}
)

// ready tells whether records can be written: the schema may still be on its way.
func (e *encoder) ready() bool {
	if e.value != nil || e.bundler != nil {
		return true
	}
	s := e.schemas.Schema()
	if s == nil {
		return false
	}
	e.avro = format.NewAvro(format.AvroConfig{Schema: s, RefuseUnknown: e.refuseUnknown})
	e.value = e.avro
	return true
}

// newSchemas makes the source of the Avro schema, or nil for another format. An instance
// that goes on for another one of the same destination keeps the schema that is known:
// the same chunk must give the same messages, or receipts would speak of others.
func newSchemas(c *config.Config, heir *Instance) (*schema.Source, error) {
	if c.Format != config.FormatAvro {
		return nil, nil
	}
	if heir != nil {
		if s := heir.schemas.Schema(); s != nil {
			return schema.Known(s), nil
		}
	}
	s, err := schema.New(schema.Options{
		Text: c.SchemaText, ID: c.SchemaID, Subject: c.SchemaSubject, Version: c.SchemaVersion,
		URLs: c.RegistryURLs, User: c.RegistryUser, Password: c.RegistryPassword, Token: c.RegistryToken, CAFile: c.RegistryCAFile,
		Timeout: c.ProbeTimeout, BackoffMin: c.ReconnectBackoffMin, BackoffMax: c.ReconnectBackoffMax,
	})
	if err != nil {
		return nil, fmt.Errorf("plugin: the schema of format avro: %w", err)
	}
	return s, nil
}

// startSchemas begins to fetch the schema, if that is needed.
func (in *Instance) startSchemas() {
	in.schemas.Start(func(url string, id int) {
		in.log.Info("the schema is known, records are written from now on", "schema_id", id, "url", url)
		in.postKept()
	}, func(err error) {
		in.quiet.warn("the schema could not be fetched; flushes are answered with a retry until it is", 1,
			"err", in.cfg.HideRegistryLogin(err.Error()))
	})
}

package plugin

import (
	"errors"

	"out_kafka_reconnect/plugin/chunk"
)

// Telemetry reads chunks that hold metrics or traces, and writes them as OTLP in protobuf. Its
// methods may be called from any number of goroutines at once.
type Telemetry interface {
	// AppendOTLP appends the message of the context that begins at data[at] and returns the
	// position behind the context. With an error there is no message; the position is at if the
	// context can't be read, and what is behind it neither.
	AppendOTLP(dst []byte, s chunk.Signal, data []byte, at int) (out []byte, next int, err error)
}

// noTelemetry is that of a host without it. It has chunks to read only if a newer host has left them.
type noTelemetry struct{}

var errNoTelemetry = errors.New("plugin: this Fluent Bit has no functions that read metrics and traces")

func (noTelemetry) AppendOTLP(dst []byte, _ chunk.Signal, _ []byte, at int) ([]byte, int, error) {
	return dst, at, errNoTelemetry
}

// leavesOut tells of a chunk that is none of this section's business. Fluent Bit asks a plugin once
// which signals it takes, not each section; so a section whose format has a form for logs only is
// given metrics and traces too. The built-in output is not, and writes nothing of them either.
func (in *Instance) leavesOut(data []byte, tag string) bool {
	if in.cfg.Format.Bundles() {
		return false
	}
	signal := chunk.SignalOf(data)
	if signal == chunk.Logs {
		return false
	}
	in.counts.leftOutChunks.Add(1)
	in.leftOut.Do(func() {
		in.log.Info("metrics and traces match this section and are not written, as its format has no form for them; otlp_json and otlp_proto have (logged once)",
			"signal", signal, "tag", tag)
	})
	return true
}

// newEncoder makes an encoder for one goroutine, which sheds its buffers in the end.
func (in *Instance) newEncoder() (*encoder, error) {
	e, err := newEncoder(in.cfg, in.schemas)
	if err == nil {
		e.telemetry, e.room.memory = in.telemetry, in.memory
	}
	return e, err
}

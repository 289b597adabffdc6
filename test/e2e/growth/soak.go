package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"out_kafka_reconnect/test/e2e/audit"
	"out_kafka_reconnect/test/e2e/rig"
)

const (
	// soakRecords is how many records come while Kafka is away, of about soakSize bytes each.
	soakRecords = 1_000_000
	soakSize    = 280
	// soakPatience bounds one soak, soakQuiet is how long it is watched after the delivery.
	soakPatience = 8 * time.Minute
	soakQuiet    = time.Minute
)

// A soak is a backlog of soakRecords that comes while Kafka is away, and its delivery.
type soak struct {
	Output    string  `json:"output"`
	Before    float64 `json:"before_mib"` // at rest, before the first record
	Peak      float64 `json:"peak_mib"`
	Waiting   float64 `json:"waiting_mib"` // when all records are there
	After     float64 `json:"after_mib"`   // a minute after the last one is delivered
	Own       float64 `json:"own_mib"`     // of it, what is in no file
	Seconds   float64 `json:"seconds"`     // from Kafka's return to the last record
	Lost      int     `json:"lost"`
	Doubled   int     `json:"doubled"`
	Delivered bool    `json:"delivered"` // it is an output that delivers
}

func (s soak) String() string {
	text := fmt.Sprintf("soak, %s: %.0f MiB before, %.0f at most, %.0f with all waiting, %.0f after a minute (%.0f of its own)",
		s.Output, s.Before, s.Peak, s.Waiting, s.After, s.Own)
	if s.Delivered {
		text += fmt.Sprintf("; delivered in %.1f s, %d lost, %d doubled", s.Seconds, s.Lost, s.Doubled)
	}
	return text
}

// soaks compares the outputs. The null output shows what is the host's own.
func (b *bench) soaks(ctx context.Context, r *report) error {
	outputs := []output{
		{name: nowhere, lines: "name null\n"},
		{name: builtIn, lines: builtInLines},
		{name: ours + ", queue_limit 64MiB", lines: oursLines + "queue_limit 64MiB\n"},
		{name: ours + ", queue_limit 8MiB", lines: oursLines + "queue_limit 8MiB\n"},
	}
	if b.fluentBit == "" {
		outputs = slices.Delete(outputs, 1, 2)
	}
	for _, o := range outputs {
		s, err := b.soak(ctx, o)
		if err != nil {
			return fmt.Errorf("soak, %s: %w", o.name, err)
		}
		r.Soaks = append(r.Soaks, s)
		b.say("%s", s)
	}
	return nil
}

func (b *bench) soak(ctx context.Context, o output) (s soak, err error) {
	ctx, cancel := context.WithTimeout(ctx, soakPatience)
	defer cancel()
	s.Output, s.Delivered = o.name, o.name != nowhere
	broker, err := rig.NewEmbedded(rig.BrokerOptions{})
	if err != nil {
		return s, err
	}
	defer func() { _ = broker.Close() }()
	if err := broker.Stop(); err != nil {
		return s, err
	}
	tally := rig.NewTally()
	h, done, err := b.host(ctx, o, broker.Addrs(), tally)
	if err != nil {
		return s, err
	}
	defer done()
	if err := rig.Pause(ctx, settles); err != nil {
		return s, err
	}
	if s.Before, err = b.resident(h); err != nil {
		return s, err
	}
	if err := h.LogShaped(ctx, soakRecords, rig.Shape{Size: soakSize}); err != nil {
		return s, err
	}
	if err := rig.Pause(ctx, settles); err != nil {
		return s, err
	}
	if s.Waiting, err = b.resident(h); err != nil {
		return s, err
	}
	if err := broker.Start(ctx); err != nil {
		return s, err
	}
	began := time.Now()
	for s.Delivered && broker.Delivered() < soakRecords {
		if err := rig.Pause(ctx, 100*time.Millisecond); err != nil {
			return s, fmt.Errorf("%d of %d records: %w", broker.Delivered(), soakRecords, err)
		}
	}
	s.Seconds = time.Since(began).Seconds()
	if err := rig.Pause(ctx, soakQuiet); err != nil {
		return s, err
	}
	res, err := rig.ResourcesOf(h.PID())
	s.After, s.Own, s.Peak = rig.MiB(res.Memory), rig.MiB(res.Anonymous), rig.MiB(res.Peak)
	if err == nil && s.Delivered {
		result, failed := tally.Compare(ctx, audit.Options{Brokers: broker.AuditAddrs(), Topic: rig.Topic})
		if failed != nil {
			return s, failed
		}
		s.Lost, s.Doubled = len(result.Lost), len(result.Doubled)
	}
	return s, err
}

// resident is what the host holds, in MiB.
func (b *bench) resident(h rig.Host) (float64, error) {
	res, err := rig.ResourcesOf(h.PID())
	return rig.MiB(res.Memory), err
}

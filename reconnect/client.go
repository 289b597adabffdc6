package reconnect

import (
	"time"

	"out_kafka_reconnect/reconnect/fsm"
)

// Client is one producer handle of librdkafka, of one generation. The supervisor
// opens, paces and closes it; flushes hand batches over through the supervisor.
// All methods but Heartbeat, Changed and Close return at once, and none but Close waits
// for the sink. Produce is never called during or after Close; SetGate, Heartbeat and
// Changed may be.
type Client interface {
	// Produce hands a batch over, and may keep its bytes if they are lent. Every message of it is reported in the Delivery,
	// also those that the client refuses at once, but for those that it leaves out because
	// its queue is full, see Delivery.LeftOut.
	Produce(b *Batch) *Delivery
	// SetGate rules whether connection attempts may start. Open releases every hold;
	// Sweep allows one attempt for each distinct address from now on. Open and Sweep
	// wake the broker threads, so that an allowed attempt starts at once.
	SetGate(g fsm.ConnGate)
	// Hold refuses attempts to one address for d while the gate is open; a gate that
	// opens anew ends it.
	Hold(addr string, d time.Duration)
	// ShutSockets shuts every open connection down, which makes the client requeue
	// what was in flight, and returns how many there were.
	ShutSockets() int
	// Silence looks for ready connections that were asked and have shown no sign of life for
	// that long: neither was a byte received nor one of ours taken. ShutSilent shuts them.
	Silence(after time.Duration) Silence
	ShutSilent(after time.Duration)
	// Heartbeat asks any connected broker for metadata and blocks until the answer or
	// the timeout. The trouble is what the answer tells of the topics in use, or empty.
	Heartbeat(timeout time.Duration) (trouble string, err error)
	// Changed tells which of the files that the client was opened with have changed since,
	// or nothing. The error is why no client can be made of them. It reads files and
	// takes as long as opening a client.
	Changed() (files string, err error)
	// Close purges what is still queued, reports every outstanding message to its
	// Delivery and releases the handle. It blocks no longer than the timeout and a
	// few milliseconds; what could not be released by then is left to a C thread.
	Close(timeout time.Duration) error
}

// Silence is what Client.Silence has found among the ready connections.
type Silence struct {
	// Ready counts all of them, Silent those that are silent.
	Ready, Silent int
	// Suspect counts those that are on the way there, for more than half of the time, and
	// Next is when the first of them will be.
	Suspect int
	Next    time.Duration
	// Alive counts those with a sign of life within half of the time. The rest was not
	// asked anything.
	Alive int
}

// Opener makes a client of the given generation. The sink receives what happens to
// it, in order, from one goroutine that belongs to the client; it may block for a
// short time only. No notice arrives after Close has returned.
type Opener func(gen int, sink func(Notice)) (Client, error)

// Notice is something that a client reports. Exactly one of the parts that its Kind
// names is set.
type Notice struct {
	Gen  int
	Kind NoticeKind
	// Brokers is the whole table of addresses as it stands now (NoticeBrokers). It is
	// level-triggered: a burst of changes may arrive as one notice, the counters tell
	// what happened in between.
	Brokers []Broker
	// Epoch is the number of SetGate calls that this client had seen when the table was
	// read; a table with an older epoch tells nothing of the gate that stands now.
	Epoch uint64
	// NoneLeft: since a broker was last up or the gate last set, the client has said that no
	// address is left that it knows: each has failed, or its connection has ended at some time and
	// was not made anew. It knows some that no table has, as it connects to few of them and tries
	// the others when it has lost these (NoticeBrokers).
	NoneLeft bool
	// Class and Text describe an error (NoticeError, NoticeFatal).
	Class fsm.Class
	Code  int
	Text  string
}

// NoticeKind says what a Notice tells.
type NoticeKind uint8

// The kinds of notices.
const (
	// NoticeBrokers: some address changed its state or its counters.
	NoticeBrokers NoticeKind = iota
	// NoticeAcked: at least one message was acknowledged since the last such notice.
	NoticeAcked
	// NoticeReported: messages were reported, none of them as acknowledged.
	NoticeReported
	// NoticeError: the client reported an error that is no refusal of ours.
	NoticeError
	// NoticeFatal: the client can't go on and must be replaced.
	NoticeFatal
)

// Broker is what is known of one distinct broker address (host:port as the client
// asks for it). The counters only grow over the life of a client.
type Broker struct {
	Addr string
	// Up is the number of connections to this address that are ready for requests.
	Up int
	// InFlight is the number of attempts that have neither succeeded nor failed yet.
	InFlight int
	// Permits is the number of attempts that the current sweep still allows; with an
	// open or shut gate it is 0.
	Permits int
	// Configured: the address is one of the configuration, others are learned from a broker.
	Configured bool
	// Member: a broker of the cluster was ready at it. Others may be names that only lead to one.
	Member bool
	// Asked tells whether the client wanted to connect to it within the last seconds.
	Asked bool
	// Attempts counts connects and failed look-ups, Failures those of them that ended
	// without the connection getting ready, Ups those that did.
	Attempts, Failures, Ups uint64
	// Shorts counts connections that were ready but lived shorter than a second
	// without a single acknowledgement.
	Shorts uint64
	// Class is the class of the last failure.
	Class fsm.Class
	// Text is the reason of the last failure as the client gave it, or empty.
	Text string
}

// Status says whether the broker may have written a message.
type Status uint8

// Message status as librdkafka keeps it; it is sticky: a message that was sent once
// and requeued stays PossiblyPersisted.
const (
	NotPersisted Status = iota
	PossiblyPersisted
	Persisted
)

// Failure is one message of a batch that was not acknowledged.
type Failure struct {
	Index  int
	Class  fsm.Class
	Code   int
	Status Status
	Text   string
	// Refused: the client itself did not take the message, so no batch and no broker had a
	// part in it.
	Refused bool
}

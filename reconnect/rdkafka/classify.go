package rdkafka

/*
#include "okr.h"
*/
import "C"

import "out_kafka_reconnect/reconnect/fsm"

// classes is the one table that says what an error code means to us. Local codes of
// librdkafka are negative, codes of the Kafka protocol positive. A code that is not
// listed is transient: giving a chunk back once too often loses nothing.
//
// The message status, not this table, tells whether a message may have been written.
var classes = map[int]fsm.Class{
	0: fsm.ClassNone,

	// The network or the cluster, on the way back by itself.
	-195: fsm.ClassNetwork, // transport failure
	-193: fsm.ClassResolve,
	-192: fsm.ClassTransient, // message timed out
	-187: fsm.ClassNetwork,   // all brokers down
	-185: fsm.ClassTransient, // timed out
	-184: fsm.ClassTransient, // queue full
	-166: fsm.ClassTransient, // timed out in queue
	-197: fsm.ClassTransient, // handle destroyed: a new one takes over
	-199: fsm.ClassNetwork,   // bad message: no Kafka at that port
	-152: fsm.ClassTransient, // purged while queued
	-151: fsm.ClassTransient, // purged in flight
	-138: fsm.ClassTransient, // a batch mate of an invalid record
	2:    fsm.ClassTransient, // corrupt on the wire
	5:    fsm.ClassTransient, // leader not available
	6:    fsm.ClassTransient, // not leader
	7:    fsm.ClassTransient, // request timed out
	8:    fsm.ClassTransient, // broker not available
	13:   fsm.ClassTransient, // network exception
	19:   fsm.ClassTransient, // not enough replicas
	20:   fsm.ClassTransient, // not enough replicas after append
	56:   fsm.ClassTransient, // storage error
	89:   fsm.ClassTransient, // throttling quota exceeded

	// How we introduce ourselves is wrong.
	-181: fsm.ClassTLS,
	-169: fsm.ClassAuthentication,
	33:   fsm.ClassAuthentication, // unsupported SASL mechanism
	34:   fsm.ClassAuthentication, // illegal SASL state
	58:   fsm.ClassAuthentication, // SASL authentication failed
	31:   fsm.ClassAuthorization,  // cluster authorisation failed
	53:   fsm.ClassAuthorization,  // transactional id authorisation failed

	// A setting of the topic that an operator can mend: the record waits.
	-190: fsm.ClassTopic, // unknown partition
	-188: fsm.ClassTopic, // unknown topic, as the client remembers it
	3:    fsm.ClassTopic, // unknown topic or partition
	29:   fsm.ClassAuthorization,

	// Right for every other record, never for this one.
	-186: fsm.ClassRecord, // invalid argument: a topic name that the client refuses
	10:   fsm.ClassRecord, // message too large
	17:   fsm.ClassRecord, // invalid topic
	18:   fsm.ClassRecord, // record list too large
	21:   fsm.ClassRecord, // invalid required acks
	32:   fsm.ClassRecord, // invalid timestamp
	42:   fsm.ClassRecord, // invalid request
	44:   fsm.ClassRecord, // policy violation
	76:   fsm.ClassRecord, // unsupported compression type
	87:   fsm.ClassRecord, // invalid record

	// This handle can't go on.
	-150: fsm.ClassFatal,
	-172: fsm.ClassFatal, // erroneous state
	45:   fsm.ClassFatal, // out of order sequence number
	47:   fsm.ClassFatal, // invalid producer epoch
	59:   fsm.ClassFatal, // unknown producer id
	90:   fsm.ClassFatal, // producer fenced
}

// Classify returns what an error code means to us. An unknown code is transient.
func Classify(code int) fsm.Class {
	if c, ok := classes[code]; ok {
		return c
	}
	return fsm.ClassTransient
}

// Text returns librdkafka's words for a code.
func Text(code int) string {
	return C.GoString(C.okr_err_text(C.int(code)))
}

// classOfStage says what a connection attempt failed of, by the stage it had reached.
func classOfStage(stage C.int32_t) fsm.Class {
	switch stage {
	case C.OKR_STAGE_RESOLVE:
		return fsm.ClassResolve
	case C.OKR_STAGE_TLS:
		return fsm.ClassTLS
	case C.OKR_STAGE_AUTH:
		return fsm.ClassAuthentication
	case C.OKR_STAGE_CONNECT, C.OKR_STAGE_READY:
		return fsm.ClassNetwork
	default:
		return fsm.ClassNone
	}
}

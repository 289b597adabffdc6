// Package rig drives what a scenario needs: a host with the plugin in it, a Kafka that can be taken away, and the tally of
// what must arrive.
//
// A [Host] is Fluent Bit, or the C host that stands in for it; a [Broker] is the embedded broker of this process or real
// Apache Kafka. A scenario is written against the two interfaces, so that the same lines run in every combination. Records
// carry numbers; a [Tally] knows which of them the host has accepted, and its audit says which were lost or doubled.
// [Log] holds the host's log lines, [Progress] reads the state of the plugin from them, and [Schedule] compares counted
// connects with what the plugin said about its backoff.
//
// Everything that waits takes a context and ends with it. Programs that the rig starts die with the process that runs it.
package rig

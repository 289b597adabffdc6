// Package broker is an in-process Kafka broker that can be stopped, started and frozen without losing its data.
//
// It is kfake behind doors. kfake keeps its data only as long as its listeners live, so each of its nodes is given a
// listener of ours, a door, that stays open towards kfake for the whole life of the Broker. Towards the clients the
// door opens and shuts a real listening socket on a fixed port: while it is shut the kernel refuses connections, and
// the port is the one that Metadata answers carry. Nothing is forwarded; kfake reads and writes the accepted
// connections themselves, through a thin wrapper that knows how to hold bytes back (Freeze) and how to close a
// connection that nobody used (IdleClose).
//
// Everything here may be called from any goroutine. Nothing blocks for longer than a mutex, except Close, which waits
// until no goroutine of a door is left. Node numbers are kfake's: they start at 0.
package broker

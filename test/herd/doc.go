// Package herd asks what thousands of agents do to a Kafka that goes away and comes back. It
// simulates them in virtual time: nothing waits, no socket is opened, and chance comes from a
// fixed seed, so that every figure can be had again.
//
// An agent of ours is the state machine that ships, [fsm.Machine], between a stand-in for the
// driver and a stand-in for the cluster; a test holds the attempts of such an agent against
// those of the real supervisor. For comparison there are agents that follow librdkafka's own
// reconnect code. A [Case] is one herd in one outage, a [Result] is what was counted; the
// results become docs/scale.md and its plots.
package herd

// Package reconnect is the supervisor between the flushes of one output section and its
// Kafka client. It decides when flushes may hand records over and when the client may
// connect, so that all of it follows one backoff and one idle policy, and so that a flush
// is refused at once while all brokers are down.
//
// # States in words
//
// connecting: a client is open, nothing is known yet, flushes are admitted. up: at least
// one broker was reached. degraded: the same while another address fails. all_down: no
// broker can be reached, flushes are refused, nothing leaves the host until the backoff
// ends. probing: each address may be tried once; the first that gets ready opens
// everything. idle: connections were closed on purpose, the next chunk opens them.
// draining: no new chunk is taken. closed: the end. Package fsm decides all this and holds
// the transition table; this package has the clock, the client and the log.
//
// # Goroutines
//
// New starts one, the loop. It owns the machine, a timer and everything in files loop.go
// and act.go, and takes events from the client, the flushes and the timer in turn. A
// client reports through its sink on a goroutine of its own, which waits when the loop
// is busy. Closing a client, letting one finish, waiting for a heartbeat and looking at the
// files of a client happen on goroutines that end with that. After every step of the machine the loop publishes what flushes see, sets
// the client's connection gate, and performs the actions in this order.
//
// Flushes call Admit, Refused and Produce on any goroutine. They never wait for the loop:
// what they need is in one immutable view, what they have to say is a token.
//
//	r := s.Refused()          // before Produce, so that no refusal is missed
//	d, err := s.Produce(b)    // ErrAllBrokersDown, ErrDraining: nothing was handed over
//	select { case <-d.Done(): … case <-r: … case <-timeout: … }
//
// # What blocks how long
//
// Admit, Gate, Refused, Outstanding, Status: nanoseconds, no lock. Produce: as long as the
// client takes to take the batch in; a lock is shared with other Produce calls and held
// against them only by a client that is being closed. New: as long as opening a client
// takes, with no network in it. Close: at most DrainTimeout and CloseTimeout, less if its
// context ends earlier. The sink of a client: until the loop is free, at most as long as
// opening a client takes.
//
// # What is counted as down
//
// The client reports tables of addresses with totals. File evidence.go turns them into
// what has changed since a broker was last up or since the connection gate was last set,
// which is what the machine decides by. Tables that were read under an older gate count
// for what is up and for nothing else. Addresses that the client knows and never tried are
// in no table: while the gate is open it says when none of them is left. While the gate is
// open and some broker serves, pacing.go holds single dead addresses back with a backoff of
// their own, and single silent connections are shut while others answer.
//
// # More than one client
//
// A client that is replaced while a broker is up is retired: it gets nothing new and keeps
// its connections until everything that it has is reported, as long as one report follows
// the other within StallTimeout. Only the newest client makes the attempts of a sweep.
package reconnect

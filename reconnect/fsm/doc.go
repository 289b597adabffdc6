// Package fsm decides for the reconnect supervisor and does nothing itself: events and
// time go in, actions and one deadline come out. It reads no clock, starts no goroutine,
// logs nothing and calls nothing but Config.Rand, so that the same events give the same
// actions, byte for byte, in a test, in a simulation and in production.
//
// A [Machine] belongs to one goroutine, the loop of reconnect.Supervisor. Step takes some
// ten nanoseconds when nothing changes and never blocks, panics or grows.
//
// # States in words
//
// Connecting: a client is open and nothing is known yet; flushes are admitted, so that a
// normal start costs no retry. Up: at least one broker was reached. Degraded: the same,
// while another address fails; it exists for operators. AllDown: no broker can be reached;
// flushes are refused, no attempt leaves, the backoff runs. Probing: half-open, every
// address may be tried once; the first that gets ready opens everything. Idle: the
// connections were closed on purpose; the next chunk opens them. Draining: no new chunk is
// taken, what is outstanding may still be acknowledged. Closed: the end.
//
// Two gates follow from the state and from nothing else. The flush gate tells flushes
// whether they may hand records over, the connection gate tells the client which attempts
// may start.
//
// # Evidence
//
// All brokers are down when no address is up, at least one attempt has failed since one
// was up (or since the connection gate was set), none is in flight, and no wanted address
// is untried, or Settle has passed since. While the gate is open the client tells whether
// one is untried: it connects to few of the addresses that it knows. No broker being up is
// no evidence by itself: servers close idle connections. The error librdkafka calls all
// brokers down is not enough either, because it is wrong in both directions: it only ends
// the wait for a Settle, and not while a broker that was connected has not failed since.
//
// Three limits catch what shows no failure. ConnectTimeout: an attempt hangs and no broker
// is up. ProbeTimeout: the same while half-open. StallTimeout: records are outstanding and
// none is acknowledged. That alone is no outage: a partition without a leader or with too
// few replicas looks the same, and the records of other topics may flow. So the machine has
// the driver look at the connections. A connection is silent if it was asked and has shown
// no sign of life for the whole time. All are silent: an outage. Some are: these are shut.
// None is: a heartbeat asks the cluster what the matter is, the machine is stuck until
// something is acknowledged, and nothing else changes.
//
// # A new client
//
// A client is replaced when it can't go on (ClientFatal), when files that it was opened
// with have changed (RenewRequested), when RenewAfter rounds of attempts in a row failed
// because the login was refused, or without an attempt at an address of the configuration,
// and when it was stuck for as many StallTimeouts without anybody knowing why. While the
// brokers are down the old one is closed at once and the next step of the backoff opens the
// new one, half-open like any other round. While one is up the new client is opened beside
// the old one, which finishes what it has (RetireClient).
//
// # Reasons for the less obvious
//
//   - A broker that comes up does not reset the backoff, only an acknowledged record does,
//     or a connection that lasted longer than the longest wait and let no record wait
//     that long. A listener that accepts and closes, or a broker that answers and takes
//     no records, never gets more attempts than a dead one.
//   - An outage that comes back before the backoff was reset is the same outage, with the
//     same number: logs tell one story.
//   - The reason of an outage is the most telling class that was seen in it. The notice
//     that names the reason often comes just after the connection is lost, so it may
//     change while the brokers are down, always to a more telling one.
//   - A heartbeat that is not answered makes the machine look for silence too: it may be
//     queued behind a large request on a slow link. If nothing is left that lives it leads
//     to Connecting and not to AllDown: a dead quiet connection is to be replaced, nobody
//     is waiting for it. Unless records are stalled; then it is an outage.
//   - In Connecting the time only counts while something is outstanding or tried. A client
//     that nobody needs may have no reason to connect.
//   - An outage always ends in Up: what failed before the gate opened says nothing of
//     brokers that come back a moment after the first. One that fails again makes it
//     Degraded.
//   - BrokersChanged carries the epoch of the gate that its counts were made for. A sweep
//     can't be failed by a table from before it.
//
// # Transitions
//
// Made by Table, which runs the machine; what is not listed does nothing. Before the table:
// events of another client generation, of another gate epoch or heartbeat, and deadlines
// that were not reached are dropped. Times are those of the defaults with a backoff in the
// middle of its jitter.
//
//	connecting (flush gate admit, connection gate open)
//	    chunk_arrived                                                                 -> stays, next after 5s
//	    acked                                                                         -> up, next after 15s
//	    brokers_changed: one is up                                                    -> up
//	    brokers_changed: one is up, one fails                                         -> degraded
//	    brokers_changed: none is up, all have failed                                  -> all_down, fail_outstanding, next after 112.5ms
//	    brokers_changed: none is up, some have failed, some are untried               -> stays, next after 1s
//	    brokers_changed: none is up, some have failed, some are in flight             -> stays, next after 5s
//	    renew_requested                                                               -> stays, retire_client, open_client, next after 5s
//	    client_fatal                                                                  -> all_down, fail_outstanding, close_client, next after 112.5ms
//	    deadline_reached                                                              -> stays, next after 5s
//	    drain_requested                                                               -> closed, close_client
//	    [records outstanding] brokers_changed: one is up                              -> up, next after 15s
//	    [records outstanding] brokers_changed: one is up, one fails                   -> degraded, next after 15s
//	    [records outstanding] deadline_reached                                        -> all_down, shut_sockets, fail_outstanding, next after 112.5ms
//	    [records outstanding] drain_requested                                         -> draining, next after 3s
//	    [an attempt hangs] deadline_reached                                           -> all_down, shut_sockets, fail_outstanding, next after 112.5ms
//	    [some have failed] brokers_changed: none is up, none has failed               -> stays, next after 4.999s
//	    [some have failed] brokers_changed: none is up, some have failed, some are in flight -> stays, next after 4.999s
//	    [some have failed] deadline_reached                                           -> all_down, fail_outstanding, next after 112.5ms
//	up (flush gate admit, connection gate open)
//	    chunk_arrived                                                                 -> stays, next after 15s
//	    acked                                                                         -> stays, next after 15s
//	    brokers_changed: one is up, one fails                                         -> degraded
//	    brokers_changed: none is up, all have failed                                  -> all_down, fail_outstanding, next after 112.5ms
//	    brokers_changed: none is up, some have failed, some are untried               -> stays, next after 1s
//	    brokers_changed: none is up, some have failed, some are in flight             -> stays, next after 5s
//	    renew_requested                                                               -> connecting, retire_client, open_client, next after 5s
//	    client_fatal                                                                  -> all_down, fail_outstanding, close_client, next after 112.5ms
//	    drain_requested                                                               -> closed, close_client
//	    [records outstanding] deadline_reached                                        -> stays, check_silence, next after 15s
//	    [records outstanding] drain_requested                                         -> draining, next after 3s
//	    [no broker is up, an attempt hangs] deadline_reached                          -> all_down, shut_sockets, fail_outstanding, next after 112.5ms
//	    [no broker is up, some have failed] deadline_reached                          -> all_down, fail_outstanding, next after 112.5ms
//	    [idle_policy keepalive] deadline_reached                                      -> stays, start_heartbeat, next after 10s
//	    [heartbeat sent] heartbeat_ok                                                 -> stays, next after 1m0s
//	    [heartbeat sent] heartbeat_failed                                             -> stays, check_silence, next after 1m0s
//	    [heartbeat sent] deadline_reached                                             -> stays, check_silence, next after 1m0s
//	    [looking for silence, records outstanding] silence_checked: every connection is silent -> all_down, shut_sockets, fail_outstanding, next after 112.5ms
//	    [looking for silence, records outstanding] silence_checked: one was asked lately -> stays, shut_silent, next after 1s
//	    [looking for silence, records outstanding] silence_checked: one answers       -> stays, shut_silent, start_heartbeat, next after 10s
//	    [looking for silence, records outstanding] deadline_reached                   -> stays, check_silence, next after 15s
//	    [looking for silence, records outstanding] drain_requested                    -> draining, next after 3s
//	    [looking for silence, heartbeat unanswered] silence_checked: every connection is silent -> connecting, shut_sockets, next after 5s
//	    [looking for silence, heartbeat unanswered] silence_checked: one was asked lately -> stays, shut_silent
//	    [looking for silence, heartbeat unanswered] silence_checked: one answers      -> stays, shut_silent
//	    [looking for silence, heartbeat unanswered] deadline_reached                  -> stays, start_heartbeat, next after 10s
//	    [idle_policy close] deadline_reached                                          -> idle, shut_sockets
//	degraded (flush gate admit, connection gate open)
//	    chunk_arrived                                                                 -> stays, next after 15s
//	    acked                                                                         -> stays, next after 15s
//	    brokers_changed: one is up                                                    -> up
//	    brokers_changed: none is up, all have failed                                  -> all_down, fail_outstanding, next after 112.5ms
//	    brokers_changed: none is up, some have failed, some are untried               -> stays, next after 1s
//	    brokers_changed: none is up, some have failed, some are in flight             -> stays, next after 5s
//	    renew_requested                                                               -> connecting, retire_client, open_client, next after 5s
//	    client_fatal                                                                  -> all_down, fail_outstanding, close_client, next after 112.5ms
//	    drain_requested                                                               -> closed, close_client
//	all_down (flush gate refuse, connection gate shut)
//	    acked: the backoff is reset                                                   -> up, next after 15s
//	    brokers_changed: one is up                                                    -> up
//	    brokers_changed: one is up, one fails                                         -> up
//	    renew_requested                                                               -> stays, close_client
//	    client_fatal                                                                  -> stays, close_client
//	    deadline_reached                                                              -> probing, next after 5s
//	    drain_requested                                                               -> closed, close_client
//	    [client given up] deadline_reached                                            -> probing, open_client, next after 5s
//	    [client given up] drain_requested                                             -> closed
//	probing (flush gate refuse, connection gate sweep)
//	    acked: the backoff is reset                                                   -> up, next after 15s
//	    brokers_changed: one is up                                                    -> up
//	    brokers_changed: one is up, one fails                                         -> up
//	    brokers_changed: none is up, all have failed                                  -> all_down, next after 225ms
//	    brokers_changed: none is up, some have failed, some are untried               -> stays, next after 999ms
//	    client_fatal                                                                  -> all_down, close_client, next after 225ms
//	    deadline_reached                                                              -> all_down, shut_sockets, next after 225ms
//	    drain_requested                                                               -> closed, close_client
//	    [some have failed] brokers_changed: none is up, none has failed               -> stays, next after 4.998s
//	    [some have failed] brokers_changed: none is up, some have failed, some are in flight -> stays, next after 4.998s
//	idle (flush gate admit, connection gate shut)
//	    chunk_arrived                                                                 -> connecting, next after 5s
//	    renew_requested                                                               -> stays, close_client, open_client, shut_sockets
//	    client_fatal                                                                  -> all_down, fail_outstanding, close_client, next after 112.5ms
//	    drain_requested                                                               -> closed, close_client
//	draining (flush gate refuse, connection gate open)
//	    reported: nothing is left                                                     -> closed, close_client
//	    client_fatal                                                                  -> closed, fail_outstanding, close_client
//	    deadline_reached                                                              -> closed, fail_outstanding, close_client
//	    drained                                                                       -> closed, fail_outstanding, close_client
package fsm

// Package kafka runs real Apache Kafka for tests: installed from Maven Central once, then one or three nodes in KRaft
// mode that can be stopped, killed, frozen and started again with their data and ports.
//
// Install fetches the jars into a cache and prepares what makes nodes start fast: the bootstrap records that formatting
// would write, and an archive of loaded classes. New lays out a cluster in a folder of its own; Start runs the
// processes; WaitReady waits until they answer. Node numbers start at 1, as in Kafka's own examples.
//
// Each node listens on several ports, so that a test can tell its own connections from those of the client under
// test: Brokers is for the client under test, RigBrokers for everyone else (audits, other nodes), and ProxyAddrs, when
// asked for, are addresses that lead to a proxy which the test opens there.
//
// A Cluster may be used from several goroutines. Start returns at once; Stop, Kill and Close wait for processes to end,
// Stop for up to a minute, and whatever takes a context waits until that ends. The processes die with the process that
// started them, whatever becomes of it (Linux only).
package kafka

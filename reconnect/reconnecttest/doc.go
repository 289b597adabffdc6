// Package reconnecttest has a Kafka client without Kafka, for the tests of whoever uses a
// reconnect.Supervisor: a Network of brokers that go down, freeze, refuse credentials or
// close connections on command, and a Client on it that behaves like the real one as far
// as the supervisor can see. It retries on its own, asks again within a second when it is
// refused, requeues what was in flight when its sockets are shut, and reports tables of
// totals.
//
// It waits with package time only, so inside a testing/synctest bubble hours pass in
// milliseconds. Outside a bubble it works in real time. Mutexes are held for a few
// instructions and never over a wait.
package reconnecttest

// Package audit counts what arrived in a topic: which numbers are there, which are missing, doubled or late.
//
// Every record of a test carries a number of its own. Read goes through the topic from its first record to the end it
// had when Read began, and compares; WaitFor waits until enough different numbers are there. Both talk the Kafka
// protocol only, through franz-go, so they judge a real cluster and an embedded broker alike, and share no code with the
// client under test. Both block until they are done or their context ends, and ride out brokers that go away in between.
package audit

// Package parity compares the messages of this plugin with those of Fluent Bit's built-in kafka
// output: the records that both are given, the sections that they are configured with, and the
// judge, who finds for each record that the messages are equal, that ours are better for a
// reason that is listed, or that they are worse.
//
// Command parity (make parity) runs both outputs in one Fluent Bit and judges what Kafka received.
// What it received from the built-in output is kept in testdata/builtin.txt, so that a plain test
// judges our encoders without a Fluent Bit.
package parity

package main

import "out_kafka_reconnect/reconnect/fsm"

// renderStates prints what the state machine does, as the machine itself tells it.
func renderStates() ([]byte, error) {
	return []byte("```text\n" + fsm.FormatTable() + "```\n"), nil
}

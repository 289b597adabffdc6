// Command growth measures what a record costs when things get more: records in a chunk, topics, instances, flushes at once,
// chunks that wait. It also measures the start, an agent with nothing to do, and what an agent holds in memory with a
// million records waiting. The results lie in docs/growth/results.json, from which a test makes docs/growth.md and its plots.
//
// The series run in this process, over the plugin's own entry and the shipped binding, once to a client in memory and
// once to a broker in another process; what counts is the CPU of this process, which other work on the machine disturbs
// least. The other measurements run in Fluent Bit, or in the C host if there is none.
//
// With -profile it profiles the same path instead: flame graphs of the CPU, of waits for locks and of other waits.
package main

// Package deadletter keeps the records that can't be written to their topic: as JSON lines in
// a rotated file, as messages of a topic, or both. It decides of which kind a failure is; what
// is done about it is the caller's business.
//
// A letter counts as written when the disk has it ([File.Write] has returned) or the brokers
// have acknowledged it (its delivery). Until then the caller keeps it and tries again, so a
// target may get a letter twice, never not at all.
package deadletter

// Package state keeps in files what must outlive the process: which chunks were delivered, or
// partly, while Fluent Bit still has them, and the chunks that exist here only since a hot
// reload.
//
// Every user of a destination has a directory of its own under state_path, held by a lock:
//
//	<destination>.<number>/lock        held while somebody uses the directory
//	<destination>.<number>/brokers     the bootstrap addresses of its cluster
//	<destination>.<number>/owner       a hash of the agent that used it last
//	<destination>.<number>/settings    what the destination's name stands for, for people to read
//	<destination>.<number>/journal     memos of receipts, see delivery.Memo
//	<destination>.<number>/chunk-<n>   a chunk that was taken over, and what is open of it
//
// The two kinds of file have different needs. A chunk is on the disk before Fluent Bit is told
// OK, so its file is synced. The journal is not: what it says is worth something only until
// Fluent Bit comes back, the page cache survives kill -9, and the worst that a power cut can do
// to it is a duplicate, because a journal that was left open is not believed after a reboot.
package state

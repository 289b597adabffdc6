package delivery

// MoveTo moves what an ended instance knows of chunks to the ledger and the courier of another one,
// as Restore does with what an earlier process has left: which chunks were delivered, and which
// messages of the others were not. A chunk is known to one of the two at any time, so it is not
// written again. Nobody takes from this ledger or puts into it meanwhile.
func (l *Ledger) MoveTo(to *Ledger, from, courier *Courier) {
	l.mu.Lock()
	rs := l.receipts()
	l.mu.Unlock()
	open := from.openOf(rs...)
	for i, r := range rs {
		k := r.entry.Value.(kept)
		if r.Complete() || open[i] != nil {
			to.learn(courier, Memo{Key: k.key, Glimpse: k.glimpse, Since: k.since, Messages: r.messages, Open: open[i]})
		}
		l.mu.Lock()
		l.remove(r.entry)
		l.mu.Unlock()
		l.Collected(r)
	}
}

// learn puts what a memo tells into the ledger, as a receipt of the courier. Its ID counts for
// nothing: the ledger gives it one of its own.
func (l *Ledger) learn(c *Courier, m Memo) {
	r := c.Recall(m.Messages, m.Open)
	l.mu.Lock()
	l.add(kept{m.Key, m.Glimpse, r, m.Since})
	l.mu.Unlock()
	l.noting(r, func(n *noting) { n.note(m.Open) })
}

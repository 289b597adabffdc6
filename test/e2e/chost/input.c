/* Where records come from: the commands log, chunk and rate. They stand for an input that
 * has a thread of its own, so a blocked engine does not block them. */

#include "host.h"

/* The host closes a chunk when it has grown beyond this, even before the flush interval. */
enum { CHUNK_MAX_BYTES = 2048000 };

/* Bounds on how long a batch keeps host.mu. */
enum { BATCH_RECORDS = 2000, BATCH_BYTES = 64 * 1024 };

static bool accepts(const struct pipeline *pl)
{
	return pl != NULL && pl->state == PL_RUNNING && !pl->stop_asked && !pl->shutting_down;
}

static struct chunk **find_open(struct pipeline *pl, const char *tag)
{
	struct chunk **c = &pl->open;

	while (*c != NULL && strcmp((*c)->tag, tag) != 0)
		c = &(*c)->next_open;
	return c;
}

static void append(struct pipeline *pl, const char *tag, const struct buf *b, uint64_t records)
{
	struct chunk **at = find_open(pl, tag);

	if (*at == NULL)
		*at = chunk_new(pl, tag);
	struct chunk *c = *at;
	chunk_add(c, b->p, b->len, records);
	if (c->data.len > CHUNK_MAX_BYTES) {
		*at = c->next_open;
		c->sealed = true;
		store_seal(c);
	}
}

/* add_records makes at most n records and returns how many it made. */
static uint64_t add_records(struct pipeline *pl, uint64_t n, const char *tag, size_t size,
			    const struct field *fields)
{
	struct buf b = { 0 };
	uint64_t made = 0;

	while (made < n && made < BATCH_RECORDS && b.len < BATCH_BYTES) {
		mp_record(&b, host.next_seq++, size, fields);
		made++;
	}
	append(pl, tag, &b, made);
	host.logged += made;
	buf_free(&b);
	return made;
}

static void tell_logged(const char *kind, const char *tag, uint64_t records, uint64_t first)
{
	struct event e;

	ev_open(&e, "logged");
	ev_str(&e, "kind", kind);
	ev_str(&e, "tag", tag);
	ev_int(&e, "records", (int64_t)records);
	if (records > 0) {
		ev_int(&e, "first", (int64_t)first);
		ev_int(&e, "last", (int64_t)(host.next_seq - 1));
	}
	ev_emit(&e);
}

/* An integer, where a record should be. */
static void add_junk(struct pipeline *pl, const char *tag)
{
	struct buf b = { 0 };

	buf_byte(&b, 0x2a);
	append(pl, tag, &b, 0);
	buf_free(&b);
}

/* A paused input takes nothing: records that come then are refused and get no number. With
 * junk the first of them stands behind an object that is no record. */
void input_log(uint64_t n, const char *tag, size_t size, const struct field *fields, bool junk)
{
	uint64_t made = 0;

	pthread_mutex_lock(&host.mu);
	uint64_t first = host.next_seq;
	if (junk && accepts(host.pl))
		add_junk(host.pl, tag);
	while (made < n && accepts(host.pl)) {
		made += add_records(host.pl, n - made, tag, size, fields);
		pthread_mutex_unlock(&host.mu);
		pthread_mutex_lock(&host.mu);
	}
	tell_logged(made == n ? "log" : "refused", tag, made, first);
	pthread_mutex_unlock(&host.mu);
}

/* input_chunk makes one chunk of exactly these bytes. records -1: count the objects. */
void input_chunk(const unsigned char *data, size_t len, const char *tag, int64_t records)
{
	struct event e;
	bool valid;
	uint64_t counted = mp_count(data, len, &valid);

	pthread_mutex_lock(&host.mu);
	bool taken = accepts(host.pl);
	ev_open(&e, "logged");
	ev_str(&e, "kind", taken ? "chunk" : "refused");
	ev_str(&e, "tag", tag);
	if (taken) {
		struct chunk *c = chunk_new(host.pl, tag);
		uint64_t n = records >= 0 ? (uint64_t)records : counted;
		chunk_add(c, data, len, n);
		c->sealed = true;
		store_seal(c);
		host.logged += n;
		ev_int(&e, "chunk", (int64_t)c->id);
		ev_int(&e, "records", (int64_t)n);
	} else {
		ev_int(&e, "records", 0);
	}
	ev_bool(&e, "valid", valid);
	ev_emit(&e);
	pthread_mutex_unlock(&host.mu);
}

/* ---- rates ---------------------------------------------------------------------- */

/* input_rate takes r over. It ticks on the engine thread, as the host's collectors do. */
void input_rate(struct rate *r)
{
	pthread_mutex_lock(&host.mu);
	r->start_us = r->next_us = r->told_us = now_us();
	r->next = host.rates;
	host.rates = r;
	if (host.pl != NULL)
		pthread_cond_signal(&host.pl->wake);
	pthread_mutex_unlock(&host.mu);
}

void fields_free(struct field *f)
{
	while (f != NULL) {
		struct field *next = f->next;
		free(f->key);
		free(f->text);
		free(f);
		f = next;
	}
}

static void rate_free(struct rate *r)
{
	fields_free(r->fields);
	free(r->tag);
	free(r);
}

static int64_t rate_interval(const struct rate *r)
{
	return r->per_second < 100 ? (int64_t)(1e6 / r->per_second) : 10000;
}

static double rate_elapsed(const struct rate *r, int64_t now)
{
	double s = (double)(now - r->start_us) / 1e6;

	return s < r->seconds ? s : r->seconds;
}

/* How many records are due. A rate that is late, because a flush kept the engine, catches up,
 * as an input that reads files does; a lossy one behaves as in_dummy: the ticks that it
 * missed are gone. */
static uint64_t rate_due(struct rate *r, int64_t now)
{
	/* The small addend makes up for seconds that have no exact binary form. */
	uint64_t due = (uint64_t)(rate_elapsed(r, now) * r->per_second + 1e-6) - r->done - r->missed;
	uint64_t tick = (uint64_t)(r->per_second * (double)rate_interval(r) / 1e6) + 1;

	if (r->per_second < 100)
		tick = 1;
	if (r->lossy && due > tick) {
		r->missed += due - tick;
		due = tick;
	}
	return due;
}

static void rate_tell(struct rate *r, int64_t now)
{
	if (r->untold > 0)
		tell_logged("rate", r->tag, r->untold, r->first);
	r->untold = 0;
	r->told_us = now;
}

static void rate_tell_end(const struct rate *r)
{
	struct event e;

	ev_open(&e, "rate_end");
	ev_str(&e, "tag", r->tag);
	ev_int(&e, "records", (int64_t)r->done);
	ev_int(&e, "missed", (int64_t)r->missed);
	ev_emit(&e);
}

/* Returns true when the rate has come to its end. */
static bool rate_tick(struct pipeline *pl, struct rate *r, int64_t now)
{
	uint64_t due = rate_due(r, now);

	if (due > 0) {
		if (r->untold == 0)
			r->first = host.next_seq;
		uint64_t made = add_records(pl, due, r->tag, r->size, r->fields);
		r->done += made;
		r->untold += made;
		due -= made;
	}
	/* What a batch left over comes at once, but not before other timers had their turn. */
	int64_t interval = rate_interval(r);
	if (due == 0)
		r->next_us += ((now - r->next_us) / interval + 1) * interval;
	bool end = due == 0 && rate_elapsed(r, now) >= r->seconds;
	if (end || now - r->told_us >= 1000000)
		rate_tell(r, now);
	return end;
}

/* input_quiet lets every rate end at its next tick, with what is due until now. */
void input_quiet(void)
{
	pthread_mutex_lock(&host.mu);
	int64_t now = now_us();
	for (struct rate *r = host.rates; r != NULL; r = r->next)
		r->seconds = rate_elapsed(r, now);
	pthread_mutex_unlock(&host.mu);
}

int64_t input_tick(struct pipeline *pl, int64_t now)
{
	int64_t next = INT64_MAX;

	if (!accepts(pl))
		return next;
	for (struct rate **at = &host.rates; *at != NULL;) {
		struct rate *r = *at;
		if (r->next_us <= now && rate_tick(pl, r, now)) {
			rate_tell_end(r);
			*at = r->next;
			rate_free(r);
			continue;
		}
		if (r->next_us < next)
			next = r->next_us;
		at = &r->next;
	}
	return next;
}

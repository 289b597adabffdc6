/*
 * Producing a whole chunk in one call, and settling its delivery reports. The payload is
 * handed to librdkafka without a further copy: it stays with the chunk until the last
 * message of it was reported. With it stay the messages as they were handed over, so that
 * Go gets back the ones that were not acknowledged.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { TELL_MS = 50 };

enum { REC_OPEN = 0, REC_ACKED = 1, REC_FAILED = 2, REC_REFUSED = 3 };

typedef struct {
	okr_chunk *chunk;
	int32_t code;
	uint8_t status;
	uint8_t state;
} okr_rec;

struct okr_chunk {
	okr_client *client;
	okr_chunk *prev, *next;   /* list of the live, or of the settled ones */
	uint64_t id;
	int n;
	atomic_int remaining;     /* messages without a report, and one for okr_produce itself */
	atomic_int acked;
	bool orphan;              /* librdkafka may still hold the payload */
	okr_msg *msgs;            /* behind the records, in the same block */
	char *data;               /* behind the messages, or a block of its own */
	bool owned;               /* it is */
	size_t data_len;
	okr_rec recs[];
};

static void live_add(okr_client *c, okr_chunk *ch)
{
	pthread_mutex_lock(&c->chunk_mu);
	ch->next = c->live;
	if (c->live)
		c->live->prev = ch;
	c->live = ch;
	pthread_mutex_unlock(&c->chunk_mu);
}

/* settle moves a chunk from the live to the settled list; the caller holds chunk_mu. */
static void settle_locked(okr_client *c, okr_chunk *ch)
{
	if (ch->prev)
		ch->prev->next = ch->next;
	else
		c->live = ch->next;
	if (ch->next)
		ch->next->prev = ch->prev;
	ch->prev = ch->next = NULL;
	if (c->settled_tail)
		c->settled_tail->next = ch;
	else
		c->settled_head = ch;
	c->settled_tail = ch;
}

/* drop_refs tells whether that was the end of the chunk, of which Go is told then. */
static bool drop_refs(okr_chunk *ch, int n)
{
	okr_client *c = ch->client;

	if (atomic_fetch_sub(&ch->remaining, n) != n)
		return false;
	pthread_mutex_lock(&c->chunk_mu);
	settle_locked(c, ch);
	pthread_mutex_unlock(&c->chunk_mu);
	okr_notify(c);
	return true;
}

static void fail(okr_rec *rec, int code, unsigned status)
{
	rec->code = code;
	rec->status = (uint8_t)status;
	rec->state = REC_FAILED;
}

void okr_on_report(struct rd_kafka_s *rk, const struct rd_kafka_message_s *msg, void *opaque)
{
	const struct okr_rk_message *m = (const struct okr_rk_message *)msg;
	okr_client *c = opaque;
	okr_rec *rec = m->opaque;

	(void)rk;
	if (c->tally.chunk != rec->chunk) {
		okr_pass_on(c);
		c->tally.chunk = rec->chunk;
	}
	c->tally.reports++;
	if (m->err) {
		fail(rec, m->err, rd_kafka_message_status(msg));
	} else {
		rec->state = REC_ACKED;
		c->tally.acked++;
	}
}

/* okr_pass_on counts what was reported since the last call. Reports come on the poll thread only and mostly
 * many of one chunk in a row, so that all others see them at once and at the cost of one. */
void okr_pass_on(okr_client *c)
{
	okr_tally t = c->tally;

	if (t.reports == 0)
		return;
	c->tally = (okr_tally){0};
	atomic_fetch_sub(&c->outstanding, t.reports);
	if (t.acked > 0) {
		atomic_fetch_add(&t.chunk->acked, t.acked);
		atomic_fetch_add(&c->acked_total, (unsigned)t.acked);
		atomic_store(&c->acked_flag, 1);
	}
	atomic_store(&c->reported_flag, 1);
	c->untold = !drop_refs(t.chunk, t.reports);
}

/* okr_tell wakes Go for reports that were not the last ones of their chunk, from time to time: the supervisor is to
 * know that a broker answers, but a wake-up for each chunk is enough while some end. */
void okr_tell(okr_client *c)
{
	int64_t now;

	if (!c->untold)
		return;
	now = okr_now_ms();
	if (now - c->told_at < TELL_MS)
		return;
	c->untold = false;
	c->told_at = now;
	okr_notify(c);
}

void *okr_topic(okr_client *c, const char *name, int *code)
{
	struct rd_kafka_topic_s *rkt = rd_kafka_topic_new(c->rk, name, NULL);
	okr_topic_entry *e;

	if (!rkt) {
		*code = rd_kafka_last_error();
		return NULL;
	}
	e = malloc(sizeof(*e));
	if (!e) {
		rd_kafka_topic_destroy(rkt);
		*code = OKR_ERR_DESTROY;
		return NULL;
	}
	pthread_mutex_lock(&c->life_mu);
	e->rkt = rkt;
	e->next = c->topics;
	c->topics = e;
	pthread_mutex_unlock(&c->life_mu);
	*code = 0;
	return rkt;
}

static okr_chunk *chunk_new(okr_client *c, uint64_t id, const okr_msg *msgs, int n, char *data, size_t data_len, bool own)
{
	size_t head_len = sizeof(okr_chunk) + (size_t)n * sizeof(okr_rec), msgs_len = (size_t)n * sizeof(*msgs);
	okr_chunk *ch = okr_block_new(head_len + msgs_len + (own ? 0 : data_len));

	if (!ch)
		return NULL;
	memset(ch, 0, head_len);
	ch->msgs = (okr_msg *)((char *)ch + head_len);
	memcpy(ch->msgs, msgs, msgs_len);
	ch->data = own ? data : memcpy((char *)ch->msgs + msgs_len, data, data_len);
	ch->data_len = data_len;
	ch->owned = own;
	ch->client = c;
	ch->id = id;
	ch->n = n;
	atomic_init(&ch->remaining, n + 1);
	for (int i = 0; i < n; i++)
		ch->recs[i].chunk = ch;
	return ch;
}

static int produce_one(okr_client *c, struct rd_kafka_topic_s *rkt, okr_chunk *ch, okr_rec *rec, const okr_msg *m,
                       struct rd_kafka_headers_s *hdrs)
{
	/* A zero-length value or key must not become null, so the pointer is always set. */
	void *key = m->key_len < 0 ? NULL : ch->data + m->key_off;
	void *val = m->val_len < 0 ? NULL : ch->data + m->val_off;

	return rd_kafka_producev(c->rk,
		OKR_VTYPE_RKT, rkt,
		OKR_VTYPE_PARTITION, (int)m->partition,
		OKR_VTYPE_MSGFLAGS, 0,
		OKR_VTYPE_VALUE, val, (size_t)(m->val_len < 0 ? 0 : m->val_len),
		OKR_VTYPE_KEY, key, (size_t)(m->key_len < 0 ? 0 : m->key_len),
		OKR_VTYPE_TIMESTAMP, (int64_t)m->timestamp,
		OKR_VTYPE_OPAQUE, (void *)rec,
		/* The list ends here for a message without headers. */
		hdrs ? OKR_VTYPE_HEADERS : OKR_VTYPE_END, hdrs,
		OKR_VTYPE_END);
}

/* next_size reads one of the two sizes that a header begins with. */
static bool next_size(const char **at, const char *end, int32_t *size)
{
	if (end - *at < (ptrdiff_t)sizeof(*size))
		return false;
	memcpy(size, *at, sizeof(*size));
	*at += sizeof(*size);
	return true;
}

/* next_bytes takes size bytes of the list; a size of -1 stands for null. */
static bool next_bytes(const char **at, const char *end, int32_t size, const char **bytes)
{
	*bytes = size < 0 ? NULL : *at;
	if (size < 0)
		return size == -1;
	if (end - *at < size)
		return false;
	*at += size;
	return true;
}

static int headers_parse(struct rd_kafka_headers_s *hdrs, const char *at, const char *end)
{
	while (at < end) {
		int32_t name_len, val_len;
		const char *name, *val;
		int code;

		if (!next_size(&at, end, &name_len) || !next_size(&at, end, &val_len) ||
		    !next_bytes(&at, end, name_len, &name) || !name || !next_bytes(&at, end, val_len, &val))
			return OKR_ERR_INVALID_ARG;
		code = rd_kafka_header_add(hdrs, name, name_len, val, val ? val_len : 0);
		if (code)
			return code;
	}
	return 0;
}

static int produce_with_headers(okr_client *c, struct rd_kafka_topic_s *rkt, okr_chunk *ch, okr_rec *rec, const okr_msg *m)
{
	struct rd_kafka_headers_s *hdrs = rd_kafka_headers_new(8);
	int code = headers_parse(hdrs, ch->data + m->hdr_off, ch->data + m->hdr_off + m->hdr_len);

	if (!code)
		code = produce_one(c, rkt, ch, rec, m, hdrs);
	if (code)
		rd_kafka_headers_destroy(hdrs);   /* else they belong to the message */
	return code;
}

static int produce_any(okr_client *c, struct rd_kafka_topic_s *rkt, okr_chunk *ch, okr_rec *rec, const okr_msg *m)
{
	return m->hdr_len ? produce_with_headers(c, rkt, ch, rec, m) : produce_one(c, rkt, ch, rec, m, NULL);
}

static void refuse(okr_client *c, okr_chunk *ch, okr_rec *rec, int code)
{
	fail(rec, code, 0);
	rec->state = REC_REFUSED;
	atomic_fetch_sub(&c->outstanding, 1);
	atomic_store(&c->reported_flag, 1);
	drop_refs(ch, 1);
}

/* So many messages go into one call of librdkafka at most: it holds a lock of the topic meanwhile. */
enum { MOST_AT_ONCE = 256 };

/* is_plain tells of a message that librdkafka's call for many messages can express. That call loses the
 * memory of a message for a partition that does not exist, so it is not used for those either. */
static bool is_plain(const okr_msg *m)
{
	return m->hdr_len == 0 && m->timestamp == 0 && m->partition == OKR_PARTITION_ANY;
}

/* plain_run counts the messages from the first on that one call can take. */
static int plain_run(const okr_msg *msgs, int n)
{
	int run = 0;

	while (run < n && run < MOST_AT_ONCE && is_plain(&msgs[run]) && msgs[run].topic == msgs[0].topic)
		run++;
	return run;
}

/* produce_run hands over plain messages for one topic: one clock, one lock and one look at the state of the
 * client for all of them. A zero-length value or key must not become null, so the pointer is always set. */
static void produce_run(okr_client *c, struct rd_kafka_topic_s *rkt, okr_chunk *ch, int first, int n)
{
	struct okr_rk_message batch[MOST_AT_ONCE];

	for (int i = 0; i < n; i++) {
		const okr_msg *m = &ch->msgs[first + i];

		batch[i] = (struct okr_rk_message){
			.partition = m->partition,
			.payload = m->val_len < 0 ? NULL : ch->data + m->val_off,
			.len = (size_t)(m->val_len < 0 ? 0 : m->val_len),
			.key = m->key_len < 0 ? NULL : ch->data + m->key_off,
			.key_len = (size_t)(m->key_len < 0 ? 0 : m->key_len),
			.opaque = &ch->recs[first + i],
		};
	}
	if (rd_kafka_produce_batch(rkt, OKR_PARTITION_ANY, 0, (struct rd_kafka_message_s *)batch, n) == n)
		return;
	for (int i = 0; i < n; i++) {
		if (batch[i].err)
			refuse(c, ch, &ch->recs[first + i], batch[i].err);
	}
}

/* leave_out takes the messages from number taken on out of a chunk that okr_produce still holds. */
static void leave_out(okr_client *c, okr_chunk *ch, int taken)
{
	int left = ch->n - taken;

	ch->n = taken;
	atomic_fetch_sub(&c->outstanding, left);
	atomic_fetch_sub(&ch->remaining, left);
}

int okr_produce(okr_client *c, uint64_t id, void **topics, const int *topic_codes,
                       const okr_msg *msgs, int n, char *data, size_t data_len, bool own)
{
	okr_chunk *ch = chunk_new(c, id, msgs, n, data, data_len, own);

	int i = 0;

	if (!ch)
		return -1;
	live_add(c, ch);
	atomic_fetch_add(&c->outstanding, n);
	while (i < n) {
		struct rd_kafka_topic_s *rkt = topics[msgs[i].topic];
		/* Within a run a message could be taken after one for which the queue was full. */
		int run = rkt && !c->bounded ? plain_run(&msgs[i], n - i) : 0;
		int code;

		if (run > 0) {
			produce_run(c, rkt, ch, i, run);
			i += run;
			continue;
		}
		code = rkt ? produce_any(c, rkt, ch, &ch->recs[i], &msgs[i]) : topic_codes[msgs[i].topic];
		if (code == OKR_ERR_QUEUE_FULL) {
			leave_out(c, ch, i);
			break;
		}
		if (code)
			refuse(c, ch, &ch->recs[i], code);
		i++;
	}
	drop_refs(ch, 1);   /* another thread may free it from here on */
	return i;
}

okr_chunk *okr_next_chunk(okr_client *c)
{
	okr_chunk *ch;

	pthread_mutex_lock(&c->chunk_mu);
	ch = c->settled_head;
	if (ch) {
		c->settled_head = ch->next;
		if (!c->settled_head)
			c->settled_tail = NULL;
		ch->next = NULL;
	}
	pthread_mutex_unlock(&c->chunk_mu);
	return ch;
}

uint64_t okr_chunk_id(const okr_chunk *ch)
{
	return ch->id;
}

int okr_chunk_size(const okr_chunk *ch)
{
	return ch->n;
}

int okr_chunk_acked(const okr_chunk *ch)
{
	return atomic_load(&ch->acked);
}

int okr_chunk_failures(const okr_chunk *ch, okr_failure *out, int cap)
{
	int n = 0;

	for (int i = 0; i < ch->n && n < cap; i++) {
		if (ch->recs[i].state == REC_ACKED)
			continue;
		out[n].index = i;
		out[n].code = ch->recs[i].code;
		out[n].status = ch->recs[i].status;
		out[n].refused = ch->recs[i].state == REC_REFUSED;
		n++;
	}
	return n;
}

const okr_msg *okr_chunk_msgs(const okr_chunk *ch)
{
	return ch->msgs;
}

const char *okr_chunk_data(const okr_chunk *ch, size_t *len)
{
	*len = ch->data_len;
	return ch->data;
}

static void chunk_free(okr_chunk *ch)
{
	if (ch->owned)
		okr_block_free(ch->data);
	okr_block_free(ch);
}

void okr_chunk_free(okr_chunk *ch)
{
	okr_client *c = ch->client;

	if (ch->orphan) {
		pthread_mutex_lock(&c->life_mu);
		ch->next = c->orphans;
		c->orphans = ch;
		pthread_mutex_unlock(&c->life_mu);
		return;
	}
	chunk_free(ch);
}

/* okr_chunks_abandon settles what was never reported: the handle is gone, or it could not
 * be destroyed in time (orphan), and then its memory must outlive it. */
void okr_chunks_abandon(okr_client *c, bool orphan)
{
	pthread_mutex_lock(&c->chunk_mu);
	while (c->live) {
		okr_chunk *ch = c->live;

		for (int i = 0; i < ch->n; i++) {
			if (ch->recs[i].state != REC_OPEN)
				continue;
			/* Nothing is known of it, so it may have been written. */
			fail(&ch->recs[i], OKR_ERR_DESTROY, OKR_MSG_POSSIBLY_PERSISTED);
			atomic_fetch_sub(&c->outstanding, 1);
		}
		ch->orphan = orphan;
		settle_locked(c, ch);
	}
	pthread_mutex_unlock(&c->chunk_mu);
	okr_notify(c);
}

void okr_orphans_free(okr_client *c)
{
	while (c->orphans) {
		okr_chunk *ch = c->orphans;

		c->orphans = ch->next;
		chunk_free(ch);
	}
}

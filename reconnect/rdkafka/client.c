/* Life of one producer handle: opening, the poll thread, news for Go, closing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

enum { POLL_MS = 100, WATCH_MS = 1000 };

int64_t okr_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void okr_notify(okr_client *c)
{
	uint64_t one = 1;

	pthread_mutex_lock(&c->wake_mu);
	/* The counter of an eventfd can't overflow in practice, and a failed write means that
	 * it is readable already. */
	if (c->wake_fd != -1 && write(c->wake_fd, &one, sizeof(one)) == -1)
		errno = 0;
	pthread_mutex_unlock(&c->wake_mu);
}

void okr_post(okr_client *c, int kind, int code, const char *text, char *heap)
{
	pthread_mutex_lock(&c->ring_mu);
	if (c->ring_len == OKR_RING_SIZE) {
		/* What matters is in the table and is fetched whole; only the words are lost. */
		c->dropped++;
		pthread_mutex_unlock(&c->ring_mu);
		free(heap);
		atomic_store(&c->table_changed, 1);
		okr_notify(c);
		return;
	}
	okr_event *e = &c->ring[(c->ring_head + c->ring_len++) % OKR_RING_SIZE];
	e->kind = kind;
	e->code = code;
	e->heap = heap;
	snprintf(e->text, sizeof(e->text), "%s", text);
	pthread_mutex_unlock(&c->ring_mu);
	okr_notify(c);
}

int okr_next_event(okr_client *c, okr_event *out)
{
	int got = 0;

	pthread_mutex_lock(&c->ring_mu);
	if (c->ring_len > 0) {
		*out = c->ring[c->ring_head];
		c->ring_head = (c->ring_head + 1) % OKR_RING_SIZE;
		c->ring_len--;
		got = 1;
	}
	pthread_mutex_unlock(&c->ring_mu);
	return got;
}

void okr_drain(okr_client *c, okr_news *out)
{
	out->acked = atomic_exchange(&c->acked_flag, 0);
	out->reported = atomic_exchange(&c->reported_flag, 0);
	out->table_changed = atomic_exchange(&c->table_changed, 0);
	out->token_wanted = atomic_exchange(&c->token_wanted, 0);
	pthread_mutex_lock(&c->ring_mu);
	out->dropped = c->dropped;
	pthread_mutex_unlock(&c->ring_mu);
}

/* Runs on a broker thread, or on the main thread of librdkafka. */
static void on_log(const struct rd_kafka_s *rk, int level, const char *fac, const char *buf)
{
	okr_client *c = rk ? rd_kafka_opaque(rk) : NULL;

	if (!c)
		return;   /* a line about a configuration without a handle */
	/* The client tells our refusal as a failed look-up, which would send people to their DNS. */
	if (okr_thread_refused() && !strcmp(fac, "FAIL"))
		return;
	if (!strcmp(fac, "FAIL"))
		okr_thread_failure_text(c, buf);
	okr_post(c, OKR_EV_LOG, level, buf, NULL);
}

static void on_error(struct rd_kafka_s *rk, int err, const char *reason, void *opaque)
{
	char text[OKR_TEXT_LEN];

	if (err == OKR_ERR_FATAL) {
		int code = rd_kafka_fatal_error(rk, text, sizeof(text));

		okr_post(opaque, OKR_EV_FATAL, code, text, NULL);
		return;
	}
	if (err == OKR_ERR_ALL_BROKERS_DOWN)
		okr_none_left(opaque);
	else
		okr_post(opaque, OKR_EV_ERROR, err, reason, NULL);
}

static int on_stats(struct rd_kafka_s *rk, char *json, size_t json_len, void *opaque)
{
	(void)rk;
	okr_post(opaque, OKR_EV_STATS, 0, "", strndup(json, json_len));
	return 0;
}

static void *poll_loop(void *arg)
{
	okr_client *c = arg;
	int64_t watched = okr_now_ms();

	while (!atomic_load(&c->stop_poller)) {
		rd_kafka_poll(c->rk, POLL_MS);
		okr_pass_on(c);
		okr_tell(c);
		if (okr_now_ms() - watched >= WATCH_MS) {
			okr_watch_connections(c);
			okr_blocks_trim();
			watched = okr_now_ms();
		}
	}
	return NULL;
}

/* start_thread keeps the host's signals away from our thread: they belong to the host. */
static int start_thread(pthread_t *t, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(t, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static char *conf_value(struct rd_kafka_conf_s *conf, const char *name)
{
	size_t len = 0;
	char *v;

	if (rd_kafka_conf_get(conf, name, NULL, &len) != OKR_CONF_OK)
		return strdup("");
	v = calloc(1, len + 1);
	if (v)
		rd_kafka_conf_get(conf, name, v, &len);
	return v;
}

static bool conf_is(struct rd_kafka_conf_s *conf, const char *name, const char *value)
{
	char *v = conf_value(conf, name);
	bool same = v && !strcmp(v, value);

	free(v);
	return same;
}

/* is_bounded tells whether the queue of messages has a limit: of their number, where 0 is none, or
 * of their size, where only the largest value comes close to none. */
static bool is_bounded(struct rd_kafka_conf_s *conf)
{
	return !conf_is(conf, "queue.buffering.max.messages", "0") || !conf_is(conf, "queue.buffering.max.kbytes", "2147483647");
}

static okr_client *client_new(const okr_socket_options *so, int gate)
{
	okr_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	okr_blocks_client(1);
	c->sockets = *so;
	c->gate = gate;
	c->epoch = 1;   /* an address that was never asked for belongs to sweep 0 */
	pthread_mutex_init(&c->mu, NULL);
	pthread_mutex_init(&c->ring_mu, NULL);
	pthread_mutex_init(&c->chunk_mu, NULL);
	pthread_mutex_init(&c->wake_mu, NULL);
	pthread_mutex_init(&c->life_mu, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->life_cond, &attr);
	pthread_condattr_destroy(&attr);
	c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return c;
}

static void client_free(okr_client *c)
{
	okr_event e;

	while (okr_next_event(c, &e))
		free(e.heap);
	okr_orphans_free(c);
	okr_blocks_client(-1);
	okr_gate_free(c);
	if (c->wake_fd != -1)
		close(c->wake_fd);
	if (c->sasl_password)
		explicit_bzero(c->sasl_password, strlen(c->sasl_password));
	free(c->sasl_user);
	free(c->sasl_password);
	pthread_mutex_destroy(&c->mu);
	pthread_mutex_destroy(&c->ring_mu);
	pthread_mutex_destroy(&c->chunk_mu);
	pthread_mutex_destroy(&c->wake_mu);
	pthread_mutex_destroy(&c->life_mu);
	pthread_cond_destroy(&c->life_cond);
	free(c);
}

static int refuse_all(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res, void *opaque)
{
	(void)node, (void)service, (void)hints, (void)res, (void)opaque;
	errno = ECANCELED;
	return EAI_SYSTEM;
}

static void drop_log(const struct rd_kafka_s *rk, int level, const char *fac, const char *buf)
{
	(void)rk, (void)level, (void)fac, (void)buf;
}

static void no_token(struct rd_kafka_s *rk, const char *config, void *opaque)
{
	(void)rk, (void)config, (void)opaque;
}

/* spare_token_server keeps a handle from asking the server of its tokens, an answer that its end would wait for. */
static void spare_token_server(struct rd_kafka_conf_s *conf)
{
	char *method = conf_value(conf, "sasl.oauthbearer.method");

	if (method && !strcmp(method, "oidc"))
		rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, no_token);
	free(method);
}

int okr_try(const struct rd_kafka_conf_s *conf, char *err, size_t err_size)
{
	struct rd_kafka_conf_s *copy = rd_kafka_conf_dup(conf);
	struct rd_kafka_s *rk;

	rd_kafka_conf_set_resolve_cb(copy, refuse_all);
	rd_kafka_conf_set_log_cb(copy, drop_log);
	spare_token_server(copy);
	rk = rd_kafka_new(OKR_PRODUCER, copy, err, err_size);
	if (!rk) {
		rd_kafka_conf_destroy(copy);
		return -1;
	}
	rd_kafka_destroy_flags(rk, OKR_DESTROY_NO_CONSUMER_CLOSE);
	return 0;
}

okr_client *okr_open(struct rd_kafka_conf_s *conf, const okr_socket_options *so, int gate, char *err, size_t err_size)
{
	okr_client *c = client_new(so, gate);

	if (!c || c->wake_fd == -1) {
		snprintf(err, err_size, "making the client: %s", strerror(errno));
		rd_kafka_conf_destroy(conf);
		if (c)
			client_free(c);
		return NULL;
	}
	c->bounded = is_bounded(conf);
	c->sasl_user = conf_value(conf, "sasl.username");
	c->sasl_password = conf_value(conf, "sasl.password");
	rd_kafka_conf_set_opaque(conf, c);
	rd_kafka_conf_set_dr_msg_cb(conf, okr_on_report);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rd_kafka_conf_set_stats_cb(conf, on_stats);
	okr_gate_install(c, conf);
	c->rk = rd_kafka_new(OKR_PRODUCER, conf, err, err_size);
	if (!c->rk) {
		/* Not destroyed: when 2.11.1 fails after its on_new interceptors have run it has freed
		 * the list of interceptors that conf still points to. okr_try, which has none, comes
		 * first and finds every fault of the configuration, so this leak is rare. */
		client_free(c);
		return NULL;
	}
	if (start_thread(&c->poller, poll_loop, c) != 0) {
		snprintf(err, err_size, "starting the poll thread: %s", strerror(errno));
		rd_kafka_destroy_flags(c->rk, OKR_DESTROY_NO_CONSUMER_CLOSE);
		client_free(c);
		return NULL;
	}
	return c;
}

const char *okr_err_text(int code)
{
	return rd_kafka_err2str(code);
}

bool okr_bounded(const okr_client *c)
{
	return c->bounded;
}

int okr_event_fd(okr_client *c)
{
	return c->wake_fd;
}

/* okr_wake ends the waits of every broker thread at once, so that an attempt that has just
 * been allowed starts now and not within the next second. Storing the credentials that are
 * set already has this side effect; it is covered by a test. */
void okr_wake(okr_client *c)
{
	struct rd_kafka_error_s *e;

	if (!c->sasl_user || !c->sasl_password)
		return;
	e = rd_kafka_sasl_set_credentials(c->rk, c->sasl_user, c->sasl_password);
	if (e)
		rd_kafka_error_destroy(e);
}

/* trouble tells what the answer says of the topics in use, the worst first: an error, a
 * partition without a leader, one whose replicas are not all in sync. */
static void trouble(const struct okr_rk_metadata *md, char *text, size_t size)
{
	int worst = 0;

	for (int i = 0; i < md->topic_count; i++) {
		const struct okr_rk_topic *t = &md->topics[i];

		if (t->err != 0 && worst < 3) {
			worst = 3;
			snprintf(text, size, "topic %s: %s", t->name, rd_kafka_err2str(t->err));
		}
		for (int j = 0; j < t->partition_count; j++) {
			const struct okr_rk_partition *p = &t->partitions[j];

			if (p->leader < 0 && worst < 2) {
				worst = 2;
				snprintf(text, size, "partition %s [%d] has no leader", t->name, (int)p->id);
			} else if (p->isr_count < p->replica_count && worst < 1) {
				worst = 1;
				snprintf(text, size, "partition %s [%d] has %d of %d replicas in sync", t->name, (int)p->id, p->isr_count, p->replica_count);
			}
		}
	}
}

int okr_heartbeat(okr_client *c, int timeout_ms, char *text, size_t size)
{
	const struct rd_kafka_metadata *md = NULL;
	int err;

	pthread_mutex_lock(&c->life_mu);
	c->users++;
	pthread_mutex_unlock(&c->life_mu);
	err = rd_kafka_metadata(c->rk, 0, NULL, &md, timeout_ms);
	text[0] = '\0';
	if (md) {
		trouble((const struct okr_rk_metadata *)md, text, size);
		rd_kafka_metadata_destroy(md);
	}
	pthread_mutex_lock(&c->life_mu);
	c->users--;
	pthread_cond_broadcast(&c->life_cond);
	pthread_mutex_unlock(&c->life_mu);
	return err;
}

/* destroy_loop may take as long as a look-up that a broker thread is stuck in. */
static void *destroy_loop(void *arg)
{
	okr_client *c = arg;
	bool abandoned;

	pthread_mutex_lock(&c->life_mu);
	while (c->users > 0)
		pthread_cond_wait(&c->life_cond, &c->life_mu);
	pthread_mutex_unlock(&c->life_mu);
	while (c->topics) {
		okr_topic_entry *next = c->topics->next;

		rd_kafka_topic_destroy(c->topics->rkt);
		free(c->topics);
		c->topics = next;
	}
	rd_kafka_destroy_flags(c->rk, OKR_DESTROY_NO_CONSUMER_CLOSE);
	pthread_mutex_lock(&c->life_mu);
	c->destroyed = true;
	abandoned = c->abandoned;
	pthread_cond_broadcast(&c->life_cond);
	pthread_mutex_unlock(&c->life_mu);
	if (abandoned)
		client_free(c);
	return NULL;
}

static struct timespec deadline_after(int ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += (long)(ms % 1000) * 1000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	return ts;
}

static bool wait_destroyed(okr_client *c, int timeout_ms)
{
	struct timespec ts = deadline_after(timeout_ms);
	bool done;

	pthread_mutex_lock(&c->life_mu);
	while (!c->destroyed && pthread_cond_timedwait(&c->life_cond, &c->life_mu, &ts) == 0)
		;
	done = c->destroyed;
	pthread_mutex_unlock(&c->life_mu);
	return done;
}

static void wait_reports(okr_client *c, int64_t until)
{
	struct timespec ms = {.tv_nsec = 1000000};

	while (atomic_load(&c->outstanding) > 0 && okr_now_ms() < until)
		nanosleep(&ms, NULL);
}

int okr_close(okr_client *c, int timeout_ms)
{
	int64_t until = okr_now_ms() + timeout_ms;
	pthread_t t;
	bool done = false;

	okr_set_gate(c, OKR_GATE_SHUT);
	rd_kafka_purge(c->rk, OKR_PURGE_ALL_NONBLOCK);
	/* The reports of a purge come within milliseconds; half of the time is for them. */
	wait_reports(c, okr_now_ms() + timeout_ms / 2);
	atomic_store(&c->stop_poller, 1);
	pthread_join(c->poller, NULL);
	if (start_thread(&t, destroy_loop, c) == 0) {
		int64_t left = until - okr_now_ms();

		pthread_detach(t);
		done = wait_destroyed(c, left > 0 ? (int)left : 0);
	}
	okr_chunks_abandon(c, !done);
	return done ? 0 : 1;
}

void okr_free(okr_client *c)
{
	bool destroyed;

	pthread_mutex_lock(&c->wake_mu);
	if (c->wake_fd != -1) {
		close(c->wake_fd);
		c->wake_fd = -1;
	}
	pthread_mutex_unlock(&c->wake_mu);
	pthread_mutex_lock(&c->life_mu);
	destroyed = c->destroyed;
	c->abandoned = !destroyed;
	pthread_mutex_unlock(&c->life_mu);
	if (destroyed)
		client_free(c);
}

/* The engine: one thread, flb-pipeline, that hands chunks to outputs, runs the flushes of
 * outputs without workers, keeps the retry timers, and shuts the pipeline down. While such
 * a flush runs nothing else here does, which is exactly what the host does to its users. */

#include "host.h"

enum { SECOND_US = 1000000 };

void queue_push(struct route_queue *q, struct route *r)
{
	r->next = NULL;
	if (q->tail != NULL)
		q->tail->next = r;
	else
		q->head = r;
	q->tail = r;
}

struct route *queue_pop(struct route_queue *q)
{
	struct route *r = q->head;

	if (r != NULL) {
		q->head = r->next;
		if (q->head == NULL)
			q->tail = NULL;
	}
	return r;
}

/* ---- chunks -------------------------------------------------------------------- */

static void chunk_link(struct pipeline *pl, struct chunk *c)
{
	c->prev = pl->last;
	if (pl->last != NULL)
		pl->last->next = c;
	else
		pl->first = c;
	pl->last = c;
}

struct chunk *chunk_new(struct pipeline *pl, const char *tag)
{
	struct chunk *c = xcalloc(1, sizeof *c);

	c->id = host.next_chunk++;
	c->tag = xstrdup(tag);
	c->fd = -1;
	/* A record that is not stored would be reported as logged and then be lost. */
	if (pl->store_dir != NULL && !store_create(c, pl->store_dir))
		broken("cannot write to storage.path %s", pl->store_dir);
	chunk_link(pl, c);
	return c;
}

void chunk_add(struct chunk *c, const void *data, size_t len, uint64_t records)
{
	if (c->fd >= 0 && !store_append(c, data, len, records))
		broken("cannot write %s", c->path);
	buf_add(&c->data, data, len);
	c->records += records;
}

static void chunk_free(struct pipeline *pl, struct chunk *c)
{
	*(c->prev != NULL ? &c->prev->next : &pl->first) = c->next;
	*(c->next != NULL ? &c->next->prev : &pl->last) = c->prev;
	store_seal(c);
	free(c->path);
	free(c->routes);
	free(c->tag);
	buf_free(&c->data);
	free(c);
	pthread_cond_broadcast(&host.changed);
}

static void tell_drop(const struct chunk *c, const struct output *o, const char *why)
{
	struct event e;

	ev_open(&e, "drop");
	if (o != NULL)
		ev_str(&e, "instance", output_name(o));
	ev_int(&e, "chunk", (int64_t)c->id);
	ev_int(&e, "records", (int64_t)c->records);
	ev_str(&e, "reason", why);
	ev_emit(&e);
}

/* ---- dispatch ------------------------------------------------------------------- */

static bool make_routes(struct pipeline *pl, struct chunk *c)
{
	int n = 0;

	for (struct output *o = pl->outputs; o != NULL; o = o->next)
		n += output_matches(o, c->tag);
	if (n == 0)
		return false;
	c->routes = xcalloc((size_t)n, sizeof *c->routes);
	for (struct output *o = pl->outputs; o != NULL; o = o->next) {
		if (output_matches(o, c->tag))
			c->routes[c->n_routes++] = (struct route){ .chunk = c, .out = o };
	}
	c->users = n;
	return true;
}

static bool has_retries(const struct pipeline *pl, const struct output *o)
{
	for (const struct chunk *c = pl->first; c != NULL; c = c->next) {
		for (int i = 0; i < c->n_routes; i++) {
			if (c->routes[i].out == o && c->routes[i].state == ROUTE_RETRY)
				return true;
		}
	}
	return false;
}

/* FLAG_NO_MULTIPLEX: one chunk a flush cycle, none while one runs or waits for a retry. */
static bool must_wait(const struct pipeline *pl, const struct output *o)
{
	return (o->flags & FLAG_NO_MULTIPLEX) != 0 && (o->running > 0 || has_retries(pl, o));
}

static void start_routes(struct pipeline *pl, struct chunk *c)
{
	for (int i = 0; i < c->n_routes; i++) {
		struct route *r = &c->routes[i];
		if (r->state == ROUTE_NEW && !must_wait(pl, r->out))
			output_start_route(r);
	}
}

/* dispatch is what each flush interval does: every chunk is closed, whatever its size, and
 * handed to all outputs that match. Records that come later go into a new chunk. */
static void dispatch(struct pipeline *pl)
{
	struct chunk *next;

	for (struct chunk *c = pl->open; c != NULL; c = c->next_open) {
		c->sealed = true;
		store_seal(c);
	}
	pl->open = NULL;
	for (struct chunk *c = pl->first; c != NULL; c = next) {
		next = c->next;
		if (c->routes == NULL && !make_routes(pl, c)) {
			tell_drop(c, NULL, "no_route");
			store_remove(c);
			chunk_free(pl, c);
			continue;
		}
		start_routes(pl, c);
	}
}

/* ---- results -------------------------------------------------------------------- */

static void route_done(struct pipeline *pl, struct route *r)
{
	struct chunk *c = r->chunk;

	r->state = ROUTE_DONE;
	if (--c->users == 0) {
		store_remove(c);
		chunk_free(pl, c);
	}
}

/* Full jitter between base and base x 2^n below the cap, and one second on top; n is 1 at
 * the first retry. So the defaults give 6 to 11 s at first. */
static int retry_seconds(const struct pipeline *pl, int n)
{
	const struct service *s = &pl->conf->svc;
	int64_t high = s->sched_base;

	if (pl->shutting_down)
		return 1;
	while (n-- > 0 && high < s->sched_cap)
		high *= 2;
	if (high > s->sched_cap)
		high = s->sched_cap;
	uint64_t range = (uint64_t)(high - s->sched_base) + 1;
	return 1 + s->sched_base + (int)(random_u64() % range);
}

static void result_ok(struct pipeline *pl, struct route *r)
{
	struct stats *s = r->out->stats;
	struct event e;

	s->ok_chunks++;
	s->ok_records += r->chunk->records;
	if (r->retries > 0)
		hlog(LVL_INFO, "[engine] chunk %llu delivered at retry %d (%s)",
		     (unsigned long long)r->chunk->id, r->retries, output_name(r->out));
	ev_open(&e, "ok");
	ev_str(&e, "instance", output_name(r->out));
	ev_int(&e, "chunk", (int64_t)r->chunk->id);
	ev_int(&e, "records", (int64_t)r->chunk->records);
	ev_int(&e, "attempt", r->flushes);
	ev_emit(&e);
	route_done(pl, r);
}

static void result_drop(struct pipeline *pl, struct route *r, const char *why)
{
	r->out->stats->dropped_chunks++;
	r->out->stats->dropped_records += r->chunk->records;
	tell_drop(r->chunk, r->out, why);
	route_done(pl, r);
}

static void result_retry(struct pipeline *pl, struct route *r)
{
	struct event e;
	int limit = r->out->retry_limit;

	if (limit == RETRY_NONE || (limit > 0 && r->retries >= limit)) {
		hlog(limit == RETRY_NONE ? LVL_INFO : LVL_ERROR,
		     "[engine] chunk %llu cannot be retried (%s)",
		     (unsigned long long)r->chunk->id, output_name(r->out));
		result_drop(pl, r, limit == RETRY_NONE ? "no_retries" : "retry_limit");
		return;
	}
	r->retries++;
	int seconds = retry_seconds(pl, r->retries);
	r->state = ROUTE_RETRY;
	r->due_us = now_us() + (int64_t)seconds * SECOND_US;
	r->out->stats->retries++;
	hlog(LVL_WARN, "[engine] flush of chunk %llu failed, retry in %d seconds (%s)",
	     (unsigned long long)r->chunk->id, seconds, output_name(r->out));
	ev_open(&e, "retry");
	ev_str(&e, "instance", output_name(r->out));
	ev_int(&e, "chunk", (int64_t)r->chunk->id);
	ev_int(&e, "records", (int64_t)r->chunk->records);
	ev_int(&e, "attempt", r->flushes);
	ev_int(&e, "due", seconds);
	ev_emit(&e);
}

static void handle_result(struct pipeline *pl, struct route *r)
{
	struct output *o = r->out;

	o->running--;
	o->single_busy = false;
	struct route *waiting = queue_pop(&o->single);
	if (waiting != NULL)
		output_start_route(waiting);
	/* FLB_ERROR drops without any line at level info: the plugin must say it itself. */
	if (r->result == RES_OK)
		result_ok(pl, r);
	else if (r->result == RES_RETRY)
		result_retry(pl, r);
	else
		result_drop(pl, r, "error");
}

/* ---- shutdown ------------------------------------------------------------------- */

static bool in_flight(const struct chunk *c)
{
	for (int i = 0; i < c->n_routes; i++) {
		if (c->routes[i].state == ROUTE_QUEUED || c->routes[i].state == ROUTE_RUNNING)
			return true;
	}
	return false;
}

/* Waiting retries fire at once, unless another output is at work on the same chunk. */
static void hurry_retries(struct pipeline *pl)
{
	for (struct chunk *c = pl->first; c != NULL; c = c->next) {
		for (int i = 0; i < c->n_routes && !in_flight(c); i++) {
			if (c->routes[i].state == ROUTE_RETRY)
				c->routes[i].due_us = 0;
		}
	}
}

static void begin_shutdown(struct pipeline *pl)
{
	dispatch(pl);
	if (pl->grace >= 0)
		hlog(LVL_WARN, "[engine] stopping within %d seconds", pl->grace);
	else
		hlog(LVL_WARN, "[engine] stopping when every chunk is delivered");
	hurry_retries(pl);
	hlog(LVL_INFO, "[engine] inputs paused");
	pl->shutting_down = true;
	pl->next_tick_us = now_us() + SECOND_US;
}

/* Once a second: end when nothing is left, or when the grace period is over. grace -1, which
 * a reload sets, waits for ever: with endless retries it never ends. */
static void shutdown_tick(struct pipeline *pl)
{
	uint64_t records, waiting = pipeline_waiting(pl, &records);

	pl->next_tick_us += SECOND_US;
	pl->grace_count++;
	if (waiting > 0 && (pl->grace == -1 || pl->grace_count < pl->grace)) {
		dispatch(pl);
		return;
	}
	hlog(LVL_INFO, "[engine] stopped, %llu chunks pending", (unsigned long long)waiting);
	pl->finished = true;
}

/* What is only in memory when the engine ends is lost; what is on disk stays for the next. */
static void lose_memory(struct pipeline *pl)
{
	struct chunk *next;

	for (struct chunk *c = pl->first; c != NULL; c = next) {
		next = c->next;
		if (c->path != NULL)
			continue;
		c->users++;          /* keeps the chunk until all its routes are told */
		for (int i = 0; i < c->n_routes; i++) {
			if (c->routes[i].state != ROUTE_DONE)
				result_drop(pl, &c->routes[i], "memory");
		}
		chunk_free(pl, c);
	}
}

/* Results that came in while the workers were joined are never looked at: the chunk stays on
 * disk and comes again, or is lost with the memory. */
static void tell_unprocessed(struct pipeline *pl)
{
	struct route *r;
	struct event e;

	while ((r = queue_pop(&pl->results)) != NULL) {
		host.unprocessed++;
		ev_open(&e, "unprocessed");
		ev_str(&e, "instance", output_name(r->out));
		ev_int(&e, "chunk", (int64_t)r->chunk->id);
		ev_int(&e, "records", (int64_t)r->chunk->records);
		ev_int(&e, "result", r->result);
		ev_emit(&e);
	}
}

/* ---- the loop ------------------------------------------------------------------- */

static int64_t fire_retries(struct pipeline *pl, int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct chunk *c = pl->first; c != NULL; c = c->next) {
		for (int i = 0; i < c->n_routes; i++) {
			struct route *r = &c->routes[i];
			if (r->state != ROUTE_RETRY)
				continue;
			if (r->due_us <= now)
				output_start_route(r);
			else if (r->due_us < next)
				next = r->due_us;
		}
	}
	return next;
}

/* A timer of the host that was missed several times fires once. The flush command comes
 * between the ticks and does not move them. */
static void flush_tick(struct pipeline *pl, int64_t now)
{
	int64_t interval = (int64_t)(pl->conf->svc.flush * SECOND_US);

	if (interval < 1000)
		interval = 1000;
	if (now >= pl->next_flush_us)
		pl->next_flush_us += ((now - pl->next_flush_us) / interval + 1) * interval;
	dispatch(pl);
}

/* run_timers does all that is due and returns when the next timer is. Timers come before
 * results and flushes, by the host's event priorities. */
static int64_t run_timers(struct pipeline *pl)
{
	int64_t now = now_us();
	int64_t next = fire_retries(pl, now);
	int64_t input = input_tick(pl, now);

	if (pl->shutting_down && now >= pl->next_tick_us)
		shutdown_tick(pl);
	if (pl->flush_asked || now >= pl->next_flush_us) {
		pl->flush_asked = false;
		flush_tick(pl, now);
	}
	if (input < next)
		next = input;
	if (pl->shutting_down && pl->next_tick_us < next)
		next = pl->next_tick_us;
	return pl->next_flush_us < next ? pl->next_flush_us : next;
}

static void run_here(struct pipeline *pl, struct route *r)
{
	r->state = ROUTE_RUNNING;
	pthread_mutex_unlock(&host.mu);
	output_run(r);
	pthread_mutex_lock(&host.mu);
	queue_push(&pl->results, r);
}

static void wait_until(struct pipeline *pl, int64_t due)
{
	struct timespec ts = { .tv_sec = due / SECOND_US, .tv_nsec = due % SECOND_US * 1000 };

	pthread_cond_timedwait(&pl->wake, &host.mu, &ts);
}

static void engine_loop(struct pipeline *pl)
{
	struct route *r;

	while (!pl->finished) {
		if (pl->stop_asked && !pl->shutting_down)
			begin_shutdown(pl);
		int64_t next = run_timers(pl);
		if (pl->finished)
			return;
		if ((r = queue_pop(&pl->results)) != NULL)
			handle_result(pl, r);
		else if ((r = queue_pop(&pl->ready)) != NULL)
			run_here(pl, r);
		else
			wait_until(pl, next);
	}
}

/* ---- start ---------------------------------------------------------------------- */

static void take_up(void *arg, struct chunk *c)
{
	struct pipeline *pl = arg;

	pthread_mutex_lock(&host.mu);
	if (c->id >= host.next_chunk)
		host.next_chunk = c->id + 1;
	chunk_link(pl, c);
	pthread_mutex_unlock(&host.mu);
}

static void tell_ready(const struct pipeline *pl)
{
	struct event e;
	uint64_t records, chunks = pipeline_waiting(pl, &records);

	ev_open(&e, "ready");
	ev_int(&e, "reloads", host.reloads);
	ev_int(&e, "backlog_chunks", (int64_t)chunks);
	ev_int(&e, "backlog_records", (int64_t)records);
	ev_list(&e, "outputs");
	for (struct output *o = pl->outputs; o != NULL; o = o->next) {
		ev_item(&e);
		ev_str(&e, "instance", output_name(o));
		ev_int(&e, "workers", o->workers != NULL ? o->n_workers : 0);
		ev_item_end(&e);
	}
	ev_list_end(&e);
	ev_emit(&e);
}

static bool engine_init(struct pipeline *pl)
{
	const struct service *s = &pl->conf->svc;

	log_open(s->log_file, s->log_level);
	hlog(LVL_INFO, "[chost] standing in for Fluent Bit, coroutine stack %lld bytes",
	     (long long)s->coro_stack);
	if (pl->store_dir != NULL && !store_load(pl->store_dir, take_up, pl)) {
		hlog(LVL_ERROR, "[storage] cannot read %s", pl->store_dir);
		return false;
	}
	return outputs_init(pl);
}

static void set_state(struct pipeline *pl, enum pipeline_state state)
{
	pl->state = state;
	pthread_cond_broadcast(&host.changed);
}

static void *engine_main(void *arg)
{
	struct pipeline *pl = arg;

	thread_name("flb-pipeline");
	log_host_thread();
	bool ok = engine_init(pl);
	pthread_mutex_lock(&host.mu);
	if (ok) {
		tell_ready(pl);
		pl->next_flush_us = now_us() + (int64_t)(pl->conf->svc.flush * SECOND_US);
		set_state(pl, PL_RUNNING);
		engine_loop(pl);
	}
	pthread_mutex_unlock(&host.mu);
	/* After a failed start the host runs the exit hooks all the same. */
	outputs_exit(pl);
	pthread_mutex_lock(&host.mu);
	tell_unprocessed(pl);
	lose_memory(pl);
	set_state(pl, ok ? PL_ENDED : PL_FAILED);
	pthread_mutex_unlock(&host.mu);
	return NULL;
}

/* ---- the pipeline, from the main thread ---------------------------------------------- */

/* pipeline_create takes conf and proxy over. NULL: the configuration was refused; then the
 * exit hooks have been called with a NULL context, as the host does. */
struct pipeline *pipeline_create(struct conf *conf, struct proxy *proxy)
{
	struct pipeline *pl = xcalloc(1, sizeof *pl);
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pl->wake, &attr);
	pthread_condattr_destroy(&attr);
	pl->conf = conf;
	pl->proxy = proxy;
	pl->grace = conf->svc.grace;
	if (conf->svc.storage_path != NULL && !conf->input_memory)
		pl->store_dir = xprintf("%s/lib.0", conf->svc.storage_path);
	if (!outputs_create(pl) || !outputs_check(pl)) {
		pipeline_abandon(pl);
		return NULL;
	}
	return pl;
}

void pipeline_abandon(struct pipeline *pl)
{
	outputs_exit(pl);
	pipeline_unregister(pl);
	pipeline_free(pl);
}

/* Returns when the engine runs, or false when it has ended already. */
bool pipeline_start(struct pipeline *pl)
{
	pthread_mutex_lock(&host.mu);
	host.pl = pl;
	pl->state = PL_STARTING;
	if (pthread_create(&pl->tid, NULL, engine_main, pl) != 0) {
		fprintf(stderr, "chost: cannot start the engine thread\n");
		abort();
	}
	while (pl->state == PL_STARTING)
		pthread_cond_wait(&host.changed, &host.mu);
	bool ok = pl->state != PL_FAILED;
	pthread_mutex_unlock(&host.mu);
	if (!ok)
		pthread_join(pl->tid, NULL);
	return ok;
}

/* The caller waits as long as it takes; that is what makes the host deaf to SIGTERM while a
 * reload drains. */
void pipeline_stop(struct pipeline *pl, bool by_reload)
{
	pthread_mutex_lock(&host.mu);
	pl->by_reload |= by_reload;
	pl->stop_asked = true;
	pthread_cond_signal(&pl->wake);
	pthread_mutex_unlock(&host.mu);
	pthread_join(pl->tid, NULL);
}

/* The engine has ended. Unregister runs here, on the main thread, at the very end. */
void pipeline_unregister(struct pipeline *pl)
{
	proxy_unload(pl->proxy);
	pl->proxy = NULL;
	if (pl->state != PL_NEW)     /* else the log belongs to the pipeline that goes on */
		log_close();
}

/* Chunks that are on disk stay there. */
void pipeline_free(struct pipeline *pl)
{
	pthread_mutex_lock(&host.mu);
	if (host.pl == pl)
		host.pl = NULL;
	while (pl->first != NULL)
		chunk_free(pl, pl->first);
	pthread_mutex_unlock(&host.mu);
	pthread_cond_destroy(&pl->wake);
	conf_free(pl->conf);
	free(pl->store_dir);
	free(pl);
}

/* Everything that is not delivered everywhere, and records not yet in a closed chunk. */
uint64_t pipeline_waiting(const struct pipeline *pl, uint64_t *records)
{
	uint64_t chunks = 0;

	*records = 0;
	for (const struct chunk *c = pl != NULL ? pl->first : NULL; c != NULL; c = c->next) {
		chunks++;
		*records += c->records;
	}
	return chunks;
}

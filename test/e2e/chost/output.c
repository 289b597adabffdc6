/* [OUTPUT] sections as instances: properties, routing, worker threads, and the call of
 * one flush. A section names the plugin under test, or null or counter, which take every
 * chunk and show by the gaps between their flushes whether the engine keeps its rhythm. */

#include "host.h"

#include <limits.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAGIC_ALIVE = 0x0f1b0001, MAGIC_DEAD = 0x0f1bdead };

/* ---- properties ----------------------------------------------------------------- */

/* Keys that the host's core takes; a plugin that asks for them gets NULL. Those that end
 * in a dot, and oauth2, stand for all that begin so. */
static const char *const core_keys[] = {
	"name", "routes", "match", "match_regex", "alias", "log_level", "log_suppress_interval",
	"host", "port", "ipv6", "retry_limit", "workers", "storage.total_limit_size",
	"net.", "oauth2", "tls", "tls.verify", "tls.verify_hostname", "tls.debug", "tls.vhost",
	"tls.ca_path", "tls.ca_file", "tls.crt_file", "tls.key_file", "tls.key_passwd",
	"tls.min_version", "tls.max_version", "tls.ciphers", "tls.proxy.verify",
	"tls.proxy.verify_hostname", "tls.proxy.ca_path", "tls.proxy.ca_file",
};

static bool is_core_key(const char *key)
{
	for (size_t i = 0; i < sizeof core_keys / sizeof core_keys[0]; i++) {
		size_t n = strlen(core_keys[i]);
		bool prefix = core_keys[i][n - 1] == '.' || strcmp(core_keys[i], "oauth2") == 0;
		if (prefix ? strncasecmp(key, core_keys[i], n) == 0
			   : strcasecmp(key, core_keys[i]) == 0)
			return true;
	}
	return false;
}

static void set_retry_limit(struct output *o, const char *val)
{
	if (strcasecmp(val, "no_limits") == 0 || strcasecmp(val, "false") == 0 ||
	    strcasecmp(val, "off") == 0) {
		o->retry_limit = RETRY_UNLIMITED;
	} else if (strcasecmp(val, "no_retries") == 0) {
		o->retry_limit = RETRY_NONE;
	} else {
		o->retry_limit = atoi(val);
		if (o->retry_limit <= 0) {
			hlog(LVL_WARN, "[config] %s: bad retry_limit '%s', using 1", o->name, val);
			o->retry_limit = 1;
		}
	}
}

static bool set_text(char **at, const char *val)
{
	free(*at);
	*at = xstrdup(val);
	return true;
}

/* The host accepts tls only from plugins that registered for it. */
static bool set_tls(const struct output *o, const char *val)
{
	bool on = false;

	parse_bool(val, &on);
	if (on && (o->flags & FLAG_IO_TLS) == 0) {
		hlog(LVL_ERROR, "[config] %s does not support TLS", o->name);
		return false;
	}
	return true;
}

static bool set_core(struct output *o, const char *key, const char *val)
{
	if (strcasecmp(key, "match") == 0)
		return set_text(&o->match, val);
	if (strcasecmp(key, "alias") == 0)
		return set_text(&o->alias, val);
	if (strcasecmp(key, "tls") == 0)
		return set_tls(o, val);
	if (strcasecmp(key, "retry_limit") == 0) {
		set_retry_limit(o, val);
	} else if (strcasecmp(key, "workers") == 0) {
		o->n_workers = atoi(val);
	} else if (strcasecmp(key, "log_level") == 0) {
		o->log_level = log_level_of(val);
		if (o->log_level < 0) {
			hlog(LVL_ERROR, "[config] %s: no log_level '%s'", o->name, val);
			return false;
		}
	} else if (strcasecmp(key, "match_regex") == 0) {
		hlog(LVL_ERROR, "[config] %s: match_regex is not imitated", o->name);
		return false;
	}
	return true;
}

static bool set_property(struct output *o, const char *key, const char *raw)
{
	char *val = env_expand(raw);
	bool ok = true;

	if (!is_core_key(key)) {
		/* An empty value is kept as NULL: it is the first occurrence all the same. */
		if (*val == '\0') {
			free(val);
			val = NULL;
		}
		kv_add(&o->props, key, val);
		return true;
	}
	if (*val != '\0')
		ok = set_core(o, key, val);
	free(val);
	return ok;
}

const char *output_property(const struct output *o, const char *key)
{
	for (const struct kv *kv = o->props; kv != NULL; kv = kv->next) {
		if (strcasecmp(kv->key, key) == 0)
			return kv->val;
	}
	return NULL;
}

/* ---- instances ------------------------------------------------------------------- */

const char *output_name(const struct output *o)
{
	return o->alias != NULL ? o->alias : o->name;
}

bool output_alive(const struct output *o)
{
	return o != NULL && o->magic == MAGIC_ALIVE;
}

static struct stats *stats_of(const char *name)
{
	struct stats **s = &host.stats;

	while (*s != NULL && strcmp((*s)->name, name) != 0)
		s = &(*s)->next;
	if (*s == NULL) {
		*s = xcalloc(1, sizeof **s);
		(*s)->name = xstrdup(name);
	}
	return *s;
}

static struct output *output_new(struct pipeline *pl, const struct section *s, int id)
{
	struct output *o = xcalloc(1, sizeof *o);

	o->magic = MAGIC_ALIVE;
	o->id = id;
	o->pl = pl;
	o->retry_limit = 1;
	o->log_level = -1;
	if (strcasecmp(s->name, proxy_name(pl->proxy)) == 0) {
		o->kind = OUT_PROXY;
		o->flags = proxy_flags(pl->proxy);
		o->context = proxy_context_new(pl->proxy);
		o->name = xprintf("%s.%d", proxy_name(pl->proxy), id);
	} else {
		o->kind = OUT_COUNT;
		o->name = xprintf("%s.%d", s->name, id);
	}
	return o;
}

static bool known_plugin(const struct pipeline *pl, const char *name)
{
	return strcasecmp(name, proxy_name(pl->proxy)) == 0 || strcasecmp(name, "null") == 0 ||
	       strcasecmp(name, "counter") == 0;
}

/* On failure the instances made so far stay: the host runs their exit hooks. */
bool outputs_create(struct pipeline *pl)
{
	struct output **tail = &pl->outputs;
	int id = 0;

	for (const struct section *s = pl->conf->outputs; s != NULL; s = s->next) {
		if (!known_plugin(pl, s->name)) {
			hlog(LVL_ERROR, "[config] no output plugin '%s'", s->name);
			return false;
		}
		struct output *o = *tail = output_new(pl, s, id++);
		tail = &o->next;
		for (const struct kv *kv = s->props; kv != NULL; kv = kv->next) {
			if (!set_property(o, kv->key, kv->val))
				return false;
		}
		pthread_mutex_lock(&host.mu);
		o->stats = stats_of(output_name(o));
		pthread_mutex_unlock(&host.mu);
	}
	return true;
}

bool outputs_check(struct pipeline *pl)
{
	for (struct output *o = pl->outputs; o != NULL; o = o->next) {
		if (o->kind == OUT_PROXY && !proxy_check_properties(pl->proxy, o->props))
			return false;
	}
	return true;
}

/* Match knows * only. */
static bool match(const char *pattern, const char *tag)
{
	for (; *pattern != '\0'; pattern++, tag++) {
		if (*pattern == '*') {
			for (;; tag++) {
				if (match(pattern + 1, tag))
					return true;
				if (*tag == '\0')
					return false;
			}
		}
		if (*tag != *pattern)
			return false;
	}
	return *tag == '\0';
}

/* Without Match an output gets nothing, as in the host. */
bool output_matches(const struct output *o, const char *tag)
{
	if (o->kind == OUT_PROXY && !proxy_takes_logs(o->pl->proxy))
		return false;
	return o->match != NULL && match(o->match, tag);
}

/* ---- one flush ------------------------------------------------------------------- */

struct flush_call {
	struct output *out;
	const void *data;
	size_t len;
	char *tag;
	int64_t us;                  /* of the call alone, without our making of its stack */
};

static int flush_entry(void *arg)
{
	struct flush_call *f = arg;

	if (f->out->kind == OUT_COUNT)
		return RES_OK;
	int64_t start = now_us();
	int ret = proxy_flush(f->out->pl->proxy, f->out, f->data, f->len, f->tag);
	f->us = now_us() - start;
	return ret;
}

/* The bytes are lent for the time of the call: the host unmaps or reuses them afterwards.
 * Here they lie in a mapping of their own that is read-only, ends at a page that cannot
 * be touched, and cannot be read after the call; so a plugin that writes them, reads past
 * their end or keeps a slice of them crashes. */
struct loan {
	unsigned char *map;
	size_t size;
	const void *data;
};

/* The last mappings stay reserved without memory behind them, or the next flush would be
 * given the same address and make a kept slice look sound. Guarded by host.mu. */
enum { QUARANTINE = 256 };
static struct loan quarantine[QUARANTINE];
static unsigned quarantine_next;

static struct loan lend(const struct buf *b)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (b->len + page - 1) / page * page;
	struct loan l = { .size = room + page };

	l.map = mmap(NULL, l.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l.map == MAP_FAILED) {
		fprintf(stderr, "chost: no memory for a chunk of %zu bytes\n", b->len);
		abort();
	}
	if (b->len > 0)
		memcpy(l.map + room - b->len, b->p, b->len);
	mprotect(l.map, room > 0 ? room : page, PROT_READ);
	mprotect(l.map + room, page, PROT_NONE);
	l.data = l.map + room - b->len;
	return l;
}

static void give_back(struct loan l)
{
	mmap(l.map, l.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	pthread_mutex_lock(&host.mu);
	struct loan oldest = quarantine[quarantine_next];
	quarantine[quarantine_next] = l;
	quarantine_next = (quarantine_next + 1) % QUARANTINE;
	pthread_mutex_unlock(&host.mu);
	if (oldest.map != NULL)
		munmap(oldest.map, oldest.size);
}

static const char *result_name(int result)
{
	static const char *const names[] = { "error", "ok", "retry" };

	return result >= RES_ERROR && result <= RES_RETRY ? names[result] : "unknown";
}

/* last 0: first flush, or first since `status reset`. */
static void note_gap(struct stats *s, int64_t now)
{
	if (s->last_flush_us != 0 && now - s->last_flush_us > s->gap_max_us)
		s->gap_max_us = now - s->last_flush_us;
	s->last_flush_us = now;
}

static void note_flush(struct route *r, int64_t start, int64_t us, size_t stack)
{
	struct stats *s = r->out->stats;

	pthread_mutex_lock(&host.mu);
	s->flushes++;
	note_gap(s, start);
	if (us > s->flush_max_us)
		s->flush_max_us = us;
	if (stack > s->stack_max)
		s->stack_max = stack;
	if (r->out->workers == NULL && us > host.engine_max_us)
		host.engine_max_us = us;
	pthread_mutex_unlock(&host.mu);
}

static void tell_flush(const struct route *r, int raw, int64_t us, size_t stack)
{
	struct event e;
	char thread[16];

	ev_open(&e, "flush");
	ev_str(&e, "instance", output_name(r->out));
	ev_int(&e, "chunk", (int64_t)r->chunk->id);
	ev_str(&e, "tag", r->chunk->tag);
	ev_int(&e, "records", (int64_t)r->chunk->records);
	ev_int(&e, "bytes", (int64_t)r->chunk->data.len);
	ev_int(&e, "attempt", r->flushes);
	ev_str(&e, "result", result_name(r->result));
	if (raw != r->result)
		ev_int(&e, "raw", raw);
	ev_int(&e, "us", us);
	ev_int(&e, "stack", (int64_t)stack);
	ev_str(&e, "thread", own_thread_name(thread));
	ev_emit(&e);
}

/* output_run makes one flush call on the calling thread and leaves its outcome in the
 * route. The chunk is sealed, so nothing changes under the call. */
void output_run(struct route *r)
{
	struct output *o = r->out;
	struct loan loan = lend(&r->chunk->data);
	struct flush_call call = { .out = o, .data = loan.data, .len = r->chunk->data.len,
				   .tag = xstrdup(r->chunk->tag) };
	size_t tag_len = strlen(call.tag), stack;
	int64_t start = now_us();

	r->flushes++;
	int raw = coro_run((size_t)o->pl->conf->svc.coro_stack, flush_entry, &call, &stack);
	give_back(loan);
	memset(call.tag, '?', tag_len);     /* the tag is lent too */
	free(call.tag);
	/* The host knows three answers and takes every other for an error. */
	r->result = raw >= RES_ERROR && raw <= RES_RETRY ? raw : RES_ERROR;
	note_flush(r, start, call.us, stack);
	tell_flush(r, raw, call.us, stack);
}

/* ---- workers --------------------------------------------------------------------- */

static void worker_name(const struct worker *w)
{
	char *name = xprintf("flb-out-%s-w%d", w->out->name, w->number);

	thread_name(name);           /* "flb-out-kafka_r" after the kernel's cut */
	free(name);
}

/* A worker that is told to stop first works off its whole queue, without any limit. */
static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct pipeline *pl = w->out->pl;
	struct route *r;

	worker_name(w);
	log_host_thread();
	hlog(LVL_INFO, "[output:%s] worker #%d started", output_name(w->out), w->number);
	pthread_mutex_lock(&host.mu);
	for (;;) {
		while ((r = queue_pop(&w->queue)) == NULL && !w->stop)
			pthread_cond_wait(&w->wake, &host.mu);
		if (r == NULL)
			break;
		r->state = ROUTE_RUNNING;
		pthread_mutex_unlock(&host.mu);
		output_run(r);
		pthread_mutex_lock(&host.mu);
		queue_push(&pl->results, r);
		pthread_cond_signal(&pl->wake);
	}
	pthread_mutex_unlock(&host.mu);
	hlog(LVL_INFO, "[output:%s] worker #%d stopped", output_name(w->out), w->number);
	return NULL;
}

/* The host makes this pool twice for a Go output and leaks the first one, idle. One pool
 * here, so that a count of threads shows what the plugin leaks. */
static void workers_start(struct output *o)
{
	if (o->n_workers <= 0)
		return;
	struct worker *pool = xcalloc((size_t)o->n_workers, sizeof *pool);
	for (int i = 0; i < o->n_workers; i++) {
		pool[i].out = o;
		pool[i].number = i;
		pthread_cond_init(&pool[i].wake, NULL);
		if (pthread_create(&pool[i].tid, NULL, worker_main, &pool[i]) != 0) {
			fprintf(stderr, "chost: cannot start a worker thread\n");
			abort();
		}
	}
	o->workers = pool;
}

/* One after the other, as in the host: the second is told to stop when the first has
 * ended. */
static void workers_stop(struct output *o)
{
	for (int i = 0; o->workers != NULL && i < o->n_workers; i++) {
		struct worker *w = &o->workers[i];
		pthread_mutex_lock(&host.mu);
		w->stop = true;
		pthread_cond_signal(&w->wake);
		pthread_mutex_unlock(&host.mu);
		pthread_join(w->tid, NULL);
		pthread_cond_destroy(&w->wake);
	}
	free(o->workers);
	o->workers = NULL;
}

static void hand_over(struct route *r)
{
	struct output *o = r->out;

	r->state = ROUTE_QUEUED;
	o->running++;
	if (o->workers == NULL) {
		queue_push(&o->pl->ready, r);
		return;
	}
	/* Round robin, without a look at who is busy; no queue has a limit. */
	struct worker *w = &o->workers[o->next_worker];
	o->next_worker = (o->next_worker + 1) % o->n_workers;
	queue_push(&w->queue, r);
	pthread_cond_signal(&w->wake);
}

/* FLAG_SYNCHRONOUS: one chunk at a time, the others wait in order of arrival. */
void output_start_route(struct route *r)
{
	struct output *o = r->out;

	if ((o->flags & FLAG_SYNCHRONOUS) != 0 && o->single_busy) {
		r->state = ROUTE_QUEUED;
		queue_push(&o->single, r);
		return;
	}
	o->single_busy = true;
	hand_over(r);
}

/* ---- life cycle ------------------------------------------------------------------- */

/* What is left is a shell with a dead mark, never freed: the plugin may still hold the
 * address, and in the host that would be a use after free. */
static void output_bury(struct output *o)
{
	static struct output *buried;        /* guarded by host.mu */

	pthread_mutex_lock(&host.mu);
	o->magic = MAGIC_DEAD;
	o->next_buried = buried;
	buried = o;
	pthread_mutex_unlock(&host.mu);
	kv_free(o->props);
	o->props = NULL;
	free(o->context);
	o->context = NULL;
}

static void output_unlink(struct pipeline *pl, struct output *o)
{
	struct output **p = &pl->outputs;

	while (*p != o)
		p = &(*p)->next;
	*p = o->next;
}

static bool output_init(struct pipeline *pl, struct output *o)
{
	if (o->log_level < 0)
		o->log_level = pl->conf->svc.log_level;
	if (o->kind == OUT_PROXY && proxy_init(pl->proxy, o) <= 0) {
		hlog(LVL_ERROR, "[output] could not initialise '%s'", output_name(o));
		/* It is taken away without an exit hook; the others will get theirs. */
		output_unlink(pl, o);
		output_bury(o);
		return false;
	}
	pthread_mutex_lock(&host.mu);
	workers_start(o);
	pthread_mutex_unlock(&host.mu);
	return true;
}

/* An instance's workers run before the next instance is initialised. PreRun comes after
 * all of them, once for each. */
bool outputs_init(struct pipeline *pl)
{
	for (struct output *o = pl->outputs; o != NULL; o = o->next) {
		if (!output_init(pl, o))
			return false;
	}
	for (struct output *o = pl->outputs; o != NULL; o = o->next) {
		if (o->kind == OUT_PROXY)
			proxy_pre_run(pl->proxy, o, pl->conf->svc.hot_reload);
	}
	return true;
}

/* Instance by instance: join, PreExit, ExitCtx; so the first instance has exited while
 * the second one's workers may still flush. */
void outputs_exit(struct pipeline *pl)
{
	for (struct output *o = pl->outputs; o != NULL; o = o->next) {
		workers_stop(o);
		if (o->kind == OUT_PROXY)
			proxy_exit(pl->proxy, o, pl->by_reload);
		output_bury(o);
	}
}

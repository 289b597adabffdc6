/* The commands that a test gives, one a line, on stdin or from a script. They run on a
 * thread of their own, one after the other. A wrong command ends the process with code 2:
 * a test whose script has a typing error must not pass. */

#include "host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { MAX_TOKENS = 64, DEFAULT_SIZE = 300, MAX_SIZE = 64 << 20 };

struct token {
	char *text;                  /* NULL: taken */
	bool quoted;
};

struct command {
	int line;
	const char *name;
	struct token tokens[MAX_TOKENS];
	int n;
};

static void fault(const struct command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static void fault(const struct command *c, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "chost: command in line %d: %s: ", c->line, c->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	_exit(EXIT_USAGE);
}

/* ---- words ---------------------------------------------------------------------- */

/* Cuts the next word off. Double quotes keep blanks together and are removed. */
static char *next_word(char **line, bool *quoted)
{
	char *in = *line, *out;
	bool open = false;

	*quoted = false;
	while (isblank((unsigned char)*in))
		in++;
	if (*in == '\0')
		return NULL;
	char *word = out = in;
	for (; *in != '\0' && (open || !isblank((unsigned char)*in)); in++) {
		if (*in == '"') {
			open = !open;
			*quoted = true;
		} else {
			*out++ = *in;
		}
	}
	*line = *in != '\0' ? in + 1 : in;
	*out = '\0';
	return word;
}

static void split(struct command *c, char *line)
{
	bool quoted;

	c->name = next_word(&line, &quoted);
	for (char *w; (w = next_word(&line, &quoted)) != NULL; c->n++) {
		if (c->n == MAX_TOKENS)
			fault(c, "more than %d words", MAX_TOKENS);
		c->tokens[c->n] = (struct token){ .text = w, .quoted = quoted };
	}
}

/* take returns the value of key=value and takes the word away, or NULL. */
static const char *take(struct command *c, const char *key)
{
	size_t len = strlen(key);

	for (int i = 0; i < c->n; i++) {
		char *t = c->tokens[i].text;
		if (t != NULL && strncmp(t, key, len) == 0 && t[len] == '=') {
			c->tokens[i].text = NULL;
			return t + len + 1;
		}
	}
	return NULL;
}

static bool take_word(struct command *c, const char *word)
{
	for (int i = 0; i < c->n; i++) {
		if (c->tokens[i].text != NULL && strcmp(c->tokens[i].text, word) == 0) {
			c->tokens[i].text = NULL;
			return true;
		}
	}
	return false;
}

/* take_first returns the first word, which is no key=value. */
static const char *take_first(struct command *c, const char *what)
{
	if (c->n == 0 || c->tokens[0].text == NULL || strchr(c->tokens[0].text, '=') != NULL)
		fault(c, "%s is missing", what);
	const char *t = c->tokens[0].text;
	c->tokens[0].text = NULL;
	return t;
}

static int64_t take_int(struct command *c, const char *key, int64_t fallback, int64_t max)
{
	const char *t = take(c, key);
	int64_t v = fallback;

	if (t != NULL && (!parse_int(t, &v) || v < 0 || v > max))
		fault(c, "%s=%s is no number from 0 to %lld", key, t, (long long)max);
	return v;
}

static double take_time(struct command *c, const char *key, double fallback)
{
	const char *t = take(c, key);
	double v = fallback;

	if (t != NULL && !parse_duration(t, &v))
		fault(c, "%s=%s is no duration such as 500ms, 2s or 1m", key, t);
	return v;
}

static const char *take_tag(struct command *c)
{
	const char *tag = take(c, "tag");

	if (tag != NULL && *tag == '\0')
		fault(c, "the tag is empty");
	return tag != NULL ? tag : "app";
}

/* What is left of a record command is fields of the record. */
static struct field *take_fields(struct command *c)
{
	struct field *list = NULL, **tail = &list;

	for (int i = 0; i < c->n; i++) {
		char *t = c->tokens[i].text;
		if (t == NULL)
			continue;
		char *eq = strchr(t, '=');
		if (eq == NULL || eq == t)
			fault(c, "'%s' is neither an option nor a field such as key=value", t);
		struct field *f = *tail = xcalloc(1, sizeof *f);
		f->key = strndup(t, (size_t)(eq - t));
		f->text = xstrdup(eq + 1);
		f->quoted = c->tokens[i].quoted;
		tail = &f->next;
		c->tokens[i].text = NULL;
	}
	return list;
}

static void no_more(const struct command *c)
{
	for (int i = 0; i < c->n; i++) {
		if (c->tokens[i].text != NULL)
			fault(c, "'%s' is not understood", c->tokens[i].text);
	}
}

/* ---- record commands ---------------------------------------------------------------- */

/* first=K sets the number of the next record. */
static void set_first(struct command *c)
{
	int64_t first = take_int(c, "first", -1, INT64_MAX);

	if (first < 0)
		return;
	pthread_mutex_lock(&host.mu);
	host.next_seq = (uint64_t)first;
	pthread_mutex_unlock(&host.mu);
}

static void cmd_log(struct command *c)
{
	const char *word = take_first(c, "the number of records");
	int64_t n;

	if (!parse_int(word, &n) || n < 0)
		fault(c, "'%s' is no number of records", word);
	const char *tag = take_tag(c);
	size_t size = (size_t)take_int(c, "size", DEFAULT_SIZE, MAX_SIZE);
	bool junk = take_word(c, "junk");
	set_first(c);
	struct field *fields = take_fields(c);
	input_log((uint64_t)n, tag, size, fields, junk);
	fields_free(fields);
}

static void cmd_rate(struct command *c)
{
	const char *word = take_first(c, "the number of records a second");
	struct rate *r = xcalloc(1, sizeof *r);
	char *end;

	r->per_second = strtod(word, &end);
	if (*end != '\0' || !(r->per_second >= 0.001 && r->per_second <= 1e7))
		fault(c, "'%s' is no rate from 0.001 to 10000000", word);
	r->seconds = take_time(c, "seconds", -1);
	if (r->seconds < 0)
		fault(c, "seconds= is missing");
	r->tag = xstrdup(take_tag(c));
	r->size = (size_t)take_int(c, "size", DEFAULT_SIZE, MAX_SIZE);
	r->lossy = take_word(c, "lossy");
	set_first(c);
	r->fields = take_fields(c);
	input_rate(r);
}

static void cmd_quiet(struct command *c)
{
	no_more(c);
	input_quiet();
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void cmd_chunk(struct command *c)
{
	const char *hex = take_first(c, "the bytes in hex");
	struct buf b = { 0 };

	for (const char *h = hex; *h != '\0'; h += 2) {
		int high = hex_digit(h[0]), low = hex_digit(h[1]);
		if (high < 0 || low < 0)
			fault(c, "'%.8s' is not hex", h);
		buf_byte(&b, (unsigned char)(high << 4 | low));
	}
	const char *tag = take_tag(c);
	int64_t records = take_int(c, "records", -1, INT64_MAX);
	no_more(c);
	input_chunk(b.p, b.len, tag, records);
	buf_free(&b);
}

/* ---- the others ------------------------------------------------------------------------ */

static void cmd_flush(struct command *c)
{
	no_more(c);
	pthread_mutex_lock(&host.mu);
	if (host.pl != NULL) {
		host.pl->flush_asked = true;
		pthread_cond_signal(&host.pl->wake);
	}
	pthread_mutex_unlock(&host.mu);
}

/* wait_for waits on host.changed until done says so; host.mu is held. */
static bool wait_for(bool (*done)(void), double timeout)
{
	int64_t end = now_us() + (int64_t)(timeout * 1e6);
	struct timespec ts = { .tv_sec = end / 1000000, .tv_nsec = end % 1000000 * 1000 };

	while (!done()) {
		if (pthread_cond_timedwait(&host.changed, &host.mu, &ts) == ETIMEDOUT)
			return done();
	}
	return true;
}

/* Between two pipelines nothing is settled: chunks on disk have not been taken up yet. */
static bool settled(void)
{
	uint64_t records;

	return host.pl != NULL && host.pl->state == PL_RUNNING &&
	       pipeline_waiting(host.pl, &records) == 0;
}

static void cmd_settle(struct command *c)
{
	double timeout = take_time(c, "timeout", 30);
	int64_t start = now_us();
	struct event e;
	uint64_t records;

	no_more(c);
	pthread_mutex_lock(&host.mu);
	bool ok = wait_for(settled, timeout);
	uint64_t chunks = pipeline_waiting(host.pl, &records);
	ev_open(&e, "settled");
	ev_bool(&e, "ok", ok);
	ev_real(&e, "seconds", (double)(now_us() - start) / 1e6);
	ev_int(&e, "waiting_chunks", (int64_t)chunks);
	ev_int(&e, "waiting_records", (int64_t)records);
	ev_emit(&e);
	pthread_mutex_unlock(&host.mu);
}

static bool reload_over(void)
{
	return !host_reloading();
}

static void cmd_reload(struct command *c)
{
	double timeout = take_time(c, "wait", 0);

	no_more(c);
	host_reload();
	pthread_mutex_lock(&host.mu);
	wait_for(reload_over, timeout);
	pthread_mutex_unlock(&host.mu);
}

static void cmd_stop(struct command *c)
{
	no_more(c);
	host_stop(false);
}

static void cmd_sleep(struct command *c)
{
	const char *word = take_first(c, "a duration");
	double s;

	if (!parse_duration(word, &s))
		fault(c, "'%s' is no duration such as 500ms, 2s or 1m", word);
	no_more(c);
	usleep((useconds_t)(s * 1e6));
}

/* ---- status ------------------------------------------------------------------------------ */

/* in_flight: chunks on their way to the output, waiting for a retry or being flushed. */
static void report_waiting(struct event *e, const char *name)
{
	uint64_t chunks = 0, records = 0, running = 0;

	for (const struct chunk *c = host.pl != NULL ? host.pl->first : NULL; c != NULL; c = c->next) {
		for (int i = 0; i < c->n_routes; i++) {
			const struct route *r = &c->routes[i];
			if (r->state == ROUTE_DONE || strcmp(r->out->stats->name, name) != 0)
				continue;
			chunks++;
			records += c->records;
			running += r->state == ROUTE_RUNNING;
		}
	}
	ev_int(e, "waiting_chunks", (int64_t)chunks);
	ev_int(e, "waiting_records", (int64_t)records);
	ev_int(e, "running", (int64_t)running);
}

static void report_outputs(struct event *e)
{
	ev_list(e, "outputs");
	for (const struct stats *s = host.stats; s != NULL; s = s->next) {
		ev_item(e);
		ev_str(e, "instance", s->name);
		ev_int(e, "ok_chunks", (int64_t)s->ok_chunks);
		ev_int(e, "ok_records", (int64_t)s->ok_records);
		ev_int(e, "retries", (int64_t)s->retries);
		ev_int(e, "dropped_chunks", (int64_t)s->dropped_chunks);
		ev_int(e, "dropped_records", (int64_t)s->dropped_records);
		report_waiting(e, s->name);
		ev_int(e, "flushes", (int64_t)s->flushes);
		ev_int(e, "flush_max_us", s->flush_max_us);
		ev_int(e, "gap_max_us", s->gap_max_us);
		ev_int(e, "stack_max", (int64_t)s->stack_max);
		ev_item_end(e);
	}
	ev_list_end(e);
}

static void report_calls(struct event *e)
{
	ev_list(e, "calls");
	for (int i = 0; i < CALL_COUNT; i++) {
		if (host.calls[i].count == 0)
			continue;
		ev_item(e);
		ev_str(e, "fn", call_name((enum call)i));
		ev_int(e, "count", (int64_t)host.calls[i].count);
		ev_int(e, "max_us", host.calls[i].max_us);
		ev_item_end(e);
	}
	ev_list_end(e);
}

void report_state(struct event *e)
{
	uint64_t records, chunks = pipeline_waiting(host.pl, &records);

	ev_int(e, "logged", (int64_t)host.logged);
	ev_int(e, "waiting_chunks", (int64_t)chunks);
	ev_int(e, "waiting_records", (int64_t)records);
	ev_int(e, "reloads", host.reloads);
	ev_int(e, "unprocessed", host.unprocessed);
	ev_int(e, "violations", atomic_load(&host.violations));
	ev_int(e, "engine_max_us", host.engine_max_us);
	report_outputs(e);
	report_calls(e);
}

static void reset_maxima(void)
{
	host.engine_max_us = 0;
	for (struct stats *s = host.stats; s != NULL; s = s->next)
		s->flush_max_us = s->gap_max_us = s->last_flush_us = 0;
	for (int i = 0; i < CALL_COUNT; i++)
		host.calls[i].max_us = 0;
}

static const char *phase(void)
{
	if (host.pl == NULL || host.pl->state != PL_RUNNING)
		return "starting";
	return host.pl->stop_asked || host.pl->shutting_down ? "draining" : "running";
}

static void cmd_status(struct command *c)
{
	bool reset = take_word(c, "reset");
	struct event e;

	no_more(c);
	pthread_mutex_lock(&host.mu);
	ev_open(&e, "status");
	ev_str(&e, "phase", phase());
	report_state(&e);
	ev_emit(&e);
	if (reset)
		reset_maxima();
	pthread_mutex_unlock(&host.mu);
}

/* ---- the reader ---------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(struct command *);
} commands[] = {
	{ "log", cmd_log }, { "rate", cmd_rate }, { "quiet", cmd_quiet },
	{ "chunk", cmd_chunk }, { "flush", cmd_flush },
	{ "settle", cmd_settle }, { "status", cmd_status }, { "reload", cmd_reload },
	{ "stop", cmd_stop }, { "sleep", cmd_sleep },
};

static void run_line(char *line, int number)
{
	struct command c = { .line = number };

	line = trim(line);
	if (*line == '\0' || *line == '#')
		return;
	split(&c, line);
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(commands[i].name, c.name) == 0) {
			commands[i].run(&c);
			return;
		}
	}
	fault(&c, "no such command");
}

/* Plain reads: a thread that sits in a stdio call on stdin can block exit in some versions
 * of glibc. Returns false at the end of the input. */
static bool read_line(int fd, struct buf *rest, struct buf *line)
{
	char block[4096];

	line->len = 0;
	for (;;) {
		unsigned char *nl = rest->len > 0 ? memchr(rest->p, '\n', rest->len) : NULL;
		size_t n = nl != NULL ? (size_t)(nl - rest->p) : rest->len;
		buf_add(line, rest->p, n);
		n += nl != NULL;
		rest->len -= n;
		if (rest->len > 0)
			memmove(rest->p, rest->p + n, rest->len);
		if (nl != NULL)
			break;
		ssize_t got = read(fd, block, sizeof block);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 && line->len == 0)
			return false;
		if (got <= 0)
			break;
		buf_add(rest, block, (size_t)got);
	}
	buf_byte(line, '\0');
	return true;
}

static void *commands_main(void *arg)
{
	struct buf rest = { 0 }, line = { 0 };
	int fd = (int)(intptr_t)arg;

	thread_name("chost-commands");
	for (int n = 1; read_line(fd, &rest, &line); n++)
		run_line((char *)line.p, n);
	buf_free(&rest);
	buf_free(&line);
	host_stop(true);
	return NULL;
}

void commands_start(int fd)
{
	pthread_t tid;

	if (pthread_create(&tid, NULL, commands_main, (void *)(intptr_t)fd) != 0) {
		fprintf(stderr, "chost: cannot start the command thread\n");
		abort();
	}
	pthread_detach(tid);
}

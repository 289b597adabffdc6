/* Events: one JSON object a line, for a test to read with encoding/json. A line is
 * written at once and whole, so what was reported is reported even after kill -9. The
 * price is that a reader that stops reading stops the host. */

#include "host.h"

#include <errno.h>
#include <unistd.h>

static pthread_mutex_t write_mu = PTHREAD_MUTEX_INITIALIZER;

static void add_text(struct event *e, const char *s)
{
	buf_add(&e->b, s, strlen(s));
}

/* Bytes from 0x80 on pass as they are: tags and names of the tests are UTF-8. */
static void add_quoted(struct event *e, const char *s)
{
	buf_byte(&e->b, '"');
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\') {
			buf_byte(&e->b, '\\');
			buf_byte(&e->b, c);
		} else if (c < 0x20) {
			char esc[8];
			snprintf(esc, sizeof esc, "\\u%04x", c);
			add_text(e, esc);
		} else {
			buf_byte(&e->b, c);
		}
	}
	buf_byte(&e->b, '"');
}

static void add_key(struct event *e, const char *key)
{
	if (e->comma)
		buf_byte(&e->b, ',');
	e->comma = true;
	add_quoted(e, key);
	buf_byte(&e->b, ':');
}

void ev_open(struct event *e, const char *name)
{
	*e = (struct event){ 0 };
	buf_byte(&e->b, '{');
	ev_real(e, "t", (double)(now_us() - host.start_us) / 1e6);
	ev_str(e, "ev", name);
}

void ev_str(struct event *e, const char *key, const char *val)
{
	add_key(e, key);
	add_quoted(e, val);
}

void ev_int(struct event *e, const char *key, int64_t val)
{
	char num[32];

	add_key(e, key);
	snprintf(num, sizeof num, "%lld", (long long)val);
	add_text(e, num);
}

void ev_real(struct event *e, const char *key, double val)
{
	char num[40];

	add_key(e, key);
	snprintf(num, sizeof num, "%.6f", val);
	add_text(e, num);
}

void ev_bool(struct event *e, const char *key, bool val)
{
	add_key(e, key);
	add_text(e, val ? "true" : "false");
}

void ev_list(struct event *e, const char *key)
{
	add_key(e, key);
	buf_byte(&e->b, '[');
	e->comma = false;
}

void ev_list_end(struct event *e)
{
	buf_byte(&e->b, ']');
	e->comma = true;
}

void ev_item(struct event *e)
{
	if (e->comma)
		buf_byte(&e->b, ',');
	buf_byte(&e->b, '{');
	e->comma = false;
}

void ev_item_end(struct event *e)
{
	buf_byte(&e->b, '}');
	e->comma = true;
}

void ev_emit(struct event *e)
{
	buf_add(&e->b, "}\n", 2);
	pthread_mutex_lock(&write_mu);
	for (size_t off = 0; off < e->b.len;) {
		ssize_t n = write(host.events_fd, e->b.p + off, e->b.len - off);
		if (n < 0 && errno != EINTR)
			break;
		off += n > 0 ? (size_t)n : 0;
	}
	pthread_mutex_unlock(&write_mu);
	buf_free(&e->b);
}

void violation(const char *what, const char *detail)
{
	struct event e;

	atomic_fetch_add(&host.violations, 1);
	fprintf(stderr, "chost: VIOLATION: %s (%s)\n", what, detail);
	ev_open(&e, "violation");
	ev_str(&e, "what", what);
	ev_str(&e, "detail", detail);
	ev_emit(&e);
}

void broken(const char *fmt, ...)
{
	struct event e;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "chost: BROKEN: %s\n", text);
	ev_open(&e, "broken");
	ev_str(&e, "what", text);
	ev_emit(&e);
	_exit(EXIT_BROKEN);
}

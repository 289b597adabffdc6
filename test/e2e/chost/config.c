/* Configuration in classic format. Keys end at the first space, as in the host: a key
 * that is followed by a tab only is "undefined value" there, and here. */

#include "host.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <unistd.h>

struct parser {
	const char *path;
	int line;
	struct conf *conf;
	struct section **in_tail, **out_tail;
	struct section *section;     /* where keys go; NULL in a section that is ignored */
	bool in_service, any_section;
};

static bool fault(const struct parser *p, const char *what, const char *detail)
{
	hlog(LVL_ERROR, "[config] %s:%d: %s%s%s", p->path, p->line, what,
	     detail != NULL ? ": " : "", detail != NULL ? detail : "");
	return false;
}

/* ---- values ------------------------------------------------------------------- */

/* The value of one ${NAME} or ${NAME:-word}. */
static void add_variable(struct buf *b, char *name)
{
	char *word = strstr(name, ":-");

	if (word != NULL) {
		*word = '\0';
		word += 2;
	}
	const char *val = getenv(name);
	if (val == NULL || *val == '\0')
		val = word;
	if (val == NULL)
		hlog(LVL_WARN, "[env] variable ${%s} is used but not set", name);
	else
		buf_add(b, val, strlen(val));
}

/* Only ${NAME} is expanded; a bare $ is text, so that an Azure user name such as
 * $ConnectionString arrives untouched. */
char *env_expand(const char *value)
{
	struct buf b = { 0 };
	const char *open, *close;

	while ((open = strstr(value, "${")) != NULL && (close = strchr(open, '}')) != NULL &&
	       close > open + 2) {
		char *name = strndup(open + 2, (size_t)(close - open - 2));
		buf_add(&b, value, (size_t)(open - value));
		add_variable(&b, name);
		free(name);
		value = close + 1;
	}
	buf_add(&b, value, strlen(value) + 1);
	return (char *)b.p;
}

/* kv_add takes val over. The same key may come more than once; the first one counts. */
void kv_add(struct kv **list, const char *key, char *val)
{
	struct kv *kv = xcalloc(1, sizeof *kv);

	kv->key = xstrdup(key);
	kv->val = val;
	while (*list != NULL)
		list = &(*list)->next;
	*list = kv;
}

void kv_free(struct kv *list)
{
	while (list != NULL) {
		struct kv *next = list->next;
		free(list->key);
		free(list->val);
		free(list);
		list = next;
	}
}

/* ---- [SERVICE] ------------------------------------------------------------------ */

enum service_type { SVC_REAL, SVC_INT, SVC_SIZE, SVC_BOOL, SVC_TEXT, SVC_LEVEL };

static const struct {
	const char *key;
	enum service_type type;
	size_t offset;
} service_keys[] = {
	{ "flush", SVC_REAL, offsetof(struct service, flush) },
	{ "grace", SVC_INT, offsetof(struct service, grace) },
	{ "scheduler.base", SVC_INT, offsetof(struct service, sched_base) },
	{ "scheduler.cap", SVC_INT, offsetof(struct service, sched_cap) },
	{ "storage.path", SVC_TEXT, offsetof(struct service, storage_path) },
	{ "log_file", SVC_TEXT, offsetof(struct service, log_file) },
	{ "log_level", SVC_LEVEL, offsetof(struct service, log_level) },
	{ "coro_stack_size", SVC_SIZE, offsetof(struct service, coro_stack) },
	{ "hot_reload", SVC_BOOL, offsetof(struct service, hot_reload) },
	{ "hot_reload.ensure_thread_safety", SVC_BOOL, offsetof(struct service, thread_safety) },
	{ "daemon", SVC_BOOL, offsetof(struct service, daemon) },
};

static bool service_store(void *at, enum service_type type, const char *val)
{
	int64_t num;
	char *end;

	switch (type) {
	case SVC_REAL:
		*(double *)at = strtod(val, &end);
		return end != val && *end == '\0' && *(double *)at > 0;
	case SVC_INT:
		if (!parse_int(val, &num) || num < INT32_MIN || num > INT32_MAX)
			return false;
		*(int *)at = (int)num;
		return true;
	case SVC_SIZE:
		return parse_int(val, at);
	case SVC_BOOL:
		return parse_bool(val, at);
	case SVC_LEVEL:
		*(int *)at = log_level_of(val);
		return *(int *)at >= 0;
	case SVC_TEXT:
		free(*(char **)at);
		*(char **)at = xstrdup(val);
		return true;
	}
	return false;
}

static bool service_set(struct parser *p, const char *key, const char *raw)
{
	char *val = env_expand(raw);
	size_t n = sizeof service_keys / sizeof service_keys[0], i;
	bool ok = true;

	for (i = 0; i < n && strcasecmp(service_keys[i].key, key) != 0; i++)
		;
	if (i == n)
		hlog(LVL_WARN, "[config] [SERVICE] %s is not imitated, ignored", key);
	else if (*val != '\0')       /* empty after expansion counts as unset */
		ok = service_store((char *)&p->conf->svc + service_keys[i].offset,
				   service_keys[i].type, val);
	free(val);
	return ok ? true : fault(p, "bad value in [SERVICE]", key);
}

static void service_defaults(struct service *s)
{
	*s = (struct service){
		.flush = 1, .grace = 5, .sched_base = 5, .sched_cap = 2000,
		.log_level = LVL_INFO, .thread_safety = true,
		.coro_stack = compat_coro_stack(host.opt.compat),
	};
}

/* Options of the command line win, as -Y and -W do in the host. */
static bool service_finish(struct parser *p)
{
	struct service *s = &p->conf->svc;

	s->hot_reload |= host.opt.hot_reload;
	s->thread_safety &= !host.opt.no_thread_safety;
	s->daemon |= host.opt.daemon;
	if (s->coro_stack < sysconf(_SC_PAGESIZE) || s->coro_stack > 1 << 30)
		return fault(p, "coro_stack_size is below one page or absurd", NULL);
	if (s->sched_base < 1 || s->sched_cap < s->sched_base)
		return fault(p, "scheduler.base must be from 1 to scheduler.cap", NULL);
	if (s->grace < -1)
		return fault(p, "grace must be -1 or more", NULL);
	return true;
}

/* ---- sections ------------------------------------------------------------------ */

static void section_append(struct parser *p, struct section ***tail)
{
	struct section *s = xcalloc(1, sizeof *s);

	s->line = p->line;
	**tail = s;
	*tail = &s->next;
	p->section = s;
}

static bool section_open(struct parser *p, char *text)
{
	char *end = strchr(text, ']');

	if (end == NULL)
		return fault(p, "bad section header", text);
	*end = '\0';
	p->section = NULL;
	p->in_service = false;
	p->any_section = true;
	if (strcasecmp(text + 1, "SERVICE") == 0)
		p->in_service = true;
	else if (strcasecmp(text + 1, "INPUT") == 0)
		section_append(p, &p->in_tail);
	else if (strcasecmp(text + 1, "OUTPUT") == 0)
		section_append(p, &p->out_tail);
	else
		hlog(LVL_WARN, "[config] section [%s] is not imitated, ignored", text + 1);
	return true;
}

static bool key_line(struct parser *p, char *text)
{
	char *space = strchr(text, ' ');

	if (space == NULL)
		return fault(p, "undefined value", text);
	*space = '\0';
	char *key = trim(text), *val = trim(space + 1);
	if (!p->any_section)
		return fault(p, "key outside of a section", key);
	if (p->in_service)
		return service_set(p, key, val);
	if (p->section == NULL)
		return true;
	if (strcasecmp(key, "name") == 0 && p->section->name == NULL)
		p->section->name = env_expand(val);
	else if (strcasecmp(key, "name") != 0)
		kv_add(&p->section->props, key, xstrdup(val));
	return true;
}

static bool parse_line(struct parser *p, char *text)
{
	if (text[0] == '#')
		return true;
	if (text[0] == '@')
		return fault(p, "@ directives are not imitated", text);
	if (text[0] == '[')
		return section_open(p, text);
	while (isblank((unsigned char)*text))
		text++;
	if (*text == '\0' || *text == '#')
		return true;
	return key_line(p, text);
}

static bool parse_file(struct parser *p, FILE *f)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	bool ok = true;

	while (ok && (n = getline(&line, &cap, f)) > 0) {
		p->line++;
		while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = '\0';
		ok = parse_line(p, line);
	}
	free(line);
	return ok;
}

static void take_input(struct conf *c, const struct section *s)
{
	for (const struct kv *kv = s->props; kv != NULL; kv = kv->next) {
		char *val = env_expand(kv->val);
		if (strcasecmp(kv->key, "tag") == 0 && *val != '\0') {
			free(c->input_tag);
			c->input_tag = xstrdup(val);
		} else if (strcasecmp(kv->key, "storage.type") == 0) {
			c->input_memory = strcasecmp(val, "memory") == 0;
		}
		free(val);
	}
}

/* The one input is the library input of the host, fed by commands. */
static bool take_sections(struct parser *p)
{
	struct conf *c = p->conf;

	for (const struct section *s = c->inputs; s != NULL; s = s->next) {
		if (s->name != NULL && strcasecmp(s->name, "lib") == 0)
			take_input(c, s);
		else
			hlog(LVL_WARN, "[config] input '%s' is not imitated, ignored: records "
			     "come from commands", s->name != NULL ? s->name : "");
	}
	for (const struct section *s = c->outputs; s != NULL; s = s->next) {
		p->line = s->line;
		if (s->name == NULL)
			return fault(p, "[OUTPUT] without Name", NULL);
	}
	return c->outputs != NULL ? true : fault(p, "no [OUTPUT] section", NULL);
}

struct conf *conf_load(const char *path)
{
	struct conf *c = xcalloc(1, sizeof *c);
	struct parser p = { .path = path, .conf = c, .in_tail = &c->inputs,
			    .out_tail = &c->outputs };

	service_defaults(&c->svc);
	FILE *f = fopen(path, "re");
	if (f == NULL) {
		hlog(LVL_ERROR, "[config] %s: %s", path, strerror(errno));
		conf_free(c);
		return NULL;
	}
	bool ok = parse_file(&p, f) && service_finish(&p) && take_sections(&p);
	fclose(f);
	if (!ok) {
		conf_free(c);
		return NULL;
	}
	return c;
}

static void sections_free(struct section *s)
{
	while (s != NULL) {
		struct section *next = s->next;
		free(s->name);
		kv_free(s->props);
		free(s);
		s = next;
	}
}

void conf_free(struct conf *c)
{
	sections_free(c->inputs);
	sections_free(c->outputs);
	free(c->svc.storage_path);
	free(c->svc.log_file);
	free(c->input_tag);
	free(c);
}

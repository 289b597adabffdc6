/* The plugin as the host's Go proxy sees it: dlopen, exports, the structs shared with it,
 * and the API table. Every call is timed and told, except flushes, which output.c tells. */

#include "host.h"

#include <dlfcn.h>
#include <strings.h>

/* ---- what the plugin sees of the host --------------------------------------------- */

/* proxy_def grew: event_type came with 5.0, config_map with 5.1.1. Older hosts allocate
 * less, and a plugin that writes what they do not have writes into foreign memory. */
struct proxy_def {
	int type;
	int proxy;
	int flags;
	char *name;
	char *description;
	int event_type;
	struct config_map *config_map;
};

/* The sizes that the compilers of those releases gave the shorter structs. */
struct proxy_def_2_2 {
	int type, proxy, flags;
	char *name, *description;
};
struct proxy_def_5_0 {
	int type, proxy, flags;
	char *name, *description;
	int event_type;
};

/* An entry of a config map as of 5.0.3: 104 bytes. */
struct config_map {
	int type;
	char *name;
	char *def_value;
	int flags;
	int set_property;
	uintptr_t offset;
	char *desc;
	void *internal[7];
};
_Static_assert(sizeof(struct config_map) == 104, "size of a config map entry in 5.0.3 and later");

enum { TYPE_OUTPUT = 2, PROXY_GOLANG = 11, EVENT_LOGS = 1 };
enum { MAP_STR_PREFIX = 1, MAP_MULT = 1 };

/* context is one per instance; the plugin puts its own pointer first. */
struct context {
	void *remote;
	struct proxy *proxy;
};

/* go_plugin is one for all instances of a registration: the host rewrites o_ins and
 * context before each Init, so a plugin may read it during Init only. */
struct go_plugin {
	char *name;
	struct api *api;
	struct output *o_ins;
	struct context *context;
	void *callbacks[5];          /* the host keeps its function pointers here */
};

/* api: custom_* are not there in 2.2. */
struct api {
	const char *(*output_get_property)(const char *, struct output *);
	const char *(*input_get_property)(const char *, void *);
	void *(*output_get_cmt_instance)(struct output *);
	void *(*input_get_cmt_instance)(void *);
	void (*log_print)(int, const char *, int, const char *, ...);
	int (*input_log_check)(void *, int);
	int (*output_log_check)(struct output *, int);
	const char *(*custom_get_property)(const char *, void *);
	int (*custom_log_check)(void *, int);
	void (*beyond[8])(void);     /* behind the end of the host's table */
};

struct proxy {
	void *dso;
	char *path;
	char *name;
	int flags, event_type;
	struct config_map *config_map;
	struct proxy_def *def;       /* def_size bytes, then the guard */
	size_t def_size;
	struct go_plugin *plugin;    /* then the guard */
	struct api api;
	atomic_bool initialising;

	int (*pre_register)(int);
	int (*reg)(void *);
	int (*init)(void *);
	int (*flush_ctx)(void *, const void *, size_t, char *);
	int (*flush)(const void *, size_t, char *);
	int (*pre_run)(int);
	void (*pre_exit)(int);
	int (*exit_ctx)(void *);
	int (*exit_all)(void);
	void (*unregister)(void *);
};

bool compat_parse(const char *s, enum compat *out)
{
	static const char *const names[] = { "2.2", "5.0", "5.1.1" };

	for (int i = COMPAT_2_2; i <= COMPAT_5_1_1; i++) {
		if (strcmp(s, names[i]) == 0) {
			*out = (enum compat)i;
			return true;
		}
	}
	return false;
}

/* 1.5 x PTHREAD_STACK_MIN of 16 KiB until 5.1.0 raised the floor. */
int64_t compat_coro_stack(enum compat c)
{
	return c == COMPAT_5_1_1 ? 65536 : 24576;
}

static size_t compat_def_size(enum compat c)
{
	switch (c) {
	case COMPAT_2_2: return sizeof(struct proxy_def_2_2);
	case COMPAT_5_0: return sizeof(struct proxy_def_5_0);
	default:         return sizeof(struct proxy_def);
	}
}

/* ---- guards -------------------------------------------------------------------- */

enum { GUARD_SIZE = 64, GUARD_BYTE = 0xb5 };

static void *guarded_new(size_t size)
{
	unsigned char *p = xcalloc(1, size + GUARD_SIZE);

	memset(p + size, GUARD_BYTE, GUARD_SIZE);
	return p;
}

static void guard_check(const void *mem, size_t size, const char *what, enum call after)
{
	const unsigned char *p = (const unsigned char *)mem + size;

	for (int i = 0; i < GUARD_SIZE; i++) {
		if (p[i] != GUARD_BYTE)
			broken("%s wrote behind the end of %s (%zu bytes in this version), at +%zu",
			       call_name(after), what, size, size + (size_t)i);
	}
}

static void guards_check(const struct proxy *p, enum call after)
{
	guard_check(p->def, p->def_size, "the register struct", after);
	if (p->plugin != NULL)
		guard_check(p->plugin, sizeof *p->plugin, "the plugin struct", after);
}

/* ---- the API table --------------------------------------------------------------- */

static const char *api_output_get_property(const char *key, struct output *o)
{
	if (key == NULL)
		return NULL;
	if (!output_alive(o)) {
		violation("output_get_property on an instance after its exit", key);
		return NULL;
	}
	struct context *ctx = o->context;
	if (!atomic_load(&ctx->proxy->initialising))
		violation("output_get_property outside of FLBPluginInit", key);
	return output_property(o, key);
}

static const char *api_no_property(const char *key, void *ins)
{
	(void)key;
	(void)ins;
	return NULL;
}

/* chost has no cmetrics; a plugin sees the same in a host built without metrics. */
static void *api_output_cmt(struct output *o)
{
	(void)o;
	return NULL;
}

static void *api_no_cmt(void *ins)
{
	(void)ins;
	return NULL;
}

static int api_output_log_check(struct output *o, int level)
{
	if (!output_alive(o)) {
		violation("output_log_check on an instance after its exit", "");
		return 0;
	}
	return o->log_level >= level;
}

static int api_no_log_check(void *ins, int level)
{
	(void)ins;
	(void)level;
	return 0;
}

static void api_beyond(void)
{
	broken("the plugin called an entry of the API table that this version does not have");
}

static void api_fill(struct api *a, enum compat compat)
{
	a->output_get_property = api_output_get_property;
	a->input_get_property = api_no_property;
	a->output_get_cmt_instance = api_output_cmt;
	a->input_get_cmt_instance = api_no_cmt;
	a->log_print = log_print;
	a->input_log_check = api_no_log_check;
	a->output_log_check = api_output_log_check;
	a->custom_get_property = api_no_property;
	a->custom_log_check = api_no_log_check;
	for (int i = 0; i < 8; i++)
		a->beyond[i] = api_beyond;
	if (compat == COMPAT_2_2) {
		a->custom_get_property = (const char *(*)(const char *, void *))api_beyond;
		a->custom_log_check = (int (*)(void *, int))api_beyond;
	}
}

/* ---- telling calls --------------------------------------------------------------- */

static const char *const call_names[CALL_COUNT] = {
	[CALL_PRE_REGISTER] = "FLBPluginPreRegister",
	[CALL_REGISTER] = "FLBPluginRegister",
	[CALL_INIT] = "FLBPluginInit",
	[CALL_PRE_RUN] = "FLBPluginOutputPreRun",
	[CALL_FLUSH_CTX] = "FLBPluginFlushCtx",
	[CALL_FLUSH] = "FLBPluginFlush",
	[CALL_PRE_EXIT] = "FLBPluginOutputPreExit",
	[CALL_EXIT_CTX] = "FLBPluginExitCtx",
	[CALL_EXIT] = "FLBPluginExit",
	[CALL_UNREGISTER] = "FLBPluginUnregister",
};

const char *call_name(enum call c)
{
	return call_names[c];
}

static int64_t call_note(enum call c, int64_t start)
{
	int64_t us = now_us() - start;

	pthread_mutex_lock(&host.mu);
	host.calls[c].count++;
	if (us > host.calls[c].max_us)
		host.calls[c].max_us = us;
	pthread_mutex_unlock(&host.mu);
	return us;
}

/* arg -1: the call takes none worth telling. */
static void call_tell(struct proxy *p, enum call c, int64_t start, struct output *o,
		      int arg, int ret)
{
	struct event e;
	char thread[16];
	int64_t us = call_note(c, start);

	guards_check(p, c);
	ev_open(&e, "call");
	ev_str(&e, "fn", call_name(c));
	if (o != NULL)
		ev_str(&e, "instance", output_name(o));
	if (arg >= 0)
		ev_int(&e, "arg", arg);
	ev_int(&e, "ret", ret);
	ev_int(&e, "us", us);
	ev_str(&e, "thread", own_thread_name(thread));
	ev_emit(&e);
}

/* ---- loading and registration ------------------------------------------------------ */

static void symbols(struct proxy *p)
{
	const struct {
		enum call call;
		void *at;
	} wanted[] = {
		{ CALL_PRE_REGISTER, &p->pre_register }, { CALL_REGISTER, &p->reg },
		{ CALL_INIT, &p->init }, { CALL_FLUSH_CTX, &p->flush_ctx },
		{ CALL_FLUSH, &p->flush }, { CALL_PRE_RUN, &p->pre_run },
		{ CALL_PRE_EXIT, &p->pre_exit }, { CALL_EXIT_CTX, &p->exit_ctx },
		{ CALL_EXIT, &p->exit_all }, { CALL_UNREGISTER, &p->unregister },
	};

	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		void *sym = dlsym(p->dso, call_name(wanted[i].call));
		/* POSIX wants function pointers to fit; memcpy keeps ISO C content. */
		memcpy(wanted[i].at, &sym, sizeof sym);
	}
}

static bool registered(struct proxy *p)
{
	const struct proxy_def *d = p->def;

	if (d->type != TYPE_OUTPUT || d->proxy != PROXY_GOLANG || d->name == NULL) {
		hlog(LVL_ERROR, "[proxy] FLBPluginRegister left type %d (want %d), proxy %d (want %d), "
		     "name %s", d->type, TYPE_OUTPUT, d->proxy, PROXY_GOLANG,
		     d->name != NULL ? d->name : "unset");
		return false;
	}
	/* The host keeps its own copies, since Unregister frees the strings. */
	p->name = xstrdup(d->name);
	p->flags = d->flags;
	if (host.opt.compat >= COMPAT_5_0)
		p->event_type = d->event_type;
	if (host.opt.compat >= COMPAT_5_1_1)
		p->config_map = d->config_map;
	hlog(LVL_INFO, "[proxy] %s is registered for event types %d", p->name, p->event_type);
	return true;
}

static bool do_register(struct proxy *p, bool hot_reloading)
{
	int64_t start = now_us();

	if (p->pre_register != NULL) {
		int ret = p->pre_register(hot_reloading);
		call_tell(p, CALL_PRE_REGISTER, start, NULL, hot_reloading, ret);
		if (ret == -1)
			return false;
	}
	if (p->reg == NULL || p->init == NULL || (p->flush_ctx == NULL && p->flush == NULL)) {
		hlog(LVL_ERROR, "[proxy] %s lacks FLBPluginRegister, FLBPluginInit or a flush",
		     p->path);
		return false;
	}
	start = now_us();
	int ret = p->reg(p->def);
	call_tell(p, CALL_REGISTER, start, NULL, -1, ret);
	return ret != -1 && registered(p);
}

/* proxy_load opens and registers, once for each pipeline: at a reload the new one is
 * registered (hot_reloading) while the old one still runs. */
struct proxy *proxy_load(const char *path, bool hot_reloading)
{
	struct proxy *p = xcalloc(1, sizeof *p);

	/* Lazy and local, as the host does; so the plugin's own undefined names are
	 * looked up in the executable first. */
	p->dso = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (p->dso == NULL) {
		hlog(LVL_ERROR, "[proxy] error opening plugin %s: %s", path, dlerror());
		free(p);
		return NULL;
	}
	p->path = xstrdup(path);
	p->def_size = compat_def_size(host.opt.compat);
	p->def = guarded_new(p->def_size);
	api_fill(&p->api, host.opt.compat);
	symbols(p);
	if (!do_register(p, hot_reloading)) {
		hlog(LVL_ERROR, "[proxy] plugin %s was not registered", path);
		proxy_unload(p);
		return NULL;
	}
	p->plugin = guarded_new(sizeof *p->plugin);
	p->plugin->name = p->name;
	return p;
}

/* Go links its libraries with nodelete: dlclose leaves everything where it is, and the
 * plugin's globals and goroutines outlive a reload. */
void proxy_unload(struct proxy *p)
{
	int64_t start = now_us();

	if (p->unregister != NULL && p->name != NULL) {
		p->unregister(p->def);
		call_tell(p, CALL_UNREGISTER, start, NULL, -1, 0);
	}
	dlclose(p->dso);
	free(p->plugin);
	free(p->def);
	free(p->name);
	free(p->path);
	free(p);
}

const char *proxy_name(const struct proxy *p)
{
	return p->name;
}

int proxy_flags(const struct proxy *p)
{
	return p->flags;
}

bool proxy_takes_logs(const struct proxy *p)
{
	return p->event_type == 0 || (p->event_type & EVENT_LOGS) != 0;
}

/* ---- the config map of 5.1.1 -------------------------------------------------------- */

static const struct config_map *map_find(const struct config_map *m, const char *key)
{
	for (; m->name != NULL; m++) {
		size_t n = strlen(m->name);
		if (m->type == MAP_STR_PREFIX ? strncasecmp(key, m->name, n) == 0 && strlen(key) > n
					      : strcasecmp(key, m->name) == 0)
			return m;
	}
	return NULL;
}

static int times_set(const struct kv *props, const char *key)
{
	int n = 0;

	for (; props != NULL; props = props->next)
		n += strcasecmp(props->key, key) == 0;
	return n;
}

/* With a config map the core itself refuses unknown and repeated keys, before Init and in
 * a dry run as well. It does not look at the values. */
bool proxy_check_properties(const struct proxy *p, const struct kv *props)
{
	if (p->config_map == NULL)
		return true;
	for (const struct kv *kv = props; kv != NULL; kv = kv->next) {
		if (strcasecmp(kv->key, "active") == 0 || strcasecmp(kv->key, "condition") == 0)
			continue;
		const struct config_map *m = map_find(p->config_map, kv->key);
		if (m == NULL) {
			hlog(LVL_ERROR, "[config] %s: unknown configuration property '%s'",
			     p->name, kv->key);
			return false;
		}
		int n = times_set(props, kv->key);
		if (n > 1 && (m->flags & MAP_MULT) == 0) {
			hlog(LVL_ERROR, "[config] %s: configuration property '%s' is set %d times",
			     p->name, kv->key, n);
			return false;
		}
	}
	return true;
}

/* ---- calls on an instance ------------------------------------------------------------ */

void *proxy_context_new(struct proxy *p)
{
	struct context *ctx = xcalloc(1, sizeof *ctx);

	ctx->proxy = p;
	return ctx;
}

int proxy_init(struct proxy *p, struct output *o)
{
	p->plugin->api = &p->api;
	p->plugin->o_ins = o;
	p->plugin->context = o->context;

	int64_t start = now_us();
	atomic_store(&p->initialising, true);
	int ret = p->init(p->plugin);
	atomic_store(&p->initialising, false);
	call_tell(p, CALL_INIT, start, o, -1, ret);
	return ret;
}

/* The call carries no instance: with two of them the plugin sees it twice. */
void proxy_pre_run(struct proxy *p, struct output *o, bool hot_reload)
{
	int64_t start = now_us();

	if (p->pre_run != NULL) {
		int ret = p->pre_run(hot_reload);
		call_tell(p, CALL_PRE_RUN, start, o, hot_reload, ret);
	}
}

int proxy_flush(struct proxy *p, struct output *o, const void *data, size_t len, char *tag)
{
	struct context *ctx = o->context;
	int64_t start = now_us();
	int ret;

	if (p->flush_ctx != NULL) {
		ret = p->flush_ctx(ctx->remote, data, len, tag);
		call_note(CALL_FLUSH_CTX, start);
	} else {
		ret = p->flush(data, len, tag);
		call_note(CALL_FLUSH, start);
	}
	return ret;
}

/* remote is NULL when Init was never called or left it so: the host calls the exit hooks
 * all the same, in a dry run and after a refused configuration. */
void proxy_exit(struct proxy *p, struct output *o, bool by_reload)
{
	struct context *ctx = o->context;
	int64_t start = now_us();

	if (p->pre_exit != NULL) {
		p->pre_exit(by_reload);
		call_tell(p, CALL_PRE_EXIT, start, o, by_reload, 0);
	}
	start = now_us();
	if (p->exit_ctx != NULL) {
		int ret = p->exit_ctx(ctx->remote);
		call_tell(p, CALL_EXIT_CTX, start, o, -1, ret);
	} else if (p->exit_all != NULL) {
		int ret = p->exit_all();
		call_tell(p, CALL_EXIT, start, o, -1, ret);
	}
}

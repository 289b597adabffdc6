#ifndef CHOST_HOST_H
#define CHOST_HOST_H

/*
 * chost stands in for Fluent Bit in the tests: it loads the plugin the way Fluent
 * Bit 5.1.1 does and gives it the same threads, stacks, arguments and order of
 * calls. The README says what is imitated; "the host" below means Fluent Bit.
 *
 * Locking: host.mu guards everything that is not marked otherwise. It is never held
 * while the plugin runs. The locks inside log.c and event.c are leaves.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The executable is linked with -rdynamic so that fake_rdkafka.c is in the way of the
 * plugin's symbols. Our own functions must not be, so everything here is hidden. */
#pragma GCC visibility push(hidden)

enum { RES_ERROR = 0, RES_OK = 1, RES_RETRY = 2 };

enum { LVL_OFF, LVL_ERROR, LVL_WARN, LVL_INFO, LVL_DEBUG, LVL_TRACE };

/* Exit codes. START is what the host's -1 from main becomes. */
enum { EXIT_OK = 0, EXIT_CONFIG = 1, EXIT_USAGE = 2, EXIT_BROKEN = 3, EXIT_START = 255 };

enum { RETRY_UNLIMITED = -1, RETRY_NONE = 0 };

/* ---- util.c ------------------------------------------------------------------ */

int64_t now_us(void);                /* monotonic clock */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *trim(char *s);                 /* in place, blanks at both ends */
bool parse_bool(const char *s, bool *out);
bool parse_int(const char *s, int64_t *out);
bool parse_duration(const char *s, double *seconds);
uint64_t random_u64(void);
void random_seed(uint64_t seed);
bool make_dirs(const char *path);
void thread_name(const char *name);
const char *own_thread_name(char buf[16]);

struct buf {
	unsigned char *p;
	size_t len, cap;
};
void buf_add(struct buf *b, const void *data, size_t len);
void buf_byte(struct buf *b, unsigned char c);
void buf_free(struct buf *b);

/* ---- event.c: one JSON object a line ------------------------------------------- */

struct event {
	struct buf b;
	bool comma;
};
void ev_open(struct event *e, const char *name);
void ev_str(struct event *e, const char *key, const char *val);
void ev_int(struct event *e, const char *key, int64_t val);
void ev_real(struct event *e, const char *key, double val);
void ev_bool(struct event *e, const char *key, bool val);
void ev_list(struct event *e, const char *key);
void ev_list_end(struct event *e);
void ev_item(struct event *e);
void ev_item_end(struct event *e);
void ev_emit(struct event *e);

/* violation counts a breach of the host's contract that would not be noticed at once;
 * broken reports one that ruins memory, and ends the process. */
void violation(const char *what, const char *detail);
void broken(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- log.c ------------------------------------------------------------------- */

bool log_open(const char *file, int level);
void log_close(void);
void log_host_thread(void);          /* marks the calling thread as one of the host's */
int log_level_of(const char *name);  /* -1: no such level */
void hlog(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* log_print is the entry of the API table. */
void log_print(int level, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- config.c ---------------------------------------------------------------- */

struct kv {
	char *key;
	char *val;                   /* NULL: set, but empty after expansion */
	struct kv *next;
};

struct section {
	char *name;                  /* value of Name, expanded */
	int line;
	struct kv *props;            /* without Name, values as written */
	struct section *next;
};

struct service {
	double flush;
	int grace;
	int sched_base, sched_cap;
	char *storage_path;
	char *log_file;
	int log_level;
	int64_t coro_stack;
	bool hot_reload;
	bool thread_safety;          /* hot_reload.ensure_thread_safety */
	bool daemon;
};

struct conf {
	struct service svc;
	struct section *inputs, *outputs;
	char *input_tag;             /* default tag of the log commands */
	bool input_memory;           /* storage.type memory in the [INPUT] section */
};

struct conf *conf_load(const char *path);    /* NULL after a message */
void conf_free(struct conf *c);
char *env_expand(const char *value);
void kv_add(struct kv **list, const char *key, char *val);
void kv_free(struct kv *list);

/* ---- chunks ------------------------------------------------------------------ */

enum route_state { ROUTE_NEW, ROUTE_QUEUED, ROUTE_RUNNING, ROUTE_RETRY, ROUTE_DONE };

/* route is one chunk on its way to one output. It is in one queue at most. */
struct route {
	struct chunk *chunk;
	struct output *out;
	enum route_state state;
	int flushes;                 /* flush calls so far */
	int retries;                 /* retries granted so far; what retry_limit counts */
	int64_t due_us;              /* valid in ROUTE_RETRY */
	int result;
	struct route *next;
};

struct route_queue {
	struct route *head, *tail;
};
void queue_push(struct route_queue *q, struct route *r);
struct route *queue_pop(struct route_queue *q);

struct chunk {
	uint64_t id;
	char *tag;
	struct buf data;             /* fixed once sealed */
	uint64_t records;
	bool sealed;                 /* takes no more records */
	bool backlog;                /* taken up from the store of an earlier run */
	int users;                   /* routes that are not done */
	int n_routes;
	struct route *routes;        /* NULL until dispatched */
	char *path;                  /* NULL: in memory only */
	int fd;                      /* open while records may still be added, else -1 */
	struct chunk *prev, *next;
	struct chunk *next_open;
};

/* ---- store.c ----------------------------------------------------------------- */

bool store_create(struct chunk *c, const char *dir);
bool store_append(struct chunk *c, const void *data, size_t len, uint64_t records);
void store_seal(struct chunk *c);
void store_remove(struct chunk *c);
typedef void (*store_add_fn)(void *arg, struct chunk *c);
bool store_load(const char *dir, store_add_fn add, void *arg);

/* ---- msgpack.c --------------------------------------------------------------- */

struct field {
	char *key;
	char *text;
	bool quoted;                 /* a quoted value is always a string */
	struct field *next;
};
void mp_record(struct buf *b, uint64_t seq, size_t size, const struct field *fields);
uint64_t mp_count(const unsigned char *p, size_t len, bool *valid);

/* ---- coro.c ------------------------------------------------------------------ */

int coro_run(size_t stack_size, int (*fn)(void *), void *arg, size_t *used);

/* ---- proxy.c: the plugin --------------------------------------------------------- */

enum call {
	CALL_PRE_REGISTER, CALL_REGISTER, CALL_INIT, CALL_PRE_RUN, CALL_FLUSH_CTX,
	CALL_FLUSH, CALL_PRE_EXIT, CALL_EXIT_CTX, CALL_EXIT, CALL_UNREGISTER, CALL_COUNT
};

struct call_stat {
	uint64_t count;
	int64_t max_us;
};

enum compat { COMPAT_2_2, COMPAT_5_0, COMPAT_5_1_1 };
bool compat_parse(const char *s, enum compat *out);
int64_t compat_coro_stack(enum compat c);
const char *compat_exports(enum compat c);
bool exports_load(const char *list);

enum { FLAG_IO_TLS = 2, FLAG_NO_MULTIPLEX = 512, FLAG_SYNCHRONOUS = 2048 };

struct proxy;
struct proxy *proxy_load(const char *path, bool hot_reloading);
void proxy_unload(struct proxy *p);
const char *proxy_name(const struct proxy *p);
int proxy_flags(const struct proxy *p);
bool proxy_takes_logs(const struct proxy *p);
bool proxy_check_properties(const struct proxy *p, const struct kv *props);
void *proxy_context_new(struct proxy *p);
int proxy_init(struct proxy *p, struct output *o);
void proxy_pre_run(struct proxy *p, struct output *o, bool hot_reload);
int proxy_flush(struct proxy *p, struct output *o, const void *data, size_t len, char *tag);
void proxy_exit(struct proxy *p, struct output *o, bool by_reload);
const char *call_name(enum call c);

/* ---- output.c: the [OUTPUT] sections ----------------------------------------------- */

enum output_kind { OUT_PROXY, OUT_COUNT };   /* OUT_COUNT: null and counter */

/* stats of one output name; they outlive the instance, so that a reload does not reset
 * what a test adds up. */
struct stats {
	char *name;
	uint64_t ok_chunks, ok_records, retries, flushes;
	uint64_t dropped_chunks, dropped_records;
	int64_t flush_max_us;
	size_t stack_max;
	int64_t last_flush_us, gap_max_us;
	struct stats *next;
};

struct worker {
	pthread_t tid;
	pthread_cond_t wake;
	struct output *out;
	int number;
	bool stop;
	struct route_queue queue;
};

/* output is what the host calls an output instance. The plugin holds its address. After
 * its exit it stays as an empty shell, so that later use is noticed. */
struct output {
	uint32_t magic;
	int id;
	char *name;                  /* plugin.id */
	char *alias;
	enum output_kind kind;
	struct pipeline *pl;
	void *context;               /* proxy context; owned, NULL for OUT_COUNT */
	char *match;
	int retry_limit;
	int log_level;               /* -1 until the engine starts */
	int flags;
	struct kv *props;            /* what the plugin may read */
	int n_workers, next_worker;
	struct worker *workers;      /* NULL: flushes run on the engine thread */
	int running;
	bool single_busy;
	struct route_queue single;   /* waiting, with FLAG_SYNCHRONOUS */
	struct stats *stats;
	struct output *next;
	struct output *next_buried;
};

bool outputs_create(struct pipeline *pl);
bool outputs_check(struct pipeline *pl);
bool outputs_init(struct pipeline *pl);      /* engine thread */
void outputs_exit(struct pipeline *pl);      /* engine thread; main in a dry run */
const char *output_name(const struct output *o);
bool output_alive(const struct output *o);
bool output_matches(const struct output *o, const char *tag);
void output_start_route(struct route *r);    /* host.mu held */
void output_run(struct route *r);            /* host.mu not held */
const char *output_property(const struct output *o, const char *key);

/* ---- engine.c ---------------------------------------------------------------- */

enum pipeline_state { PL_NEW, PL_STARTING, PL_RUNNING, PL_FAILED, PL_ENDED };

/* pipeline is one context of the host: configuration, plugin registration, instances and
 * the engine thread. A reload makes a second one. */
struct pipeline {
	struct conf *conf;
	struct proxy *proxy;
	struct output *outputs;
	enum pipeline_state state;
	pthread_t tid;
	pthread_cond_t wake;
	bool stop_asked, flush_asked;
	bool by_reload;
	bool shutting_down, finished;
	int grace, grace_count;
	int64_t next_flush_us, next_tick_us;
	char *store_dir;
	struct chunk *first, *last;  /* all chunks, oldest first */
	struct chunk *open;          /* those of them that take records, one a tag */
	struct route_queue ready;    /* flushes for the engine thread itself */
	struct route_queue results;
};

struct pipeline *pipeline_create(struct conf *conf, struct proxy *proxy);
bool pipeline_start(struct pipeline *pl);
void pipeline_stop(struct pipeline *pl, bool by_reload);
void pipeline_unregister(struct pipeline *pl);
void pipeline_free(struct pipeline *pl);
void pipeline_abandon(struct pipeline *pl);  /* one that never started */
struct chunk *chunk_new(struct pipeline *pl, const char *tag);
void chunk_add(struct chunk *c, const void *data, size_t len, uint64_t records);
uint64_t pipeline_waiting(const struct pipeline *pl, uint64_t *records);

/* ---- input.c: where records come from ------------------------------------------------ */

struct rate {
	double per_second, seconds;
	char *tag;
	size_t size;
	struct field *fields;
	bool lossy;
	int64_t start_us, next_us, told_us;
	uint64_t done, missed;
	uint64_t untold, first;      /* records not yet told in an event, and their lowest number */
	struct rate *next;
};

void input_log(uint64_t n, const char *tag, size_t size, const struct field *fields, bool junk);
void input_chunk(const unsigned char *data, size_t len, const char *tag, int64_t records);
void input_rate(struct rate *r);
void input_quiet(void);
void fields_free(struct field *f);
int64_t input_tick(struct pipeline *pl, int64_t now);   /* when the next tick is due */

/* ---- commands.c -------------------------------------------------------------- */

void commands_start(int fd);
void report_state(struct event *e);          /* host.mu held */

/* ---- main.c ------------------------------------------------------------------ */

struct options {
	char *plugin, *config;       /* absolute paths */
	const char *script, *compat_name, *exports;
	enum compat compat;
	bool daemon, dry_run, hot_reload, no_thread_safety;
};

struct host {
	pthread_mutex_t mu;
	pthread_cond_t changed;      /* chunks came or went, or a pipeline changed */
	struct options opt;          /* set once before start */
	int events_fd;               /* set once before start */
	int64_t start_us;            /* set once before start */
	struct pipeline *pl;         /* NULL between two pipelines */
	uint64_t next_seq, next_chunk;
	uint64_t logged;
	int64_t engine_max_us;       /* the longest time one flush kept an engine thread */
	unsigned reloads, unprocessed;
	atomic_uint violations;
	struct stats *stats;
	struct call_stat calls[CALL_COUNT];
	struct rate *rates;
};
extern struct host host;

/* Requests to the main thread; they return at once. */
void host_stop(bool at_end);
void host_reload(void);
bool host_reloading(void);

#pragma GCC visibility pop

#endif

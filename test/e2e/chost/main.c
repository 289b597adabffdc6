/* The main thread: options, signals, and the life of the pipelines. As in the host it does
 * nothing else while it starts, reloads or stops one: it waits for the engine thread. */

#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct host host = { .mu = PTHREAD_MUTEX_INITIALIZER, .next_seq = 1, .next_chunk = 1 };

/* Requests reach the main thread as single bytes through a pipe, from signal handlers and
 * from the command thread. What comes while it is busy waits. */
enum { ASK_STOP = 's', ASK_END = 'e', ASK_TERM = 't', ASK_RELOAD = 'r' };

static int requests[2];
static atomic_bool reloading;

static void ask(char what)
{
	ssize_t n = write(requests[1], &what, 1);
	(void)n;                     /* a full pipe already holds what is to be done */
}

/* ---- signals -------------------------------------------------------------------- */

static void signals_install(void);

static void on_stop(int sig)
{
	(void)sig;
	int saved = errno;
	ask(ASK_TERM);
	errno = saved;
}

/* SIGHUP during a reload is ignored. The host installs all its handlers again here, so from
 * the first reload by signal on a nil dereference in Go code is no longer a Go panic. */
static void on_hup(int sig)
{
	static const char busy[] = "chost: SIGHUP ignored, a reload is under way\n";
	int saved = errno;

	(void)sig;
	signals_install();
	signal(SIGSEGV, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	if (!atomic_exchange(&reloading, true))
		ask(ASK_RELOAD);
	else if (write(STDERR_FILENO, busy, sizeof busy - 1) < 0)
		(void)0;
	errno = saved;
}

/* Before the plugin is loaded, as in the host: the Go runtime leaves handlers that it finds
 * alone. A crash gets no handler: it must show as one. */
static void signals_install(void)
{
	signal(SIGINT, on_stop);
	signal(SIGQUIT, on_stop);
	signal(SIGTERM, on_stop);
	signal(SIGHUP, on_hup);
}

/* ---- requests from the command thread ------------------------------------------------ */

void host_stop(bool at_end)
{
	ask(at_end ? ASK_END : ASK_STOP);
}

bool host_reloading(void)
{
	return atomic_load(&reloading);
}

static void tell_reload(const char *phase)
{
	struct event e;

	ev_open(&e, "reload");
	ev_str(&e, "phase", phase);
	ev_emit(&e);
}

void host_reload(void)
{
	if (atomic_exchange(&reloading, true))
		tell_reload("ignored");
	else
		ask(ASK_RELOAD);
}

/* ---- reload ---------------------------------------------------------------------- */

/* The order of the host: read the file, register the plugin for the new context, make the
 * instances and check their keys, and only then stop the old pipeline. A refused file leaves
 * the old one running, though with the grace that the reload has set, and its exits will speak
 * of a reload. */
static struct pipeline *reload_prepare(void)
{
	struct conf *conf = conf_load(host.opt.config);

	if (conf == NULL)
		return NULL;
	struct proxy *proxy = proxy_load(host.opt.plugin, true);
	if (proxy == NULL) {
		conf_free(conf);
		return NULL;
	}
	return pipeline_create(conf, proxy);
}

/* Returns how it ended; after failed, where the new pipeline did not start, the host ends. */
static const char *reload_pipeline(void)
{
	struct pipeline *old = host.pl;

	if (!old->conf->svc.hot_reload) {
		hlog(LVL_WARN, "[reload] hot_reload is off");
		return "refused";
	}
	tell_reload("begin");
	pthread_mutex_lock(&host.mu);
	old->by_reload = true;
	pthread_mutex_unlock(&host.mu);
	if (old->conf->svc.thread_safety) {
		pthread_mutex_lock(&host.mu);
		old->grace = -1;
		pthread_mutex_unlock(&host.mu);
	}
	struct pipeline *new = reload_prepare();
	if (new == NULL) {
		hlog(LVL_ERROR, "[reload] the new configuration was refused, going on with the old");
		return "refused";
	}
	hlog(LVL_INFO, "[reload] stopping the old pipeline");
	pipeline_stop(old, true);
	pipeline_unregister(old);
	pipeline_free(old);
	pthread_mutex_lock(&host.mu);
	host.reloads++;
	pthread_mutex_unlock(&host.mu);
	if (!pipeline_start(new))
		return "failed";
	hlog(LVL_INFO, "[reload] done");
	return "done";
}

/* false: the host ends. Whoever hears that one reload is over may ask for the next. */
static bool reload(void)
{
	const char *phase = reload_pipeline();

	pthread_mutex_lock(&host.mu);
	atomic_store(&reloading, false);
	pthread_cond_broadcast(&host.changed);
	pthread_mutex_unlock(&host.mu);
	tell_reload(phase);
	return strcmp(phase, "failed") != 0;
}

/* ---- running --------------------------------------------------------------------- */

static void tell_start(void)
{
	struct event e;

	ev_open(&e, "start");
	ev_int(&e, "pid", getpid());
	ev_str(&e, "plugin", host.opt.plugin);
	ev_str(&e, "config", host.opt.config);
	ev_str(&e, "compat", host.opt.compat_name);
	ev_emit(&e);
}

/* Here waiting_* tell what is left on disk for the next run. */
static int tell_exit(int code, const char *reason)
{
	struct event e;

	ev_open(&e, "exit");
	ev_int(&e, "code", code);
	ev_str(&e, "reason", reason);
	pthread_mutex_lock(&host.mu);
	report_state(&e);
	pthread_mutex_unlock(&host.mu);
	ev_emit(&e);
	return code;
}

static const char *stop_reason(char what)
{
	return what == ASK_TERM ? "signal" : what == ASK_END ? "end of commands" : "stop";
}

/* serve returns the reason to stop, or NULL when a reload has killed the pipeline. */
static const char *serve(void)
{
	char what;

	for (;;) {
		ssize_t n = read(requests[0], &what, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != 1)
			abort();
		if (what != ASK_RELOAD)
			return stop_reason(what);
		if (!reload())
			return NULL;
	}
}

/* The plugin is open by now, so its Go runtime has threads that the child lacks: the host
 * forks here too, and a plugin must notice. stdout and stderr are gone for the child;
 * events keep going where they went. */
static void daemonise(void)
{
	pid_t pid = fork();

	if (pid < 0) {
		perror("chost: fork");
		exit(EXIT_CONFIG);
	}
	if (pid > 0)
		exit(EXIT_OK);
	umask(0);
	setsid();
	if (chdir("/") != 0)
		exit(EXIT_CONFIG);
	host.events_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	close(null);
}

/* A dry run calls the exit hooks of instances that were never initialised, on the main
 * thread, as the host does. */
static int dry_run(struct pipeline *pl)
{
	pipeline_abandon(pl);
	fprintf(stderr, "chost: configuration test passed\n");
	return tell_exit(EXIT_OK, "dry run");
}

/* The report comes before the pipeline is freed: it tells which chunks are left on disk. */
static int finish(int code, const char *reason)
{
	struct pipeline *pl = host.pl;

	pipeline_unregister(pl);
	tell_exit(code, reason);
	pipeline_free(pl);
	return code;
}

static int run(struct pipeline *pl, int commands_fd)
{
	if (!pipeline_start(pl))
		return finish(EXIT_START, "start failed");
	commands_start(commands_fd);
	const char *reason = serve();
	if (reason == NULL)
		return finish(EXIT_START, "reload failed");
	pipeline_stop(host.pl, false);
	return finish(EXIT_OK, reason);
}

/* The plugin is loaded before the configuration is read, as -e is in the host. */
static int start(int commands_fd)
{
	tell_start();
	if (!exports_load(host.opt.exports))
		return tell_exit(EXIT_CONFIG, "exports not loaded");
	struct proxy *proxy = proxy_load(host.opt.plugin, false);
	if (proxy == NULL)
		return tell_exit(EXIT_CONFIG, "plugin not loaded");
	struct conf *conf = conf_load(host.opt.config);
	if (conf == NULL) {
		proxy_unload(proxy);
		return tell_exit(EXIT_CONFIG, "configuration refused");
	}
	struct pipeline *pl = pipeline_create(conf, proxy);
	if (pl == NULL)
		return tell_exit(EXIT_CONFIG, "configuration refused");
	if (conf->svc.daemon) {
		daemonise();
		tell_start();
	}
	return host.opt.dry_run ? dry_run(pl) : run(pl, commands_fd);
}

/* ---- options --------------------------------------------------------------------- */

static const char usage_text[] =
	"usage: chost -e PLUGIN.so -c FILE.conf [options] < commands\n"
	"  -e FILE          the plugin\n"
	"  -c FILE          configuration, classic format\n"
	"  --script FILE    read commands from FILE instead of stdin\n"
	"  --compat VER     structs, stack and exports as of 2.2, 5.0 or 5.1.1 (default)\n"
	"  --exports LIST   other exports: of pipeline,ingress,telemetry\n"
	"  --seed N         makes retry times repeatable\n"
	"  --dry-run        check the configuration, call the exit hooks, end\n"
	"  -d               daemon: fork after the plugin was opened\n"
	"  -Y               hot_reload on\n"
	"  -W               hot_reload.ensure_thread_safety off\n"
	"  -h               this text\n";

static void usage(const char *what, const char *detail) __attribute__((noreturn));

static void usage(const char *what, const char *detail)
{
	fprintf(stderr, "chost: %s%s%s\n%s", what, detail != NULL ? ": " : "",
		detail != NULL ? detail : "", usage_text);
	exit(EXIT_USAGE);
}

/* Absolute, because a daemon changes its directory and a reload reads both again. */
static char *file_path(const char *path)
{
	char *p = realpath(path, NULL);

	if (p == NULL) {
		fprintf(stderr, "chost: %s: %s\n", path, strerror(errno));
		exit(EXIT_USAGE);
	}
	return p;
}

static uint64_t seed_value(const char *s)
{
	int64_t v;

	if (!parse_int(s, &v) || v < 1)
		usage("--seed wants a number from 1", s);
	return (uint64_t)v;
}

static const struct option long_options[] = {
	{ "script", required_argument, NULL, 's' },
	{ "compat", required_argument, NULL, 'v' },
	{ "exports", required_argument, NULL, 'x' },
	{ "seed", required_argument, NULL, 'r' },
	{ "dry-run", no_argument, NULL, 'D' },
	{ "daemon", no_argument, NULL, 'd' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void options(int argc, char **argv)
{
	struct options *o = &host.opt;
	const char *plugin = NULL, *config = NULL;
	uint64_t seed = 0;
	int c;

	*o = (struct options){ .compat = COMPAT_5_1_1, .compat_name = "5.1.1" };
	while ((c = getopt_long(argc, argv, "e:c:dYWh", long_options, NULL)) != -1) {
		switch (c) {
		case 'e': plugin = optarg; break;
		case 'c': config = optarg; break;
		case 's': o->script = optarg; break;
		case 'x': o->exports = optarg; break;
		case 'r': seed = seed_value(optarg); break;
		case 'D': o->dry_run = true; break;
		case 'd': o->daemon = true; break;
		case 'Y': o->hot_reload = true; break;
		case 'W': o->no_thread_safety = true; break;
		case 'v':
			if (!compat_parse(optarg, &o->compat))
				usage("--compat knows 2.2, 5.0 and 5.1.1", optarg);
			o->compat_name = optarg;
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(EXIT_OK);
		default:
			usage("wrong option", NULL);
		}
	}
	if (optind < argc)
		usage("not understood", argv[optind]);
	if (plugin == NULL || config == NULL)
		usage("-e and -c are needed", NULL);
	if (o->exports == NULL)
		o->exports = compat_exports(o->compat);
	o->plugin = file_path(plugin);
	o->config = file_path(config);
	random_seed(seed);
}

static int commands_open(void)
{
	if (host.opt.script == NULL)
		return STDIN_FILENO;
	int fd = open(host.opt.script, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "chost: %s: %s\n", host.opt.script, strerror(errno));
		exit(EXIT_USAGE);
	}
	return fd;
}

static void host_init(void)
{
	pthread_condattr_t attr;

	host.start_us = now_us();
	host.events_fd = STDOUT_FILENO;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&host.changed, &attr);
	pthread_condattr_destroy(&attr);
	if (pipe2(requests, O_CLOEXEC) != 0) {
		perror("chost: pipe");
		exit(EXIT_CONFIG);
	}
	signal(SIGPIPE, SIG_IGN);    /* as the host does, before the plugin comes */
	signals_install();
}

int main(int argc, char **argv)
{
	options(argc, argv);
	int commands_fd = commands_open();
	host_init();
	int code = start(commands_fd);
	free(host.opt.plugin);
	free(host.opt.config);
	return code;
}

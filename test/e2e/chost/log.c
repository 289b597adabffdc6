/* Log lines in the host's shape, `[date time] [level] text`. */

#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* The host keeps a message in 4096 bytes less a size field and cuts the rest. */
enum { LINE_MAX_BYTES = 4096 - sizeof(size_t) };

static pthread_mutex_t log_mu = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;                      /* guarded by log_mu */
static atomic_int service_level = LVL_INFO;

/* The host routes a line through the worker that it finds in thread-local storage. Only
 * its engine and output threads have one; on any other thread, a goroutine's as well as
 * the main thread, the line goes to stderr even when log_file is set. */
static _Thread_local bool host_thread;

void log_host_thread(void)
{
	host_thread = true;
}

bool log_open(const char *file, int level)
{
	int fd = -1;

	if (file != NULL) {
		fd = open(file, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
		if (fd < 0)
			fprintf(stderr, "chost: log_file %s: %s; using stderr\n",
				file, strerror(errno));
	}
	pthread_mutex_lock(&log_mu);
	log_fd = fd;
	pthread_mutex_unlock(&log_mu);
	atomic_store(&service_level, level);
	return file == NULL || fd >= 0;
}

void log_close(void)
{
	pthread_mutex_lock(&log_mu);
	if (log_fd >= 0)
		close(log_fd);
	log_fd = -1;
	pthread_mutex_unlock(&log_mu);
}

static const char *const level_names[] = { "off", "error", "warn", "info", "debug", "trace" };

int log_level_of(const char *name)
{
	if (strcasecmp(name, "warning") == 0)
		return LVL_WARN;
	for (int i = LVL_OFF; i <= LVL_TRACE; i++) {
		if (strcasecmp(name, level_names[i]) == 0)
			return i;
	}
	return -1;
}

static const char *level_title(int level)
{
	return level >= LVL_ERROR && level <= LVL_TRACE ? level_names[level] : "?";
}

static int line_head(char *line, size_t size, int level)
{
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	return snprintf(line, size, "[%d/%02d/%02d %02d:%02d:%02d.%03ld] [%5s] ",
			tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
			tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000000, level_title(level));
}

static void write_line(const char *line, size_t len)
{
	pthread_mutex_lock(&log_mu);
	int fd = host_thread && log_fd >= 0 ? log_fd : STDERR_FILENO;
	/* A log line that cannot be written has nobody to be reported to. */
	ssize_t n = write(fd, line, len);
	(void)n;
	pthread_mutex_unlock(&log_mu);
}

static void print_va(int level, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	size_t head = (size_t)line_head(line, sizeof line, level);
	size_t room = sizeof line - head - 2;
	int n = vsnprintf(line + head, room, fmt, ap);

	if (n < 0)
		return;
	size_t len = head + ((size_t)n < room ? (size_t)n : room - 1);
	line[len++] = '\n';
	write_line(line, len);
}

/* hlog is for the host's own lines: they obey the service's log_level. */
void hlog(int level, const char *fmt, ...)
{
	va_list ap;

	if (level > atomic_load(&service_level))
		return;
	va_start(ap, fmt);
	print_va(level, fmt, ap);
	va_end(ap);
}

/* As in the host, no level is looked at here: the plugin asks output_log_check first. */
void log_print(int level, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	(void)file;
	(void)line;
	va_start(ap, fmt);
	print_va(level, fmt, ap);
	va_end(ap);
}

#include "host.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void *checked(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "chost: out of memory\n");
		abort();
	}
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n, size));
}

void *xrealloc(void *p, size_t size)
{
	return checked(realloc(p, size));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return checked(n < 0 ? NULL : s);
}

char *trim(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	size_t n = strlen(s);
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		s[--n] = '\0';
	return s;
}

bool parse_bool(const char *s, bool *out)
{
	static const char *const on[] = { "on", "true", "yes" };
	static const char *const off[] = { "off", "false", "no" };

	for (int i = 0; i < 3; i++) {
		if (strcasecmp(s, on[i]) == 0 || strcasecmp(s, off[i]) == 0) {
			*out = strcasecmp(s, on[i]) == 0;
			return true;
		}
	}
	return false;
}

bool parse_int(const char *s, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(s, &end, 10);
	return errno == 0 && end != s && *end == '\0';
}

/* A number with ms, s or m; a bare number is seconds. */
bool parse_duration(const char *s, double *seconds)
{
	char *end;

	errno = 0;
	double v = strtod(s, &end);
	/* The comparisons leave out NaN as well. */
	if (errno != 0 || end == s || !(v >= 0 && v < 1e9))
		return false;
	if (strcmp(end, "ms") == 0)
		v /= 1000;
	else if (strcmp(end, "m") == 0)
		v *= 60;
	else if (strcmp(end, "s") != 0 && *end != '\0')
		return false;
	*seconds = v;
	return true;
}

/* xorshift64*, so that --seed gives the same retry times again. Guarded by host.mu. */
static uint64_t random_state;

void random_seed(uint64_t seed)
{
	while (seed == 0) {
		if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
			seed = (uint64_t)now_us();
	}
	random_state = seed;
}

uint64_t random_u64(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL;
}

bool make_dirs(const char *path)
{
	char *p = xstrdup(path);
	bool ok = true;

	for (char *s = p + 1; ok && *s != '\0'; s++) {
		if (*s != '/')
			continue;
		*s = '\0';
		ok = mkdir(p, 0755) == 0 || errno == EEXIST;
		*s = '/';
	}
	ok = ok && (mkdir(p, 0755) == 0 || errno == EEXIST);
	free(p);
	return ok;
}

/* The host names its threads by prctl, which cuts the name at 15 characters in silence;
 * pthread_setname_np would refuse the long worker names instead. */
void thread_name(const char *name)
{
	prctl(PR_SET_NAME, name, 0, 0, 0);
}

const char *own_thread_name(char buf[16])
{
	memset(buf, 0, 16);
	prctl(PR_GET_NAME, buf, 0, 0, 0);
	return buf;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	if (b->cap - b->len < len) {
		while (b->cap - b->len < len)
			b->cap = b->cap == 0 ? 256 : b->cap * 2;
		b->p = xrealloc(b->p, b->cap);
	}
	if (len > 0)
		memcpy(b->p + b->len, data, len);
	b->len += len;
}

void buf_byte(struct buf *b, unsigned char c)
{
	buf_add(b, &c, 1);
}

void buf_free(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ 0 };
}

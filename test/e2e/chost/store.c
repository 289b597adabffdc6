/* The chunk store on disk: one file a chunk, removed when every output is done with it,
 * taken up again by the next pipeline or process. The host maps its chunk files, so what
 * was added survives kill -9; plain writes give the same. */

#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "chostck1";

/* header lies in front of tag and data. It is written after the data that it counts: a
 * torn append is not seen. The file is read on the machine that wrote it. */
struct header {
	char magic[8];
	uint64_t data_len;
	uint64_t records;
	uint64_t tag_len;
};

static bool write_at(int fd, const void *data, size_t len, off_t off)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
		off += n;
	}
	return true;
}

static bool write_header(const struct chunk *c, uint64_t data_len, uint64_t records)
{
	struct header h = { .data_len = data_len, .records = records, .tag_len = strlen(c->tag) };

	memcpy(h.magic, magic, sizeof magic);
	return write_at(c->fd, &h, sizeof h, 0);
}

bool store_create(struct chunk *c, const char *dir)
{
	c->path = xprintf("%s/%020llu.chunk", dir, (unsigned long long)c->id);
	c->fd = open(c->path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
	return c->fd >= 0 && write_header(c, 0, 0) &&
	       write_at(c->fd, c->tag, strlen(c->tag), sizeof(struct header));
}

bool store_append(struct chunk *c, const void *data, size_t len, uint64_t records)
{
	off_t off = (off_t)(sizeof(struct header) + strlen(c->tag) + c->data.len);

	return write_at(c->fd, data, len, off) &&
	       write_header(c, c->data.len + len, c->records + records);
}

/* A long outage makes many chunks: the descriptor goes as soon as nothing is added. */
void store_seal(struct chunk *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

void store_remove(struct chunk *c)
{
	store_seal(c);
	if (c->path != NULL)
		unlink(c->path);
}

static bool read_all(int fd, void *data, size_t len)
{
	char *p = data;

	while (len > 0) {
		ssize_t n = read(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool header_fits(const struct header *h, uint64_t size)
{
	return memcmp(h->magic, magic, sizeof magic) == 0 && h->tag_len < size &&
	       h->data_len <= size - h->tag_len;
}

static bool read_chunk(int fd, struct chunk *c)
{
	struct header h;
	struct stat st;

	if (fstat(fd, &st) != 0 || !read_all(fd, &h, sizeof h))
		return false;
	if (!header_fits(&h, (uint64_t)st.st_size - sizeof h) || h.data_len == 0)
		return false;
	c->tag = xcalloc(1, h.tag_len + 1);
	c->data.p = xcalloc(1, h.data_len);
	c->data.len = c->data.cap = h.data_len;
	c->records = h.records;
	return read_all(fd, c->tag, h.tag_len) && read_all(fd, c->data.p, h.data_len);
}

static struct chunk *load_file(const char *dir, const char *name)
{
	struct chunk *c = xcalloc(1, sizeof *c);

	c->path = xprintf("%s/%s", dir, name);
	c->id = strtoull(name, NULL, 10);
	c->fd = -1;
	c->sealed = c->backlog = true;
	int fd = open(c->path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && read_chunk(fd, c);
	if (fd >= 0)
		close(fd);
	if (ok)
		return c;
	hlog(LVL_WARN, "[storage] %s holds no record, removed", c->path);
	unlink(c->path);
	free(c->path);
	free(c->tag);
	buf_free(&c->data);
	free(c);
	return NULL;
}

static int is_chunk(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 6 && strcmp(d->d_name + n - 6, ".chunk") == 0;
}

/* Names carry the chunk number with leading zeros, so their order is that of age. */
bool store_load(const char *dir, store_add_fn add, void *arg)
{
	struct dirent **names;

	if (!make_dirs(dir))
		return false;
	int n = scandir(dir, &names, is_chunk, alphasort);
	if (n < 0)
		return false;
	for (int i = 0; i < n; i++) {
		struct chunk *c = load_file(dir, names[i]->d_name);
		if (c != NULL)
			add(arg, c);
		free(names[i]);
	}
	free(names);
	return true;
}

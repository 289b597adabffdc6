/*
 * Memory for the chunks. A large block is a mapping of its own: what goes through malloc may
 * stay in the arenas, which are the host's too and not ours to trim, whereas a mapping is gone
 * when it is given back. Fresh pages cost as much as the copy into them, so a few blocks are
 * kept for the next chunks as long as some come.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "internal.h"

enum {
	MAPPED_FROM = 128 << 10, /* bytes; below it malloc gives its pages back well enough */
	STEP = 256 << 10,        /* sizes are rounded up to it, so that blocks fit again */
	SPARE_MAX = 16 << 20,    /* bytes that are kept */
	SPARE_FOR = 2000,        /* ms after the last chunk */
};

static void unmap_all(okr_block *b)
{
	while (b) {
		okr_block *next = b->next;

		munmap(b, b->mapped);
		b = next;
	}
}

/* take_spare takes the smallest kept block of that size at least. */
static okr_block *take_spare(okr_client *c, size_t size)
{
	okr_block **best = NULL;
	okr_block *b = NULL;

	pthread_mutex_lock(&c->spare_mu);
	c->spare_used = okr_now_ms();
	for (okr_block **at = &c->spare; *at; at = &(*at)->next) {
		if ((*at)->mapped >= size && (!best || (*at)->mapped < (*best)->mapped))
			best = at;
	}
	if (best) {
		b = *best;
		*best = b->next;
		c->spare_size -= b->mapped;
	}
	pthread_mutex_unlock(&c->spare_mu);
	return b;
}

/* okr_block_new returns at least size bytes, or NULL; their content is anything. */
void *okr_block_new(okr_client *c, size_t size)
{
	okr_block *b;

	size += sizeof(*b);
	if (size < MAPPED_FROM) {
		b = malloc(size);
		if (!b)
			return NULL;
		b->mapped = 0;
		return b + 1;
	}
	size = (size + STEP - 1) / STEP * STEP;
	b = take_spare(c, size);
	if (!b) {
		b = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b == MAP_FAILED)
			return NULL;
		b->mapped = size;
	}
	return b + 1;
}

void okr_block_free(okr_client *c, void *block)
{
	okr_block *b = (okr_block *)block - 1;
	bool keep;

	if (!b->mapped) {
		free(b);
		return;
	}
	pthread_mutex_lock(&c->spare_mu);
	keep = c->spare_size + b->mapped <= SPARE_MAX;
	if (keep) {
		b->next = c->spare;
		c->spare = b;
		c->spare_size += b->mapped;
	}
	pthread_mutex_unlock(&c->spare_mu);
	if (!keep)
		munmap(b, b->mapped);
}

/* okr_blocks_trim gives back what is kept when no chunk has come for a while, or at once. */
void okr_blocks_trim(okr_client *c, bool now)
{
	okr_block *b = NULL;

	pthread_mutex_lock(&c->spare_mu);
	if (c->spare && (now || okr_now_ms() - c->spare_used >= SPARE_FOR)) {
		b = c->spare;
		c->spare = NULL;
		c->spare_size = 0;
	}
	pthread_mutex_unlock(&c->spare_mu);
	unmap_all(b);
}

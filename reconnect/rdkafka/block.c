/*
 * Memory for the chunks of all clients. A large block is a mapping of its own: what goes through
 * malloc may stay in the arenas, which are the host's too and not ours to trim, whereas a mapping
 * is gone when it is given back. Fresh pages cost as much as what is written into them, so a few
 * blocks are kept for the next chunks as long as some of their size come and there is a client.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "internal.h"

enum {
	MAPPED_FROM = 128 << 10, /* bytes; below it malloc gives its pages back well enough */
	STEP = 256 << 10,        /* sizes are rounded up to it, so that blocks fit again */
	SPARE_MAX = 16 << 20,    /* bytes that are kept */
	SPARE_FOR = 2000,        /* ms after one was last of use */
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;   /* guards what follows */
static okr_block *spare;
static int64_t spare_used;   /* ms; when one was last taken or put there */
static int clients;

static void unmap_all(okr_block *b)
{
	while (b) {
		okr_block *next = b->next;

		munmap(b, b->mapped);
		b = next;
	}
}

/* take_spare takes the smallest kept block of that size at least. One of more than twice the size is not taken: a
 * chunk may hold it through an outage, and only its messages are counted. */
static okr_block *take_spare(size_t size)
{
	okr_block **best = NULL;
	okr_block *b = NULL;

	pthread_mutex_lock(&mu);
	for (okr_block **at = &spare; *at; at = &(*at)->next) {
		if ((*at)->mapped >= size && (*at)->mapped <= 2 * size && (!best || (*at)->mapped < (*best)->mapped))
			best = at;
	}
	if (best) {
		b = *best;
		*best = b->next;
		spare_used = okr_now_ms();
	}
	pthread_mutex_unlock(&mu);
	return b;
}

void *okr_block_new(size_t size)
{
	okr_block *b;

	size += sizeof(*b);
	if (size < MAPPED_FROM) {
		b = malloc(size);
		if (!b)
			return NULL;
		b->mapped = 0;
		b->size = size - sizeof(*b);
		return b + 1;
	}
	size = (size + STEP - 1) / STEP * STEP;
	b = take_spare(size);
	if (!b) {
		b = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b == MAP_FAILED)
			return NULL;
		b->mapped = size;
		b->size = size - sizeof(*b);
	}
	return b + 1;
}

/* cut_spare takes what has been kept longest, so that no more than most bytes are left; mu is held. */
static okr_block *cut_spare(size_t most)
{
	okr_block **at = &spare;
	okr_block *rest;

	while (*at && (*at)->mapped <= most) {
		most -= (*at)->mapped;
		at = &(*at)->next;
	}
	rest = *at;
	*at = NULL;
	return rest;
}

void okr_block_free(void *block)
{
	okr_block *b = (okr_block *)block - 1;
	okr_block *rest;

	if (!b->mapped) {
		free(b);
		return;
	}
	pthread_mutex_lock(&mu);
	b->next = spare;
	spare = b;
	spare_used = okr_now_ms();
	rest = cut_spare(clients > 0 ? SPARE_MAX : 0);
	pthread_mutex_unlock(&mu);
	unmap_all(rest);
}

size_t okr_block_size(const void *block)
{
	const okr_block *b = (const okr_block *)block - 1;

	return b->size;
}

/* okr_blocks_trim gives back what is kept when none of it was of use for a while. */
void okr_blocks_trim(void)
{
	okr_block *all = NULL;

	pthread_mutex_lock(&mu);
	if (spare && okr_now_ms() - spare_used >= SPARE_FOR)
		all = cut_spare(0);
	pthread_mutex_unlock(&mu);
	unmap_all(all);
}

/* okr_blocks_client counts the clients; when there is none, nobody would trim. */
void okr_blocks_client(int change)
{
	okr_block *all = NULL;

	pthread_mutex_lock(&mu);
	clients += change;
	if (clients == 0)
		all = cut_spare(0);
	pthread_mutex_unlock(&mu);
	unmap_all(all);
}

/* Flushes run on a coroutine stack of coro_stack_size bytes, as in the host. A Go plugin
 * never yields, so a coroutine that is made, run to its end and thrown away within one
 * call is all that is needed. Unlike the host's heap stack it has a guard page below: a
 * flush that needs more crashes here instead of writing into its neighbours. */

#include "host.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif

enum { PAINT = 0xc5 };

struct coro {
	ucontext_t caller, self;
	unsigned char *stack;
	size_t size;
	int (*fn)(void *);
	void *arg;
	int result;
	void *fake_stack;            /* of the caller; AddressSanitizer only */
	const void *caller_bottom;
	size_t caller_size;
	void *caller_fiber, *fiber;  /* ThreadSanitizer only */
};

/* makecontext passes ints only, so the new stack finds its coroutine here. */
static _Thread_local struct coro *starting;

static void switch_away(struct coro *c, bool to_self)
{
#if defined(__SANITIZE_ADDRESS__)
	if (to_self)
		__sanitizer_start_switch_fiber(&c->fake_stack, c->stack, c->size);
	else    /* NULL: the frames of the coroutine are not needed again */
		__sanitizer_start_switch_fiber(NULL, c->caller_bottom, c->caller_size);
#elif defined(__SANITIZE_THREAD__)
	__tsan_switch_to_fiber(to_self ? c->fiber : c->caller_fiber, 0);
#else
	(void)c;
	(void)to_self;
#endif
}

static void switched(struct coro *c, bool in_self)
{
#if defined(__SANITIZE_ADDRESS__)
	if (in_self)
		__sanitizer_finish_switch_fiber(NULL, &c->caller_bottom, &c->caller_size);
	else
		__sanitizer_finish_switch_fiber(c->fake_stack, NULL, NULL);
#else
	(void)c;
	(void)in_self;
#endif
}

static void enter(void)
{
	struct coro *c = starting;

	switched(c, true);
	c->result = c->fn(c->arg);
	switch_away(c, false);
	swapcontext(&c->self, &c->caller);
	abort();                     /* a finished coroutine is never resumed */
}

static void stack_make(struct coro *c, unsigned char **map, size_t *map_size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*map_size = page + (c->size + page - 1) / page * page;
	*map = mmap(NULL, *map_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (*map == MAP_FAILED) {
		fprintf(stderr, "chost: no memory for a coroutine stack\n");
		abort();
	}
	mprotect(*map, page, PROT_NONE);
	c->stack = *map + page;
	memset(c->stack, PAINT, c->size);
}

static size_t stack_used(const struct coro *c)
{
	size_t untouched = 0;

	while (untouched < c->size && c->stack[untouched] == PAINT)
		untouched++;
	return c->size - untouched;
}

int coro_run(size_t stack_size, int (*fn)(void *), void *arg, size_t *used)
{
	struct coro c = { .size = stack_size & ~(size_t)15, .fn = fn, .arg = arg };
	unsigned char *map;
	size_t map_size;

	stack_make(&c, &map, &map_size);
#if defined(__SANITIZE_THREAD__)
	c.caller_fiber = __tsan_get_current_fiber();
	c.fiber = __tsan_create_fiber(0);
#endif
#if defined(VALGRIND_STACK_REGISTER)
	unsigned id = VALGRIND_STACK_REGISTER(c.stack, c.stack + c.size);
#endif
	getcontext(&c.self);
	c.self.uc_stack.ss_sp = c.stack;
	c.self.uc_stack.ss_size = c.size;
	c.self.uc_link = NULL;
	makecontext(&c.self, enter, 0);

	starting = &c;
	switch_away(&c, true);
	swapcontext(&c.caller, &c.self);
	switched(&c, false);

#if defined(VALGRIND_STACK_REGISTER)
	VALGRIND_STACK_DEREGISTER(id);
	VALGRIND_MAKE_MEM_DEFINED(c.stack, c.size);  /* stack_used reads it below the pointer */
#endif
#if defined(__SANITIZE_THREAD__)
	__tsan_destroy_fiber(c.fiber);
#endif
#if defined(__SANITIZE_ADDRESS__)
	/* The abandoned frames left their red zones in the shadow of memory that the next
	 * stack or thread may get. */
	__asan_unpoison_memory_region(c.stack, c.size);
#endif
	*used = stack_used(&c);
	munmap(map, map_size);
	return c.result;
}

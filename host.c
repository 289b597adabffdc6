#define _GNU_SOURCE /* dl_iterate_phdr */

#include "host.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "_cgo_export.h"

/* The process that opened the library. In daemon mode Fluent Bit forks after that, and in the
 * child Go's runtime has lost its threads: a call into Go may hang. So the two functions that
 * Fluent Bit calls there are C, and go no further. */
static pid_t loaded_by;

__attribute__((constructor)) static void note_process(void)
{
	loaded_by = getpid();
}

__attribute__((visibility("default"))) int FLBPluginInit(void *plugin)
{
	if (getpid() == loaded_by)
		return okr_init(plugin);
	((okr_host_plugin *)plugin)->api->log_print(OKR_LOG_ERROR, "", 0, "%s",
		"[output:kafka_reconnect] daemon mode is not possible with a Go plugin: Fluent Bit forks after loading it; "
		"run it in the foreground under a service manager instead");
	return 0;
}

__attribute__((visibility("default"))) void FLBPluginUnregister(void *def)
{
	if (getpid() == loaded_by)
		okr_unregister(def);
}

static void close_parked(void)
{
	if (getpid() == loaded_by)
		okr_close_parked();
}

/* Not a destructor: those run when OpenSSL has ended itself, by a handler of this kind. The
 * last one registered is the first to run, and ours is registered with clients at work. */
int okr_host_close_at_exit(void)
{
	return atexit(close_parked);
}

/* trim_library handles one loaded object: ours are the two that have this in their name. */
static int trim_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (!strstr(info->dlpi_name, "kafka_reconnect.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t page = (uintptr_t)getpagesize() - 1;
		uintptr_t from = (info->dlpi_addr + p->p_vaddr) & ~page;
		uintptr_t to = (info->dlpi_addr + p->p_vaddr + p->p_memsz + page) & ~page;

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}

/* Loading and starting touches nearly all of the 25 MB, in steps of 64 KB or more, most of it never again.
 * What is used comes back by itself from the page cache. Nobody has written to these segments,
 * so nothing is lost: those with relocations are writable ones. */
void okr_host_trim(void)
{
	dl_iterate_phdr(trim_library, NULL);
}

void okr_host_set_context(void *plugin, uintptr_t context)
{
	((okr_host_plugin *)plugin)->context->remote_context = (void *)context;
}

int okr_host_log_check(okr_host_api *api, struct flb_output_instance *instance, int level)
{
	return api->output_log_check(instance, level);
}

void okr_host_log(okr_host_api *api, int level, const char *line)
{
	api->log_print(level, "", 0, "%s", line);
}

int okr_on_worker(void)
{
	char name[17] = "";

	/* Fluent Bit calls the workers of an output flb-out-NAME; without workers the flush
	 * runs on the engine's own thread, which serves every input and output. */
	prctl(PR_GET_NAME, name);
	return !strncmp(name, "flb-out-", 8);
}

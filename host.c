#include "host.h"

#include <string.h>
#include <sys/prctl.h>

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

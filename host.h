/*
 * What Fluent Bit hands to a Go plugin, as far as we use it: the layouts of its plugin
 * structures since 2.0. fluent-bit-go declares the first member of the table only.
 */
#ifndef OKR_HOST_H
#define OKR_HOST_H

#include <stdint.h>

struct flb_output_instance;

typedef struct {
	const char *(*output_get_property)(const char *, struct flb_output_instance *);
	const char *(*input_get_property)(const char *, void *);
	void *(*output_get_cmt_instance)(struct flb_output_instance *);
	void *(*input_get_cmt_instance)(void *);
	void (*log_print)(int level, const char *file, int line, const char *fmt, ...);
	int (*input_log_check)(void *, int level);
	int (*output_log_check)(struct flb_output_instance *, int level);
} okr_host_api;

typedef struct {
	void *unused;
	okr_host_api *api;
	struct flb_output_instance *instance;
	struct {
		void *remote_context;
	} *context;
} okr_host_plugin;

/* The numbers of Fluent Bit's levels. */
enum { OKR_LOG_ERROR = 1, OKR_LOG_WARN, OKR_LOG_INFO, OKR_LOG_DEBUG, OKR_LOG_TRACE };

void okr_host_set_context(void *plugin, uintptr_t context);
int okr_host_log_check(okr_host_api *api, struct flb_output_instance *instance, int level);
void okr_host_log(okr_host_api *api, int level, const char *line);
/* okr_host_close_at_exit has okr_close_parked called at the end of the process; 0 if it will be. */
int okr_host_close_at_exit(void);
/* okr_host_trim unmaps the pages of the two libraries that can be read again from their files. */
void okr_host_trim(void);
/* okr_on_worker is 1 on a thread that Fluent Bit made for an output with workers. */
int okr_on_worker(void);

#endif

/* One of the functions by which a plugin can tell that it is in 5.0 or later. */

int flb_log_pipeline_enable(void *config);
int flb_log_pipeline_enable(void *config)
{
	(void)config;
	__builtin_trap();            /* it is there to be seen, not to be called */
}

/* The host's own librdkafka, as the plugin must never meet it. Fluent Bit links 2.15.0
 * into its executable and exports it, and an executable comes first in symbol look-up.
 * The plugin brings its own library; if its calls were captured, they would end here:
 * the harmless ones answer nonsense that a version check notices, the others stop the
 * process. host.h is left out on purpose, these symbols must be visible. */

#include <stdio.h>
#include <stdlib.h>

static void captured(const char *name)
{
	fprintf(stderr, "chost: the plugin called the host's %s: its private librdkafka is "
			"not isolated\n", name);
	abort();
}

int rd_kafka_version(void)
{
	return 0x7e57ffff;
}

const char *rd_kafka_version_str(void)
{
	return "chost-fake-librdkafka";
}

#define CAPTURED(name) \
	void *name(void); \
	void *name(void) \
	{ \
		captured(#name); \
		return NULL; \
	}

CAPTURED(rd_kafka_new)
CAPTURED(rd_kafka_destroy)
CAPTURED(rd_kafka_destroy_flags)
CAPTURED(rd_kafka_conf_new)
CAPTURED(rd_kafka_conf_set)
CAPTURED(rd_kafka_conf_dup)
CAPTURED(rd_kafka_conf_destroy)
CAPTURED(rd_kafka_conf_set_dr_msg_cb)
CAPTURED(rd_kafka_conf_set_error_cb)
CAPTURED(rd_kafka_conf_set_log_cb)
CAPTURED(rd_kafka_conf_interceptor_add_on_new)
CAPTURED(rd_kafka_topic_new)
CAPTURED(rd_kafka_topic_destroy)
CAPTURED(rd_kafka_produce)
CAPTURED(rd_kafka_produce_batch)
CAPTURED(rd_kafka_producev)
CAPTURED(rd_kafka_poll)
CAPTURED(rd_kafka_flush)
CAPTURED(rd_kafka_purge)
CAPTURED(rd_kafka_outq_len)
CAPTURED(rd_kafka_metadata)
CAPTURED(rd_kafka_last_error)
CAPTURED(rd_kafka_err2str)
CAPTURED(rd_kafka_sasl_set_credentials)

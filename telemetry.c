#include "telemetry.h"

/* struct flb_plugin_proxy_def as of 4.2.3. Until then description was the last member, and the
 * memory ends behind it. */
struct registration {
	int type, proxy, flags;
	char *name, *description;
	int event_type;
};

/* Weak: NULL where the host has no such function. */
#define HOST(declaration) extern declaration __attribute__((weak))

/* Nothing tells the version of a host. These two came with 5.0.0, after event_type had come to
 * the same branch, each with a feature of its own: they stand for a host that has it. The core
 * calls both, so that no build leaves them out, and both must be there: a distribution that
 * takes a feature back into an older release would have to take two. They are never called. */
HOST(int flb_log_pipeline_enable(void *));
HOST(void flb_input_ingress_destroy(void *));

/* cmetrics and ctraces, which are in the host. */
HOST(int cmt_decode_msgpack_create(void **, char *, size_t, size_t *));
HOST(void cmt_decode_msgpack_destroy(void *));
HOST(char *cmt_encode_opentelemetry_create(void *));
HOST(void cmt_encode_opentelemetry_destroy(char *));
HOST(int ctr_decode_msgpack_create(void **, char *, size_t, size_t *));
HOST(void ctr_decode_msgpack_destroy(void *));
HOST(char *ctr_encode_opentelemetry_create(void *));
HOST(void ctr_encode_opentelemetry_destroy(char *));
HOST(size_t cfl_sds_len(char *));

struct codec {
	int (*decode)(void **context, char *data, size_t size, size_t *at);
	void (*destroy)(void *context);
	char *(*encode)(void *context);
	void (*release)(char *message);
};

static struct codec codec_of(int event)
{
	if (event == OKR_EVENT_METRICS)
		return (struct codec){ cmt_decode_msgpack_create, cmt_decode_msgpack_destroy,
				       cmt_encode_opentelemetry_create, cmt_encode_opentelemetry_destroy };
	return (struct codec){ ctr_decode_msgpack_create, ctr_decode_msgpack_destroy,
			       ctr_encode_opentelemetry_create, ctr_encode_opentelemetry_destroy };
}

static int known(int event)
{
	struct codec c = codec_of(event);

	return c.decode && c.destroy && c.encode && c.release && cfl_sds_len;
}

int okr_register_events(void *def)
{
	if (!flb_log_pipeline_enable || !flb_input_ingress_destroy ||
	    !known(OKR_EVENT_METRICS) || !known(OKR_EVENT_TRACES))
		return 0;
	((struct registration *)def)->event_type = OKR_EVENT_LOGS | OKR_EVENT_METRICS | OKR_EVENT_TRACES;
	return 1;
}

char *okr_otlp(int event, const char *data, size_t size, size_t *at, size_t *length)
{
	if (!known(event))
		return NULL;
	struct codec c = codec_of(event);
	void *context = NULL;
	size_t next = *at;
	/* The readers leave the data alone; they are only not declared so. */
	if (c.decode(&context, (char *)data, size, &next) != 0 || !context)
		return NULL;
	char *message = next > *at ? c.encode(context) : NULL;
	c.destroy(context);
	*at = next;
	if (message)
		*length = cfl_sds_len(message);
	return message;
}

void okr_otlp_free(int event, char *message)
{
	codec_of(event).release(message);
}

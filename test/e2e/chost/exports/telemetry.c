/* The functions of cmetrics and ctraces that a plugin reads metrics and traces with. chost has
 * neither, so nobody calls them. */

#define EXPORTED(name) \
	void name(void); \
	void name(void) \
	{ \
		__builtin_trap(); \
	}

EXPORTED(cmt_decode_msgpack_create)
EXPORTED(cmt_decode_msgpack_destroy)
EXPORTED(cmt_encode_opentelemetry_create)
EXPORTED(cmt_encode_opentelemetry_destroy)
EXPORTED(ctr_decode_msgpack_create)
EXPORTED(ctr_decode_msgpack_destroy)
EXPORTED(ctr_encode_opentelemetry_create)
EXPORTED(ctr_encode_opentelemetry_destroy)
EXPORTED(cfl_sds_len)

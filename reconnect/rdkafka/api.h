/*
 * The functions of librdkafka's public C API that this package calls, declared by
 * hand. Plain Go commands have no include path to the header inside the
 * confluent-kafka-go module, so they compile against these lines alone; `make build`
 * compiles with OKR_MODULE_HEADER, where the module's own header comes first and
 * every line below is a redeclaration that the compiler checks against it.
 *
 * No struct is defined and no enumeration declared here: an enumeration is compatible
 * with the integer type used for it.
 */
#ifndef OKR_API_H
#define OKR_API_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <netdb.h>

#ifdef OKR_MODULE_HEADER
#include <rdkafka.h>
#endif

struct rd_kafka_s;
struct rd_kafka_conf_s;
struct rd_kafka_topic_s;
struct rd_kafka_topic_conf_s;
struct rd_kafka_message_s;
struct rd_kafka_metadata;
struct rd_kafka_error_s;
struct rd_kafka_headers_s;

int rd_kafka_version(void);
const char *rd_kafka_version_str(void);
const char *rd_kafka_err2str(int err);

struct rd_kafka_conf_s *rd_kafka_conf_new(void);
void rd_kafka_conf_destroy(struct rd_kafka_conf_s *conf);
struct rd_kafka_conf_s *rd_kafka_conf_dup(const struct rd_kafka_conf_s *conf);
int rd_kafka_conf_set(struct rd_kafka_conf_s *conf, const char *name, const char *value, char *errstr, size_t errstr_size);
int rd_kafka_conf_get(const struct rd_kafka_conf_s *conf, const char *name, char *dest, size_t *dest_size);
const char **rd_kafka_conf_dump(struct rd_kafka_conf_s *conf, size_t *cntp);
void rd_kafka_conf_dump_free(const char **arr, size_t cnt);
void rd_kafka_conf_set_opaque(struct rd_kafka_conf_s *conf, void *opaque);
void rd_kafka_conf_set_dr_msg_cb(struct rd_kafka_conf_s *conf, void (*cb)(struct rd_kafka_s *rk, const struct rd_kafka_message_s *msg, void *opaque));
void rd_kafka_conf_set_error_cb(struct rd_kafka_conf_s *conf, void (*cb)(struct rd_kafka_s *rk, int err, const char *reason, void *opaque));
void rd_kafka_conf_set_log_cb(struct rd_kafka_conf_s *conf, void (*cb)(const struct rd_kafka_s *rk, int level, const char *fac, const char *buf));
void rd_kafka_conf_set_stats_cb(struct rd_kafka_conf_s *conf, int (*cb)(struct rd_kafka_s *rk, char *json, size_t json_len, void *opaque));
void rd_kafka_conf_set_socket_cb(struct rd_kafka_conf_s *conf, int (*cb)(int domain, int type, int protocol, void *opaque));
void rd_kafka_conf_set_connect_cb(struct rd_kafka_conf_s *conf, int (*cb)(int sockfd, const struct sockaddr *addr, int addrlen, const char *id, void *opaque));
void rd_kafka_conf_set_closesocket_cb(struct rd_kafka_conf_s *conf, int (*cb)(int sockfd, void *opaque));
void rd_kafka_conf_set_resolve_cb(struct rd_kafka_conf_s *conf, int (*cb)(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res, void *opaque));
void rd_kafka_conf_set_oauthbearer_token_refresh_cb(struct rd_kafka_conf_s *conf, void (*cb)(struct rd_kafka_s *rk, const char *oauthbearer_config, void *opaque));
int rd_kafka_conf_interceptor_add_on_new(struct rd_kafka_conf_s *conf, const char *ic_name, int (*on_new)(struct rd_kafka_s *rk, const struct rd_kafka_conf_s *conf, void *ic_opaque, char *errstr, size_t errstr_size), void *ic_opaque);
int rd_kafka_interceptor_add_on_broker_state_change(struct rd_kafka_s *rk, const char *ic_name, int (*cb)(struct rd_kafka_s *rk, int32_t broker_id, const char *secproto, const char *name, int port, const char *state, void *ic_opaque), void *ic_opaque);
int rd_kafka_interceptor_add_on_request_sent(struct rd_kafka_s *rk, const char *ic_name, int (*cb)(struct rd_kafka_s *rk, int sockfd, const char *brokername, int32_t brokerid, int16_t ApiKey, int16_t ApiVersion, int32_t CorrId, size_t size, void *ic_opaque), void *ic_opaque);
int rd_kafka_interceptor_add_on_response_received(struct rd_kafka_s *rk, const char *ic_name, int (*cb)(struct rd_kafka_s *rk, int sockfd, const char *brokername, int32_t brokerid, int16_t ApiKey, int16_t ApiVersion, int32_t CorrId, size_t size, int64_t rtt, int err, void *ic_opaque), void *ic_opaque);

struct rd_kafka_s *rd_kafka_new(unsigned type, struct rd_kafka_conf_s *conf, char *errstr, size_t errstr_size);
void rd_kafka_destroy_flags(struct rd_kafka_s *rk, int flags);
void *rd_kafka_opaque(const struct rd_kafka_s *rk);
int rd_kafka_poll(struct rd_kafka_s *rk, int timeout_ms);
int rd_kafka_purge(struct rd_kafka_s *rk, int purge_flags);
int rd_kafka_fatal_error(struct rd_kafka_s *rk, char *errstr, size_t errstr_size);

struct rd_kafka_topic_s *rd_kafka_topic_new(struct rd_kafka_s *rk, const char *topic, struct rd_kafka_topic_conf_s *conf);
void rd_kafka_topic_destroy(struct rd_kafka_topic_s *rkt);
int rd_kafka_last_error(void);
int rd_kafka_producev(struct rd_kafka_s *rk, ...);
int rd_kafka_produce_batch(struct rd_kafka_topic_s *rkt, int32_t partition, int msgflags, struct rd_kafka_message_s *messages, int count);
struct rd_kafka_headers_s *rd_kafka_headers_new(size_t initial_count);
void rd_kafka_headers_destroy(struct rd_kafka_headers_s *hdrs);
int rd_kafka_header_add(struct rd_kafka_headers_s *hdrs, const char *name, ssize_t name_size, const void *value, ssize_t value_size);
unsigned rd_kafka_message_status(const struct rd_kafka_message_s *msg);

int rd_kafka_metadata(struct rd_kafka_s *rk, int all_topics, struct rd_kafka_topic_s *only_rkt, const struct rd_kafka_metadata **metadatap, int timeout_ms);
void rd_kafka_metadata_destroy(const struct rd_kafka_metadata *metadata);

struct rd_kafka_error_s *rd_kafka_sasl_set_credentials(struct rd_kafka_s *rk, const char *username, const char *password);
int rd_kafka_oauthbearer_set_token(struct rd_kafka_s *rk, const char *token_value, int64_t md_lifetime_ms, const char *md_principal_name, const char **extensions, size_t extension_size, char *errstr, size_t errstr_size);
void rd_kafka_error_destroy(struct rd_kafka_error_s *error);

/* Constants of the header, as numbers: they are part of its binary interface. */
enum {
	OKR_PRODUCER = 0,
	OKR_PARTITION_ANY = -1,
	OKR_CONF_OK = 0,
	OKR_CONF_INVALID = -1,
	OKR_CONF_UNKNOWN = -2,
	OKR_VTYPE_END = 0,
	OKR_VTYPE_RKT = 2,
	OKR_VTYPE_PARTITION = 3,
	OKR_VTYPE_VALUE = 4,
	OKR_VTYPE_KEY = 5,
	OKR_VTYPE_OPAQUE = 6,
	OKR_VTYPE_MSGFLAGS = 7,
	OKR_VTYPE_TIMESTAMP = 8,
	OKR_VTYPE_HEADERS = 10,
	OKR_PURGE_ALL_NONBLOCK = 0x1 | 0x2 | 0x4,
	OKR_DESTROY_NO_CONSUMER_CLOSE = 0x8,
	OKR_MSG_POSSIBLY_PERSISTED = 1,
	OKR_ERR_FATAL = -150,
	OKR_ERR_ALL_BROKERS_DOWN = -187,
	OKR_ERR_QUEUE_FULL = -184,
	OKR_ERR_INVALID_ARG = -186,
	OKR_ERR_DESTROY = -197,
	OKR_ERR_AUTHENTICATION = -169,
};

/* The layout of rd_kafka_metadata_t and what hangs on it. */
struct okr_rk_partition {
	int32_t id;
	int err;
	int32_t leader;
	int replica_count;
	int32_t *replicas;
	int isr_count;
	int32_t *isrs;
};
struct okr_rk_topic {
	char *name;
	int partition_count;
	struct okr_rk_partition *partitions;
	int err;
};
struct okr_rk_metadata {
	int broker_count;
	void *brokers;
	int topic_count;
	struct okr_rk_topic *topics;
};

/* The layout of rd_kafka_message_t. */
struct okr_rk_message {
	int err;
	struct rd_kafka_topic_s *rkt;
	int32_t partition;
	void *payload;
	size_t len;
	void *key;
	size_t key_len;
	int64_t offset;
	void *opaque;
};

#ifdef OKR_MODULE_HEADER
#define OKR_SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
OKR_SAME(OKR_PRODUCER, RD_KAFKA_PRODUCER);
OKR_SAME(OKR_PARTITION_ANY, RD_KAFKA_PARTITION_UA);
OKR_SAME(OKR_CONF_OK, RD_KAFKA_CONF_OK);
OKR_SAME(OKR_CONF_INVALID, RD_KAFKA_CONF_INVALID);
OKR_SAME(OKR_CONF_UNKNOWN, RD_KAFKA_CONF_UNKNOWN);
OKR_SAME(OKR_VTYPE_END, RD_KAFKA_VTYPE_END);
OKR_SAME(OKR_VTYPE_RKT, RD_KAFKA_VTYPE_RKT);
OKR_SAME(OKR_VTYPE_PARTITION, RD_KAFKA_VTYPE_PARTITION);
OKR_SAME(OKR_VTYPE_VALUE, RD_KAFKA_VTYPE_VALUE);
OKR_SAME(OKR_VTYPE_KEY, RD_KAFKA_VTYPE_KEY);
OKR_SAME(OKR_VTYPE_OPAQUE, RD_KAFKA_VTYPE_OPAQUE);
OKR_SAME(OKR_VTYPE_MSGFLAGS, RD_KAFKA_VTYPE_MSGFLAGS);
OKR_SAME(OKR_VTYPE_TIMESTAMP, RD_KAFKA_VTYPE_TIMESTAMP);
OKR_SAME(OKR_VTYPE_HEADERS, RD_KAFKA_VTYPE_HEADERS);
OKR_SAME(OKR_PURGE_ALL_NONBLOCK, (RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING));
OKR_SAME(OKR_DESTROY_NO_CONSUMER_CLOSE, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
OKR_SAME(OKR_MSG_POSSIBLY_PERSISTED, RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED);
OKR_SAME(OKR_ERR_FATAL, RD_KAFKA_RESP_ERR__FATAL);
OKR_SAME(OKR_ERR_ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
OKR_SAME(OKR_ERR_QUEUE_FULL, RD_KAFKA_RESP_ERR__QUEUE_FULL);
OKR_SAME(OKR_ERR_INVALID_ARG, RD_KAFKA_RESP_ERR__INVALID_ARG);
OKR_SAME(OKR_ERR_DESTROY, RD_KAFKA_RESP_ERR__DESTROY);
OKR_SAME(OKR_ERR_AUTHENTICATION, RD_KAFKA_RESP_ERR__AUTHENTICATION);
OKR_SAME(sizeof(struct okr_rk_partition), sizeof(struct rd_kafka_metadata_partition));
OKR_SAME(offsetof(struct okr_rk_partition, isr_count), offsetof(struct rd_kafka_metadata_partition, isr_cnt));
OKR_SAME(sizeof(struct okr_rk_topic), sizeof(struct rd_kafka_metadata_topic));
OKR_SAME(offsetof(struct okr_rk_topic, err), offsetof(struct rd_kafka_metadata_topic, err));
OKR_SAME(offsetof(struct okr_rk_metadata, topics), offsetof(struct rd_kafka_metadata, topics));
OKR_SAME(offsetof(struct okr_rk_message, err), offsetof(rd_kafka_message_t, err));
OKR_SAME(offsetof(struct okr_rk_message, opaque), offsetof(rd_kafka_message_t, _private));
OKR_SAME(sizeof(struct okr_rk_message), sizeof(rd_kafka_message_t));
#endif

#endif

/*
 * The C half of the client binding. Everything that librdkafka calls back ends here:
 * delivery reports are settled in C, the state of each address is kept in a table,
 * log lines and errors wait in a bounded ring. Go is told by an eventfd that there is
 * something to fetch; no Go code ever runs on a thread of librdkafka.
 *
 * Locks: librdkafka's broker lock -> okr_client.mu. Nothing here calls librdkafka with
 * mu held, and no callback calls librdkafka at all.
 */
#ifndef OKR_H
#define OKR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rd_kafka_conf_s;

typedef struct okr_client okr_client;
typedef struct okr_chunk okr_chunk;

/* One message; the layout equals reconnect.Message. */
typedef struct {
	int64_t timestamp;
	int32_t topic, partition;
	int32_t key_off, key_len;
	int32_t val_off, val_len;
	int32_t hdr_off, hdr_len;   /* see reconnect.AppendHeader for the encoding */
} okr_msg;

/* One message that was not acknowledged. */
typedef struct {
	int32_t index;
	int32_t code;
	int32_t status;
	int32_t refused;   /* 1: the client did not take it in the first place */
} okr_failure;

/* The connection gate. */
enum { OKR_GATE_SHUT = 0, OKR_GATE_SWEEP = 1, OKR_GATE_OPEN = 2 };

/* In which stage a connection attempt ended: tells the class without reading text. */
enum { OKR_STAGE_NONE, OKR_STAGE_RESOLVE, OKR_STAGE_CONNECT, OKR_STAGE_TLS, OKR_STAGE_AUTH, OKR_STAGE_READY };

enum { OKR_NAME_LEN = 272, OKR_TEXT_LEN = 512 };

/* What the table knows of one address; the meaning of the fields is that of reconnect.Broker. */
typedef struct {
	char name[OKR_NAME_LEN];
	char text[OKR_TEXT_LEN];
	int32_t up, inflight, permits, asked, member, stage;
	uint64_t attempts, failures, ups, shorts;
} okr_addr_info;

/* Events of the ring. */
enum { OKR_EV_LOG = 1, OKR_EV_ERROR, OKR_EV_FATAL, OKR_EV_STATS };

typedef struct {
	int32_t kind;
	int32_t code;  /* error code, or the syslog level of a log line */
	char *heap;    /* statistics JSON, to be freed by the reader; else NULL */
	char text[OKR_TEXT_LEN];
} okr_event;

/* What has come up since the last okr_drain. */
typedef struct {
	int32_t acked;          /* 1: a message was acknowledged */
	int32_t reported;       /* 1: a message was reported, acknowledged or not */
	int32_t table_changed;  /* 1: fetch the table */
	int32_t token_wanted;   /* 1: librdkafka asks for a token, see okr_want_tokens */
	uint64_t dropped;       /* ring events lost to an overflow, over the life */
} okr_news;

/* What okr_find_silent has found among the connections that are ready. */
typedef struct {
	int32_t ready;     /* all of them */
	int32_t silent;    /* asked, and without a sign of life for the whole time */
	int32_t suspect;   /* the same for more than half of it */
	int32_t alive;     /* a sign of life within half of it */
	int64_t next_ms;   /* until the first suspect is silent */
} okr_silence;

typedef struct {
	int keepalive_idle_s;      /* TCP keepalive idle time and interval; 0 leaves the kernel's */
	int keepalive_interval_s;
	int keepalive_count;
} okr_socket_options;

/* okr_err_text is librdkafka's text for a code. */
const char *okr_err_text(int code);

/* okr_try tells whether a producer can be made of conf, without a connection or a token: 0, or -1 and
 * a text in err. conf stays the caller's. */
int okr_try(const struct rd_kafka_conf_s *conf, char *err, size_t err_size);

/* okr_want_tokens has the client of conf ask for the tokens of its login; without it librdkafka makes
 * them itself, or has none. */
void okr_want_tokens(struct rd_kafka_conf_s *conf);
/* okr_set_token answers: 0, or a code and a text in err. okr_token_failed says that there is none: an
 * error of the client, of class authentication. */
int okr_set_token(okr_client *c, const char *value, int64_t expires_ms, const char *principal, char *err, size_t err_size);
void okr_token_failed(okr_client *c, const char *reason);

/* okr_open makes a producer of conf, which it takes over in any case, and starts its
 * poll thread; the gate stands as given. NULL and a text in err on failure. */
okr_client *okr_open(struct rd_kafka_conf_s *conf, const okr_socket_options *so, int gate, char *err, size_t err_size);
/* okr_bounded tells whether the client's queue can be full. */
bool okr_bounded(const okr_client *c);
/* okr_event_fd is the eventfd that gets readable when there is news; owned by the client. */
int okr_event_fd(okr_client *c);
void okr_drain(okr_client *c, okr_news *out);
/* okr_next_event and okr_next_chunk return 0 and NULL when there is none. */
int okr_next_event(okr_client *c, okr_event *out);
okr_chunk *okr_next_chunk(okr_client *c);
/* okr_table copies at most cap rows, returns the number of rows there are. */
int okr_table(okr_client *c, okr_addr_info *out, int cap, uint64_t *epoch, bool *none_left);

void okr_set_gate(okr_client *c, int gate);
void okr_wake(okr_client *c);
void okr_hold(okr_client *c, const char *addr, int64_t ms);
int okr_shut_sockets(okr_client *c);
/* okr_find_silent looks for connections that were asked and show no sign of life for so
 * long, neither a byte received nor a byte of ours taken, and shuts them if told so. */
void okr_find_silent(okr_client *c, int64_t after_ms, bool shut, okr_silence *out);
/* okr_heartbeat blocks until a broker has answered or the timeout; a librdkafka code. The
 * trouble that the answer tells of the topics in use, if any, is put into text. */
int okr_heartbeat(okr_client *c, int timeout_ms, char *text, size_t size);

/* okr_topic returns a handle for the life of the client, or NULL and the code. */
void *okr_topic(okr_client *c, const char *name, int *code);
/* okr_block_new returns a block of at least size bytes, whose content is anything, or NULL.
 * Blocks need no client, but while there is one some are kept for the next call. */
void *okr_block_new(size_t size);
size_t okr_block_size(const void *block);
void okr_block_free(void *block);

/* okr_produce hands every message over in one call. It copies data, or, if it is to own
 * it, takes it over: that is a block then. topics[i] may be NULL with topic_codes[i] as the reason. The chunk comes back through okr_next_chunk
 * when each of its messages was reported. Returns how many messages it has: fewer than n when
 * the client's queue is full, and then it is the last ones that were not taken; -1 if there
 * is no memory for it, and then nothing was taken over. */
int okr_produce(okr_client *c, uint64_t id, void **topics, const int *topic_codes,
                       const okr_msg *msgs, int n, char *data, size_t data_len, bool own);
uint64_t okr_chunk_id(const okr_chunk *ch);
int okr_chunk_size(const okr_chunk *ch);
int okr_chunk_acked(const okr_chunk *ch);
int okr_chunk_failures(const okr_chunk *ch, okr_failure *out, int cap);
/* The messages as they were handed over, and the data that they point into; valid until
 * okr_chunk_free. */
const okr_msg *okr_chunk_msgs(const okr_chunk *ch);
const char *okr_chunk_data(const okr_chunk *ch, size_t *len);
void okr_chunk_free(okr_chunk *ch);

/* okr_close reports every outstanding message, stops the poll thread and destroys the
 * handle. 0: all done. 1: the handle was not destroyed within the timeout; a detached
 * thread goes on and frees what is left. Call okr_free once after the last fetch. */
int okr_close(okr_client *c, int timeout_ms);
void okr_free(okr_client *c);

#endif

/* What the C files of the binding share. */
#ifndef OKR_INTERNAL_H
#define OKR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "api.h"
#include "okr.h"

enum { OKR_RING_SIZE = 256, OKR_MAX_ADDRS = 1024, OKR_MAX_IPS = 8 };

/* One distinct host:port. Entries live as long as the client: broker threads point to them. */
typedef struct okr_addr {
	struct okr_addr *next;
	okr_addr_info info;
	int64_t asked_at;      /* ms; when the client last wanted to connect */
	int64_t hold_until;    /* ms; no attempt before that while the gate is open */
	uint64_t sweep;        /* the sweep that permits belong to */
	int ips;               /* addresses that the name last resolved to */
	unsigned rotate;       /* which of them the next attempt takes */
} okr_addr;

/* One connection, from connect to close. It belongs to a broker thread, which alone frees it. */
typedef struct okr_conn {
	struct okr_conn *next;
	const okr_addr *addr;
	int fd;
	int looks;             /* the last judgement of silence.c */
	bool up;               /* ready for requests */
	bool shut;             /* by us; the broker thread has not seen it yet */
	int unanswered;        /* requests written and not answered */
	int64_t waiting_since; /* ms; when the first of them began to wait */
	int64_t received_at;   /* ms; the last byte came in */
	int64_t looked_at;     /* ms; the last look of silence.c */
	int64_t moved_at;      /* ms; the peer's kernel last took a byte of that request, or sending began */
	uint64_t bytes_acked;
	int64_t sending_since; /* ms; when that request began to be sent */
	uint64_t head_end;     /* how many bytes were written with it */
	bool sending;          /* the peer's kernel did not have all of it at the last look */
} okr_conn;

typedef struct okr_topic_entry {
	struct okr_topic_entry *next;
	struct rd_kafka_topic_s *rkt;
} okr_topic_entry;

/* What stands before a block of memory, see block.c. */
typedef struct okr_block {
	struct okr_block *next; /* while it is kept */
	size_t mapped;          /* bytes of the mapping; 0 when it is malloc's */
	size_t size;            /* bytes behind this */
} okr_block;

/* What the poll thread was told of one chunk and has not passed on. */
typedef struct {
	okr_chunk *chunk;
	int reports, acked;
} okr_tally;

struct okr_client {
	struct rd_kafka_s *rk;
	okr_socket_options sockets;
	char *sasl_user, *sasl_password;   /* passed back unchanged by the wake */
	bool bounded;                      /* its queue can be full */

	pthread_mutex_t mu;                /* guards the gate, the addresses and the sockets */
	int gate;
	uint64_t epoch;                    /* counts okr_set_gate; names the sweep */
	bool none_left;                    /* see reconnect.Notice.NoneLeft */
	int64_t swept;                     /* ms; the first permit that this sweep gave, 0 if none */
	okr_addr *addrs;
	int addr_count;
	okr_conn *conns;

	pthread_mutex_t ring_mu;
	okr_event ring[OKR_RING_SIZE];
	unsigned ring_head, ring_len;
	uint64_t dropped;

	pthread_mutex_t chunk_mu;          /* guards the two lists */
	okr_chunk *live;                   /* handed over, not reported */
	okr_chunk *settled_head, *settled_tail;

	okr_tally tally;                   /* the poll thread's own, as the next two */
	bool untold;                       /* Go was not woken for what is in the flags */
	int64_t told_at;                   /* ms; when it last was for the flags alone */

	atomic_int table_changed, acked_flag, reported_flag, token_wanted;
	atomic_int outstanding;
	atomic_ullong acked_total;

	pthread_mutex_t wake_mu;           /* guards wake_fd against a reuse of its number */
	int wake_fd;

	pthread_t poller;
	atomic_int stop_poller;

	pthread_mutex_t life_mu;           /* guards what follows */
	pthread_cond_t life_cond;
	int users;                         /* blocking calls that still use rk */
	bool destroyed;                    /* rk is gone */
	bool abandoned;                    /* the destroying thread frees the client */
	okr_chunk *orphans;
	okr_topic_entry *topics;
};

int64_t okr_now_ms(void);
void okr_notify(okr_client *c);
void okr_post(okr_client *c, int kind, int code, const char *text, char *heap);

/* gate.c */
/* okr_none_left notes that the client says so of all addresses that it knows, see reconnect.Notice.NoneLeft. */
void okr_none_left(okr_client *c);
void okr_gate_install(okr_client *c, struct rd_kafka_conf_s *conf);
void okr_gate_free(okr_client *c);
bool okr_thread_refused(void);
void okr_thread_failure_text(okr_client *c, const char *text);

/* silence.c */
void okr_watch_connections(okr_client *c);
void okr_head_begins(okr_conn *n);

/* block.c */
void okr_blocks_trim(void);
void okr_blocks_client(int change);

/* produce.c */
void okr_pass_on(okr_client *c);
void okr_tell(okr_client *c);
void okr_on_report(struct rd_kafka_s *rk, const struct rd_kafka_message_s *msg, void *opaque);
void okr_chunks_abandon(okr_client *c, bool orphan);
void okr_orphans_free(okr_client *c);

#endif

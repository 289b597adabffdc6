/*
 * Which connections are silent: asked, and without a sign of life since. Two things are
 * put together. The request interceptors tell how many requests of a connection have no
 * answer, and since when the first of them waits: a broker answers the requests of a
 * connection in order. TCP_INFO tells when the last byte came in, and whether what we
 * send is being taken, so that a request on its way over a slow link is no silence.
 *
 * This is a file of its own because glibc's header has a shorter struct tcp_info than
 * the kernel's, and the two can't be included together.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

/* has tells whether the kernel filled a field in: older ones give a shorter structure. */
#define has(len, field) ((len) >= offsetof(struct tcp_info, field) + sizeof(((struct tcp_info *)0)->field))

/* A connection that was slow to take a request gets so many times the time at most. */
enum { MAX_BURST = 4 };

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* written is how many bytes the client has written to the socket since it was opened; all
 * bits set when the kernel does not tell. */
static uint64_t written(const struct tcp_info *ti, socklen_t len)
{
	if (!has(len, tcpi_bytes_retrans))
		return UINT64_MAX;
	return ti->tcpi_bytes_sent - ti->tcpi_bytes_retrans + ti->tcpi_notsent_bytes;
}

static bool tcp_info(int fd, struct tcp_info *ti, socklen_t *len)
{
	*len = sizeof(*ti);
	memset(ti, 0, sizeof(*ti));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, ti, len) == 0;
}

/* okr_head_begins notes that from now on another request is the first without an answer: the
 * bytes up to its end are those written so far. c->mu is held. */
void okr_head_begins(okr_conn *n)
{
	struct tcp_info ti;
	socklen_t len;

	n->head_end = tcp_info(n->fd, &ti, &len) ? written(&ti, len) : UINT64_MAX;
}

/* followed tells whether more was taken than the request that waits. The last acknowledgement of TCP says nothing of that
 * one then, only the look before does. TCP counts the first packet as a byte too. */
static bool followed(const okr_conn *n, const struct tcp_info *ti)
{
	return n->unanswered > 0 && n->head_end != UINT64_MAX && ti->tcpi_bytes_acked > n->head_end + 1;
}

/* look brings up to date what the kernel knows of a connection. c->mu is held. */
static void look(okr_conn *n, int64_t now)
{
	struct tcp_info ti;
	socklen_t len;
	bool sending;

	if (!tcp_info(n->fd, &ti, &len))
		return;   /* the requests alone must tell */
	n->received_at = now - ti.tcpi_last_data_recv;
	sending = ti.tcpi_unacked > 0 || (has(len, tcpi_notsent_bytes) && ti.tcpi_notsent_bytes > 0);
	/* The peer's kernel goes on taking bytes for a program that is stopped. What counts is
	 * the request that waits for its answer; what follows it does not. */
	if (n->unanswered > 0 && sending && has(len, tcpi_bytes_acked))
		sending = ti.tcpi_bytes_acked < n->head_end;
	if (n->sending && ti.tcpi_bytes_acked != n->bytes_acked)
		n->moved_at = later(n->moved_at, followed(n, &ti) ? n->looked_at : now - ti.tcpi_last_ack_recv);
	if (sending && !n->sending && n->unanswered == 0)
		n->moved_at = n->sending_since = now;
	n->looked_at = now;
	n->sending = sending;
	n->bytes_acked = ti.tcpi_bytes_acked;
}

void okr_watch_connections(okr_client *c)
{
	int64_t now = okr_now_ms();

	pthread_mutex_lock(&c->mu);
	for (okr_conn *n = c->conns; n; n = n->next)
		look(n, now);
	pthread_mutex_unlock(&c->mu);
}

/* What a connection looks like. */
enum { IDLE, ALIVE, SUSPECT, SILENT };

/* judge tells what a connection looks like, and in how many ms a suspect is silent. */
static int judge(okr_conn *n, int64_t now, int64_t after_ms, int64_t *left)
{
	bool waiting = n->unanswered > 0 || n->sending;
	int64_t quiet = later(n->received_at, n->moved_at), limit = after_ms;
	int64_t burst = n->sending ? 0 : n->moved_at - n->sending_since;

	if (n->unanswered > 0)
		quiet = later(quiet, n->waiting_since);
	quiet = now - quiet;
	/* What took long to send is long on its way through the buffers between here and the
	 * broker, and so may be the answer. */
	if (burst > 0)
		limit += burst < MAX_BURST * after_ms ? burst : MAX_BURST * after_ms;
	*left = limit - quiet;
	if (waiting && quiet >= limit)
		return SILENT;
	if (quiet < after_ms / 2)
		return ALIVE;
	return waiting ? SUSPECT : IDLE;
}

static bool other_is_silent(const okr_client *c, const okr_conn *n)
{
	for (const okr_conn *o = c->conns; o; o = o->next)
		if (o != n && o->addr == n->addr && o->up && !o->shut && o->looks == SILENT)
			return true;
	return false;
}

void okr_find_silent(okr_client *c, int64_t after_ms, bool shut, okr_silence *out)
{
	int64_t now = okr_now_ms(), left;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&c->mu);
	for (okr_conn *n = c->conns; n; n = n->next) {
		if (!n->up || n->shut)
			continue;
		look(n, now);
		n->looks = judge(n, now, after_ms, &left);
		if (n->looks == SUSPECT && (out->suspect++ == 0 || left < out->next_ms))
			out->next_ms = left;
		out->alive += n->looks == ALIVE;
		out->ready++;
	}
	for (okr_conn *n = c->conns; n; n = n->next) {
		if (!n->up || n->shut)
			continue;
		/* An idle connection says nothing for an address that is silent on another. */
		if (n->looks == IDLE && other_is_silent(c, n))
			n->looks = SILENT;
		out->silent += n->looks == SILENT;
	}
	for (okr_conn *n = c->conns; shut && n; n = n->next) {
		if (n->up && !n->shut && n->looks == SILENT) {
			n->shut = true;
			(void)shutdown(n->fd, SHUT_RDWR);
		}
	}
	pthread_mutex_unlock(&c->mu);
}

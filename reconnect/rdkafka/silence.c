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
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

/* has tells whether the kernel filled a field in: older ones give a shorter structure. */
#define has(len, field) ((len) >= offsetof(struct tcp_info, field) + sizeof(((struct tcp_info *)0)->field))

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* look brings up to date what the kernel knows of a connection. c->mu is held. */
static void look(okr_conn *n, int64_t now)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);
	bool sending;

	memset(&ti, 0, sizeof(ti));
	if (getsockopt(n->fd, IPPROTO_TCP, TCP_INFO, &ti, &len) != 0)
		return;   /* the requests alone must tell */
	n->received_at = now - ti.tcpi_last_data_recv;
	sending = ti.tcpi_unacked > 0 || (has(len, tcpi_notsent_bytes) && ti.tcpi_notsent_bytes > 0);
	if (sending && !n->sending)
		n->moved_at = now;
	n->sending = sending;
	if (has(len, tcpi_bytes_acked)) {
		if (ti.tcpi_bytes_acked != n->bytes_acked)
			n->moved_at = later(n->moved_at, now - ti.tcpi_last_ack_recv);
		n->bytes_acked = ti.tcpi_bytes_acked;
	} else if (sending) {
		/* The answer to a window probe counts too then: a full buffer of a frozen peer is
		 * left to the client's own time-outs. */
		n->moved_at = later(n->moved_at, now - ti.tcpi_last_ack_recv);
	}
}

void okr_watch_connections(okr_client *c)
{
	int64_t now = okr_now_ms();

	pthread_mutex_lock(&c->mu);
	for (okr_conn *n = c->conns; n; n = n->next)
		look(n, now);
	pthread_mutex_unlock(&c->mu);
}

void okr_find_silent(okr_client *c, int64_t after_ms, bool shut, okr_silence *out)
{
	int64_t now = okr_now_ms();

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&c->mu);
	for (okr_conn *n = c->conns; n; n = n->next) {
		int64_t quiet;
		bool waiting;

		if (!n->up || n->shut)
			continue;
		out->ready++;
		look(n, now);
		waiting = n->unanswered > 0 || n->sending;
		quiet = later(n->received_at, n->moved_at);
		if (n->unanswered > 0)
			quiet = later(quiet, n->waiting_since);
		quiet = now - quiet;
		if (waiting && quiet >= after_ms) {
			out->silent++;
			n->shut = shut;
			if (shut)
				(void)shutdown(n->fd, SHUT_RDWR);
		} else if (quiet < after_ms / 2) {
			out->alive++;
		} else if (waiting) {
			if (out->suspect++ == 0 || after_ms - quiet < out->next_ms)
				out->next_ms = after_ms - quiet;
		}
	}
	pthread_mutex_unlock(&c->mu);
}

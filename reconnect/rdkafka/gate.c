/*
 * The connection gate: decides in resolve_cb whether an attempt may start, enforces it
 * in socket_cb, counts in connect_cb, and follows each attempt to its end in the broker
 * state interceptor. All of these run on a broker thread of librdkafka, one thread per
 * broker handle, so what belongs to one attempt is kept in a thread-local.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* What this broker thread is about. It must stay small: the plugin's whole TLS block has
 * to fit into the loader's static surplus. */
static __thread struct {
	okr_addr *addr;      /* the address of the last look-up */
	okr_conn *conn;      /* the connection, from connect to close */
	int64_t up_at;       /* ms; when the connection got ready */
	uint64_t acked_at_up;
	uint8_t permit;      /* the look-up was allowed, the socket may follow */
	uint8_t refused;     /* the gate refused, so the failure to come is our own */
	uint8_t attempting;  /* connect was called and neither UP nor DOWN was seen */
	uint8_t up;
	uint8_t stage;
	uint8_t ended;       /* a connection of this handle has ended before */
} tls;

/* The permits of a sweep lapse SWEEP_MS after the first one was taken: whoever asks later waits
 * for the next sweep, so that attempts keep to their due time. A sweep that nobody has noticed
 * yet lasts on: on a busy machine every broker thread may sleep through its beginning. */
enum { SHORT_LIFE_MS = 1000, ASKED_WINDOW_MS = 3000, SWEEP_MS = 1000 };

static void table_changed(okr_client *c)
{
	atomic_store(&c->table_changed, 1);
	okr_notify(c);
}

static okr_addr *find_addr(okr_client *c, const char *name)
{
	okr_addr *a;

	for (a = c->addrs; a; a = a->next)
		if (!strcmp(a->info.name, name))
			return a;
	/* A cluster has tens of addresses. Past the bound all further ones share the newest
	 * entry: pacing gets coarse, memory stays bounded. */
	if (c->addr_count >= OKR_MAX_ADDRS)
		return c->addrs;
	a = calloc(1, sizeof(*a));
	if (!a)
		return c->addrs;
	snprintf(a->info.name, sizeof(a->info.name), "%s", name);
	a->ips = 1;
	a->next = c->addrs;
	c->addrs = a;
	c->addr_count++;
	return a;
}

static int permits_left(const okr_client *c, const okr_addr *a)
{
	if (c->gate != OKR_GATE_SWEEP || (c->swept && okr_now_ms() - c->swept > SWEEP_MS))
		return 0;
	return a->sweep == c->epoch ? a->info.permits : a->ips;
}

static bool gate_allows(okr_client *c, okr_addr *a, int64_t now)
{
	switch (c->gate) {
	case OKR_GATE_OPEN:
		return now >= a->hold_until;
	case OKR_GATE_SWEEP:
		a->info.permits = permits_left(c, a);
		a->sweep = c->epoch;
		if (a->info.permits <= 0)
			return false;
		a->info.permits--;
		if (!c->swept)
			c->swept = now;
		return true;
	default:
		return false;
	}
}

/* single copies one entry of a result list. librdkafka frees it through resolve_cb with
 * a null node. A list of one makes the choice among several addresses ours: librdkafka
 * would shuffle it, and a sweep could miss the one that works. */
static struct addrinfo *single(const struct addrinfo *list, unsigned pick)
{
	const struct addrinfo *ai = list;
	struct addrinfo *one;
	unsigned n = 0;

	for (; ai; ai = ai->ai_next)
		n++;
	if (n == 0)
		return NULL;
	for (ai = list, pick %= n; pick > 0; pick--)
		ai = ai->ai_next;
	one = calloc(1, sizeof(*one) + ai->ai_addrlen);
	if (!one)
		return NULL;
	*one = *ai;
	one->ai_canonname = NULL;
	one->ai_next = NULL;
	one->ai_addr = (struct sockaddr *)(one + 1);
	memcpy(one->ai_addr, ai->ai_addr, ai->ai_addrlen);
	return one;
}

static void look_up_failed(okr_client *c, okr_addr *a, const char *text)
{
	pthread_mutex_lock(&c->mu);
	a->info.attempts++;
	a->info.failures++;
	a->info.stage = OKR_STAGE_RESOLVE;
	a->info.permits = 0;   /* other addresses of the name are not known either */
	snprintf(a->info.text, sizeof(a->info.text), "%s", text);
	pthread_mutex_unlock(&c->mu);
	table_changed(c);
}

static void look_up_done(okr_client *c, okr_addr *a, const struct addrinfo *list, struct addrinfo **res)
{
	int n = 0;

	for (const struct addrinfo *ai = list; ai && n < OKR_MAX_IPS; ai = ai->ai_next)
		n++;
	pthread_mutex_lock(&c->mu);
	*res = single(list, a->rotate++);
	/* The first attempt of a sweep took one permit for the name; when the name has more
	 * addresses than it had, each of them gets its attempt too. */
	if (c->gate == OKR_GATE_SWEEP && a->sweep == c->epoch && n > a->ips)
		a->info.permits += n - a->ips;
	a->ips = n > 0 ? n : 1;
	pthread_mutex_unlock(&c->mu);
}

static int on_resolve(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res, void *opaque)
{
	okr_client *c = opaque;
	char name[OKR_NAME_LEN];
	struct addrinfo *list = NULL;
	okr_addr *a;
	bool allowed;
	int64_t now = okr_now_ms();
	int r, e;

	if (!node) {
		free(*res);
		*res = NULL;
		return 0;
	}
	snprintf(name, sizeof(name), "%s:%s", node, service);
	pthread_mutex_lock(&c->mu);
	a = find_addr(c, name);
	if (!a) {
		pthread_mutex_unlock(&c->mu);
		return EAI_MEMORY;
	}
	a->asked_at = now;
	tls.addr = a;
	allowed = gate_allows(c, a, now);
	pthread_mutex_unlock(&c->mu);

	tls.refused = !allowed;
	tls.permit = 0;
	if (!allowed) {
		errno = ECANCELED;
		return EAI_SYSTEM;
	}
	r = getaddrinfo(node, service, hints, &list);
	if (r != 0) {
		e = errno;
		look_up_failed(c, a, r == EAI_SYSTEM ? strerror(e) : gai_strerror(r));
		errno = e;
		return r;
	}
	look_up_done(c, a, list, res);
	freeaddrinfo(list);
	if (!*res)
		return EAI_MEMORY;
	tls.permit = 1;
	return 0;
}

static void set_keepalive(const okr_client *c, int fd)
{
	int idle = c->sockets.keepalive_idle_s;
	int interval = c->sockets.keepalive_interval_s;
	int count = c->sockets.keepalive_count;
	int on = 1;

	if (idle <= 0)
		return;
	/* The kernel's own two hours are longer than any load balancer waits. A socket that
	 * refuses one of these is still a good socket. */
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static int on_socket(int domain, int type, int protocol, void *opaque)
{
	okr_client *c = opaque;
	bool allowed;
	int fd;

	pthread_mutex_lock(&c->mu);
	allowed = tls.permit && c->gate != OKR_GATE_SHUT;
	pthread_mutex_unlock(&c->mu);
	tls.permit = 0;
	if (!allowed) {
		tls.refused = 1;
		errno = ECANCELED;
		return -1;
	}
	fd = socket(domain, type | SOCK_CLOEXEC, protocol);
	if (fd != -1)
		set_keepalive(c, fd);
	return fd;
}

static okr_conn *register_conn(okr_client *c, const okr_addr *a, int fd)
{
	okr_conn *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->addr = a;
	n->fd = fd;
	n->next = c->conns;
	c->conns = n;
	return n;
}

static int on_connect(int fd, const struct sockaddr *addr, int addrlen, const char *id, void *opaque)
{
	okr_client *c = opaque;
	okr_addr *a = tls.addr;

	(void)id;
	pthread_mutex_lock(&c->mu);
	/* A socket that can't be shut later would outlive an outage: rather no socket. */
	tls.conn = a ? register_conn(c, a, fd) : NULL;
	if (!tls.conn) {
		pthread_mutex_unlock(&c->mu);
		return ENOMEM;
	}
	a->info.attempts++;
	a->info.inflight++;
	pthread_mutex_unlock(&c->mu);
	tls.attempting = 1;
	tls.stage = OKR_STAGE_CONNECT;
	table_changed(c);
	if (connect(fd, addr, (socklen_t)addrlen) == 0 || errno == EINPROGRESS)
		return 0;
	return errno;
}

static int on_close_socket(int fd, void *opaque)
{
	okr_client *c = opaque;
	int r;

	/* Closing under the lock keeps okr_shut_sockets from shutting a stranger's socket
	 * that got the same number. */
	pthread_mutex_lock(&c->mu);
	for (okr_conn **p = &c->conns; *p; p = &(*p)->next) {
		okr_conn *n = *p;

		if (n->fd == fd) {
			*p = n->next;
			if (tls.conn == n)
				tls.conn = NULL;
			free(n);
			break;
		}
	}
	r = close(fd);
	pthread_mutex_unlock(&c->mu);
	return r;
}

static void became_up(okr_client *c, okr_addr *a, int32_t broker_id)
{
	if (tls.up)
		return;
	pthread_mutex_lock(&c->mu);
	if (tls.attempting)
		a->info.inflight--;
	a->info.up++;
	a->info.ups++;
	a->info.member |= broker_id >= 0;
	a->info.text[0] = '\0';
	a->info.stage = OKR_STAGE_NONE;
	if (tls.conn)
		tls.conn->up = true;
	c->none_left = false;
	pthread_mutex_unlock(&c->mu);
	tls.attempting = 0;
	tls.up = 1;
	tls.up_at = okr_now_ms();
	tls.acked_at_up = atomic_load(&c->acked_total);
	table_changed(c);
}

/* A bootstrap handle is dropped by the client as soon as it knows the cluster, a moment
 * after it got ready: only its second end tells of a broker that does not keep us. */
static bool lived_short(const okr_client *c, int32_t broker_id)
{
	return (broker_id >= 0 || tls.ended) && okr_now_ms() - tls.up_at < SHORT_LIFE_MS &&
	       atomic_load(&c->acked_total) == tls.acked_at_up;
}

static void became_down(okr_client *c, okr_addr *a, int32_t broker_id)
{
	if (!tls.attempting && !tls.up)
		return;   /* a refusal of ours, or a failed look-up that is counted already */
	pthread_mutex_lock(&c->mu);
	if (tls.attempting) {
		a->info.inflight--;
		a->info.failures++;
		a->info.stage = tls.stage;
	} else {
		a->info.up--;
		a->info.shorts += lived_short(c, broker_id);
		tls.ended = 1;
	}
	pthread_mutex_unlock(&c->mu);
	tls.attempting = 0;
	tls.up = 0;
	tls.stage = OKR_STAGE_NONE;
	table_changed(c);
}

static int on_state(struct rd_kafka_s *rk, int32_t broker_id, const char *secproto, const char *name, int port, const char *state, void *ic_opaque)
{
	okr_client *c = ic_opaque;
	okr_addr *a = tls.addr;

	(void)rk, (void)secproto, (void)name, (void)port;
	if (!a)
		return 0;   /* this handle never asked for a connection */
	if (!strcmp(state, "UP"))
		became_up(c, a, broker_id);
	else if (!strcmp(state, "DOWN"))
		became_down(c, a, broker_id);
	else if (!strcmp(state, "SSL_HANDSHAKE"))
		tls.stage = OKR_STAGE_TLS;
	else if (!strcmp(state, "APIVERSION_QUERY"))
		tls.stage = OKR_STAGE_READY;
	else if (!strncmp(state, "AUTH_", 5))
		tls.stage = OKR_STAGE_AUTH;
	return 0;
}

/* A request was written to the socket as a whole. */
static int on_request(struct rd_kafka_s *rk, int fd, const char *name, int32_t broker_id, int16_t key, int16_t version, int32_t corr_id, size_t size, void *ic_opaque)
{
	okr_client *c = ic_opaque;
	okr_conn *n = tls.conn;

	(void)rk, (void)fd, (void)name, (void)broker_id, (void)key, (void)version, (void)corr_id, (void)size;
	if (!n)
		return 0;
	pthread_mutex_lock(&c->mu);
	if (n->unanswered++ == 0) {
		n->waiting_since = okr_now_ms();
		if (!n->sending)
			n->sending_since = n->waiting_since;
		okr_head_begins(n);
	}
	pthread_mutex_unlock(&c->mu);
	return 0;
}

/* A request was answered, or failed. One that failed without an answer may never have been
 * written; if it was, the client ends the connection. */
static int on_response(struct rd_kafka_s *rk, int fd, const char *name, int32_t broker_id, int16_t key, int16_t version, int32_t corr_id, size_t size, int64_t rtt, int err, void *ic_opaque)
{
	okr_client *c = ic_opaque;
	okr_conn *n = tls.conn;

	(void)rk, (void)fd, (void)name, (void)broker_id, (void)key, (void)version, (void)corr_id, (void)rtt;
	if (!n || (err != 0 && size == 0))
		return 0;
	pthread_mutex_lock(&c->mu);
	if (n->unanswered > 0)
		n->unanswered--;
	n->waiting_since = n->sending_since = okr_now_ms();   /* the next in line waits from now on */
	n->sending = false;
	if (n->unanswered > 0)
		okr_head_begins(n);
	pthread_mutex_unlock(&c->mu);
	return 0;
}

static int on_new(struct rd_kafka_s *rk, const struct rd_kafka_conf_s *conf, void *ic_opaque, char *errstr, size_t errstr_size)
{
	(void)conf, (void)errstr, (void)errstr_size;
	rd_kafka_interceptor_add_on_request_sent(rk, "okr", on_request, ic_opaque);
	rd_kafka_interceptor_add_on_response_received(rk, "okr", on_response, ic_opaque);
	return rd_kafka_interceptor_add_on_broker_state_change(rk, "okr", on_state, ic_opaque);
}

void okr_gate_install(okr_client *c, struct rd_kafka_conf_s *conf)
{
	rd_kafka_conf_set_resolve_cb(conf, on_resolve);
	rd_kafka_conf_set_socket_cb(conf, on_socket);
	rd_kafka_conf_set_connect_cb(conf, on_connect);
	rd_kafka_conf_set_closesocket_cb(conf, on_close_socket);
	rd_kafka_conf_interceptor_add_on_new(conf, "okr", on_new, c);
}

void okr_gate_free(okr_client *c)
{
	while (c->addrs) {
		okr_addr *next = c->addrs->next;

		free(c->addrs);
		c->addrs = next;
	}
	while (c->conns) {
		okr_conn *next = c->conns->next;

		free(c->conns);
		c->conns = next;
	}
}

bool okr_thread_refused(void)
{
	return tls.refused;
}

/* bare cuts what the client puts around its reason: "[thrd:NAME]: NAME: reason (after
 * 0ms in state CONNECT)" is known from the row of the table. */
static void bare(char *out, size_t size, const char *text)
{
	const char *p = strstr(text, "]: ");
	char *end;

	if (text[0] == '[' && p && (p = strstr(p + 3, ": ")))
		text = p + 2;
	snprintf(out, size, "%s", text);
	end = strstr(out, " (after ");
	if (end)
		*end = '\0';
}

/* okr_thread_failure_text keeps the client's own words for the address that this broker
 * thread is trying; the line comes just before the change to DOWN. */
void okr_thread_failure_text(okr_client *c, const char *text)
{
	okr_addr *a = tls.addr;

	if (!a || !tls.attempting)
		return;
	/* With TLS 1.3 the peer judges our certificate after our handshake is over: its alert, in OpenSSL's words, comes in
	 * place of the first answer, as an error of the transport. */
	if (strstr(text, "SSL alert number"))
		tls.stage = OKR_STAGE_TLS;
	pthread_mutex_lock(&c->mu);
	bare(a->info.text, sizeof(a->info.text), text);
	pthread_mutex_unlock(&c->mu);
}

void okr_set_gate(okr_client *c, int gate)
{
	pthread_mutex_lock(&c->mu);
	c->gate = gate;
	c->epoch++;
	c->swept = 0;
	c->none_left = false;
	if (gate == OKR_GATE_OPEN)
		for (okr_addr *a = c->addrs; a; a = a->next)
			a->hold_until = 0;
	pthread_mutex_unlock(&c->mu);
	/* The table is fetched anew, so that the epoch of the next one is known to be this. */
	table_changed(c);
}

void okr_hold(okr_client *c, const char *addr, int64_t ms)
{
	pthread_mutex_lock(&c->mu);
	for (okr_addr *a = c->addrs; a; a = a->next)
		if (!strcmp(a->info.name, addr))
			a->hold_until = okr_now_ms() + ms;
	pthread_mutex_unlock(&c->mu);
}

void okr_none_left(okr_client *c)
{
	bool up = false;

	pthread_mutex_lock(&c->mu);
	for (const okr_addr *a = c->addrs; a; a = a->next)
		up = up || a->info.up > 0;
	c->none_left = !up;   /* one may have come up since it was said */
	pthread_mutex_unlock(&c->mu);
	table_changed(c);
}

int okr_shut_sockets(okr_client *c)
{
	int count = 0;

	pthread_mutex_lock(&c->mu);
	for (okr_conn *n = c->conns; n; n = n->next, count++) {
		n->shut = true;
		(void)shutdown(n->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&c->mu);
	return count;
}

int okr_table(okr_client *c, okr_addr_info *out, int cap, uint64_t *epoch, bool *none_left)
{
	int64_t now = okr_now_ms();
	int n = 0;

	pthread_mutex_lock(&c->mu);
	for (okr_addr *a = c->addrs; a; a = a->next, n++) {
		if (n >= cap)
			continue;
		out[n] = a->info;
		out[n].permits = permits_left(c, a);
		out[n].asked = now - a->asked_at <= ASKED_WINDOW_MS;
	}
	*epoch = c->epoch;
	*none_left = c->none_left;
	pthread_mutex_unlock(&c->mu);
	return n;
}

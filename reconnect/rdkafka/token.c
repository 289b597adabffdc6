/*
 * Tokens for OAUTHBEARER that Go makes. librdkafka asks for one from rd_kafka_poll, that is on our poll thread, which must
 * not wait: the question is kept as a flag for Go, and the answer comes through okr_set_token from a goroutine.
 */
#include "internal.h"

static void on_token_wanted(struct rd_kafka_s *rk, const char *config, void *opaque)
{
	okr_client *c = opaque;

	(void)rk, (void)config;
	atomic_store(&c->token_wanted, 1);
	okr_notify(c);
}

void okr_want_tokens(struct rd_kafka_conf_s *conf)
{
	rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token_wanted);
}

int okr_set_token(okr_client *c, const char *value, int64_t expires_ms, const char *principal, char *err, size_t err_size)
{
	return rd_kafka_oauthbearer_set_token(c->rk, value, expires_ms, principal, NULL, 0, err, err_size);
}

/* Not told to librdkafka: it would tell the same reason once only, and ask again by a clock of its own. */
void okr_token_failed(okr_client *c, const char *reason)
{
	okr_post(c, OKR_EV_ERROR, OKR_ERR_AUTHENTICATION, reason, NULL);
}

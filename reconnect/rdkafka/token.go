package rdkafka

/*
#include <stdlib.h>
#include "okr.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
)

// tokenTarget is where tokens go: the client.
type tokenTarget interface {
	setToken(t reconnect.Token) error
	tokenFailed(reason string)
}

// tokenKeeper gives a client a token whenever that asks for one, which it does at its start and before the token expires.
// It asks its source on a goroutine of its own, as that may talk to a server. Until the first token has come, no connection
// is tried; each failure is an error of the client, so that the supervisor knows the reason.
type tokenKeeper struct {
	source   reconnect.TokenSource
	timeout  time.Duration
	min, max time.Duration
	target   tokenTarget
	logger   *slog.Logger

	wanted chan struct{} // holds one wish
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// startTokens makes a keeper at work.
func startTokens(o Options, target tokenTarget) *tokenKeeper {
	k := &tokenKeeper{
		source: o.Tokens, timeout: o.TokenTimeout, min: o.TokenBackoffMin, max: o.TokenBackoffMax, target: target, logger: o.Logger,
		wanted: make(chan struct{}, 1),
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.done.Go(func() { k.run(ctx) })
	return k
}

// want asks for a token; a wish that is not fulfilled yet counts for all. A nil keeper has none.
func (k *tokenKeeper) want() {
	if k == nil {
		return
	}
	select {
	case k.wanted <- struct{}{}:
	default:
	}
}

// close ends the keeper. It waits for the source, which keeps to its context.
func (k *tokenKeeper) close() {
	if k == nil {
		return
	}
	k.stop()
	k.done.Wait()
}

// run serves wishes until the keeper is closed.
func (k *tokenKeeper) run(ctx context.Context) {
	for {
		select {
		case <-k.wanted:
			k.fulfil(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// fulfil tries until the client has a token. The first failure has a line of its own: while the connections still live, nothing
// else tells of it.
func (k *tokenKeeper) fulfil(ctx context.Context) {
	backoff := fsm.NewBackoff(k.min, k.max, rand.Float64)
	for {
		err := k.renew(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && backoff.Level() > 0:
			k.logger.Info("there is a token for the login again", "failures", backoff.Level())
			return
		case err == nil:
			return
		case backoff.Level() == 0:
			k.logger.Warn("there is no new token for the login", "err", err)
		}
		k.target.tokenFailed("there is no token for the login: " + err.Error())
		select {
		case <-time.After(backoff.Next(0)):
		case <-ctx.Done():
			return
		}
	}
}

// renew gets one token and hands it over.
func (k *tokenKeeper) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	t, err := k.source(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("none after %s: %w", k.timeout, err)
	}
	if err != nil {
		return err
	}
	return k.target.setToken(t)
}

// setToken hands a token to librdkafka, which wakes the broker threads that wait for it.
func (c *Client) setToken(t reconnect.Token) error {
	value, principal := C.CString(t.Value), C.CString(t.Principal)
	defer C.free(unsafe.Pointer(value))
	defer C.free(unsafe.Pointer(principal))
	var code C.int
	var text [errorTextLen]C.char
	c.with(func() {
		code = C.okr_set_token(c.c, value, C.int64_t(t.Expires.UnixMilli()), principal, &text[0], C.size_t(len(text)))
	})
	if code != 0 {
		return fmt.Errorf("the client refuses the token: %s", C.GoString(&text[0]))
	}
	c.logger.Debug("the client has a new token", "expires", t.Expires.UTC().Format(time.RFC3339))
	return nil
}

// tokenFailed makes an error of class authentication of the reason.
func (c *Client) tokenFailed(reason string) {
	text := C.CString(reason)
	defer C.free(unsafe.Pointer(text))
	c.with(func() { C.okr_token_failed(c.c, text) })
}

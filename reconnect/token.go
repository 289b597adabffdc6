package reconnect

import (
	"context"
	"time"
)

// Token is what a client shows to brokers that take SASL/OAUTHBEARER.
type Token struct {
	// Value is the token itself, which is a secret.
	Value string
	// Principal is whom it stands for, for the client's own lines.
	Principal string
	// Expires is when it is no good any more. The client asks for another one before that.
	Expires time.Time
}

// TokenSource makes tokens. Each call makes a new one, from credentials as they are at that time. It may block until the
// context ends; its error holds no secret.
type TokenSource func(ctx context.Context) (Token, error)

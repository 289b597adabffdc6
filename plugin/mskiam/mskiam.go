package mskiam

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-msk-iam-sasl-signer-go/signer"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"out_kafka_reconnect/reconnect"
)

// Source makes tokens for the clusters of a region.
func Source(region string) reconnect.TokenSource {
	return func(ctx context.Context) (reconnect.Token, error) {
		cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(region), awsconfig.WithLogger(logging.Nop{}))
		if err != nil {
			return reconnect.Token{}, fmt.Errorf("mskiam: reading the configuration of AWS: %w", err)
		}
		credentials, err := cfg.Credentials.Retrieve(ctx)
		if err != nil {
			return reconnect.Token{}, fmt.Errorf("mskiam: fetching the credentials of AWS: %w", err)
		}
		return sign(ctx, region, credentials)
	}
}

// sign makes a token that is good for as long as both itself and the credentials are.
func sign(ctx context.Context, region string, c aws.Credentials) (reconnect.Token, error) {
	given := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return c, nil })
	value, expires, err := signer.GenerateAuthTokenFromCredentialsProvider(ctx, region, given)
	if err != nil {
		return reconnect.Token{}, fmt.Errorf("mskiam: signing: %w", err)
	}
	t := reconnect.Token{Value: value, Principal: c.AccessKeyID, Expires: time.UnixMilli(expires)}
	if c.CanExpire && c.Expires.Before(t.Expires) {
		t.Expires = c.Expires
	}
	return t, nil
}

// Package mskiam makes the tokens with which a client logs in at Amazon MSK under an AWS identity.
//
// A token is a presigned URL of the action kafka-cluster:Connect, which the brokers hand to AWS to learn who signed it. It is
// signed here, by AWS's own package, and only fetching the credentials may need a network: they come from the default chain of
// AWS (environment, shared files, web identity, container, instance), anew for each token, so that credentials that have
// changed are used without a restart.
package mskiam

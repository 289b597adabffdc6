// Package e2e shows that the plugin does what it promises: in a host, with a Kafka that goes away and comes back.
//
// Each file in scenarios is one scenario, to be read from top to bottom; it is run by testscript with the commands that are
// described in scenarios/README.md. Every scenario runs in each combination of a Kafka (the embedded broker, real Apache
// Kafka) and a host (the C host, Fluent Bit if FLUENT_BIT names one or PATH has one) that it does not exclude:
//
//	go test -tags e2e ./test/e2e
//	go test -tags e2e ./test/e2e -v -run 'TestScenarios/embedded-chost/seeds$'
//
// A combination that is asked for and can't run fails and says what to install; only Fluent Bit may be absent.
package e2e

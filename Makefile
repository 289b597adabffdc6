# One command for each habit; `make help` lists them.

GO       ?= go
GOARCH   ?= $(shell $(GO) env GOARCH)
CC       ?= gcc
NM       ?= nm
READELF  ?= readelf
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

BUILD    := build
PLUGIN   := $(BUILD)/out_kafka_reconnect.so
PRIVATE  := $(BUILD)/librdkafka_kafka_reconnect.so
HOST     := $(BUILD)/chost
BROKER   := $(BUILD)/embedded
LINT     := $(BUILD)/tools/golangci-lint

# The module that brings librdkafka, pinned by go.mod: archive and header.
MODULE    = $(shell $(GO) mod download github.com/confluentinc/confluent-kafka-go/v2 && $(GO) list -m -f '{{.Dir}}' github.com/confluentinc/confluent-kafka-go/v2)
VENDORED  = $(MODULE)/kafka/librdkafka_vendor
ARCHIVE   = $(VENDORED)/librdkafka_glibc_linux_$(GOARCH).a

GO_SOURCES := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './test/*' -not -path './tools/*' -not -path './$(BUILD)/*')
C_SOURCES  := $(wildcard *.c *.h reconnect/rdkafka/*.c reconnect/rdkafka/*.h)
RECORDED   := test/e2e/parity/testdata/builtin.txt
HOST_SOURCES := $(wildcard test/e2e/chost/*.c)
HOST_EXPORTS := $(patsubst test/e2e/chost/exports/%.c,$(BUILD)/chost-exports/%.so,$(wildcard test/e2e/chost/exports/*.c))

# The documented bounds that `make symbols` checks.
MAX_TLS   := 512
MAX_GLIBC := 2.34

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print what there is.
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 14

.PHONY: build
build: $(PLUGIN) ## Build the plugin and its private librdkafka into build/.

$(PRIVATE): packaging/private-librdkafka.sh packaging/calm-poll.c go.mod
	CC="$(CC)" NM="$(NM)" packaging/private-librdkafka.sh "$(ARCHIVE)" "$(VENDORED)" $(BUILD)

# How Go code is built that uses the private librdkafka.
# timberjack_nozstd: rotated files are not compressed, and the compressor would be in the plugin.
# Go's build cache sees flags, not the library behind them: its hash is one of the flags, so
# that a changed library is never linked with old objects.
PRIVATE_BUILD = CGO_ENABLED=1 GOARCH=$(GOARCH) CC="$(CC)" \
	CGO_CFLAGS="-O2 -g -include $(CURDIR)/$(BUILD)/renames.h -I$(VENDORED) -DOKR_MODULE_HEADER -DOKR_LIBRARY=$$(sha256sum $(PRIVATE) $(BUILD)/renames.h | sha256sum | cut -c1-16)" \
	CGO_LDFLAGS="-L$(CURDIR)/$(BUILD) -lrdkafka_kafka_reconnect -Wl,-rpath,\$$ORIGIN" \
	$(GO) build -tags rdkafka_private,timberjack_nozstd -trimpath

$(PLUGIN): $(PRIVATE) $(GO_SOURCES) $(C_SOURCES) packaging/exports.map go.mod go.sum
	$(PRIVATE_BUILD) -buildmode=c-shared \
	  -ldflags '-s -w -X out_kafka_reconnect/internal/version.Version=$(VERSION) -extldflags "-Wl,--version-script=$(CURDIR)/packaging/exports.map -Wl,-z,defs"' \
	  -o $@ .
	@rm -f $(BUILD)/out_kafka_reconnect.h

.PHONY: symbols
symbols: $(PLUGIN) ## Check what the built library exports, needs and reserves.
	NM="$(NM)" READELF="$(READELF)" packaging/check-symbols.sh $(PLUGIN) $(PRIVATE) $(MAX_TLS) $(MAX_GLIBC)

.PHONY: pure
pure: ## Test the packages that need no C compiler.
	CGO_ENABLED=0 $(GO) test ./plugin/... ./reconnect ./reconnect/fsm ./reconnect/reconnecttest ./internal/...

.PHONY: unit
unit: ## Test everything that needs no broker and no host, under the race detector.
	$(GO) test -race ./...

.PHONY: asan
asan: ## Test the client binding under the address sanitizer.
	$(GO) test -asan ./reconnect/rdkafka

$(HOST): $(HOST_SOURCES) $(wildcard test/e2e/chost/*.h) $(HOST_EXPORTS)
	@mkdir -p $(BUILD)
	$(CC) -O1 -g -Wall -Wextra -Werror -rdynamic -o $@ $(HOST_SOURCES) -ldl -lpthread

$(BUILD)/chost-exports/%.so: test/e2e/chost/exports/%.c
	@mkdir -p $(dir $@)
	$(CC) -O1 -g -Wall -Wextra -Werror -shared -fPIC -o $@ $<

.PHONY: broker
broker: $(BROKER) ## Build a Kafka in one small program, for trying things: build/embedded -port 9092 -topic logs:1.

$(BROKER): $(shell find test/e2e/embedded -name '*.go')
	$(GO) build -o $@ ./test/e2e/embedded

.PHONY: e2e
e2e: $(PLUGIN) $(HOST) ## Run every scenario and the short matrix: real Kafka, C host, and Fluent Bit when there is one.
	$(GO) test -tags e2e -count=1 -timeout 40m $$($(GO) list -tags e2e ./test/e2e/... | grep -v /outage)
	$(GO) test -tags e2e -count=1 -timeout 20m ./test/e2e/outage

.PHONY: parity
parity: $(PLUGIN) ## Compare with the built-in kafka output in one Fluent Bit, or with what was recorded of it; RECORD=1 records anew.
	@if [ -n "$$FLUENT_BIT" ] || command -v fluent-bit >/dev/null; then \
	  $(GO) run ./cmd/parity -plugin $(PLUGIN) $(if $(RECORD),-record $(RECORDED) && $(GO) test ./plugin -run 'TestParity$$' -rewrite); \
	else \
	  echo "There is no Fluent Bit in FLUENT_BIT or PATH: comparing with $(RECORDED)"; \
	  $(GO) test -count=1 ./plugin -run 'TestParity$$' -v; \
	fi

.PHONY: outage
outage: $(PLUGIN) $(HOST) ## Run the matrix of faults on real Kafka; RUN=freeze picks some by name.
	$(GO) test -tags e2e -count=1 -timeout 90m -v ./test/e2e/outage -run 'TestOutage$$' -full $(if $(RUN),-faults '$(RUN)')

.PHONY: outage-docs
outage-docs: ## Make docs/reliability.md and its plots from the results of make outage.
	@mkdir -p docs/outage
	cp $(BUILD)/outage/results.jsonl $(BUILD)/outage/*.svg docs/outage/
	$(GO) test ./test/e2e/outage -run 'TestDocument_IsCurrent$$' -rewrite

.PHONY: herd
herd: ## Simulate thousands of agents in an outage; make docs/scale.md and its plots.
	$(GO) test -count=1 ./test/herd -run 'TestDocument_IsCurrent$$' -rewrite

.PHONY: test
test: check pure unit asan e2e parity ## Run all tests (Java and Maven are needed for real Kafka).

.PHONY: demo
demo: $(PLUGIN) $(HOST) ## Watch an outage: deliver, stop Kafka, keep logging, start Kafka, all delivered.
	$(GO) run ./cmd/demo -plugin $(PLUGIN) -host $(HOST)

.PHONY: bench
bench: $(BROKER) ## Run the benchmarks and, in short, the series of make growth: two minutes.
	@echo "$$(sed -n 's/^model name.*: //p;T;q' /proc/cpuinfo), $$(nproc) processors, $$(uname -sr | sed "s/-.*//"), $$($(GO) env GOVERSION)"
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 0.5s -timeout 2m ./plugin/... ./reconnect/...
	$(GO) run ./test/e2e/growth -only series -rounds 1 -records 50000 -out $(BUILD)/growth.json

.PHONY: growth
growth: $(PLUGIN) $(HOST) $(BROKER) ## Measure growth, start, idle agents and a backlog; make docs/growth.md and its plots. ARGS='-only idle' picks a part.
	$(GO) run ./test/e2e/growth -plugin $(PLUGIN) -host $(HOST) $(ARGS)
	$(GO) test -count=1 ./test/e2e/growth -run 'TestDocument_IsCurrent$$' -rewrite

.PHONY: soak
soak: ## Measure the memory of an agent with a million records waiting, as a part of make growth.
	$(MAKE) growth ARGS='-only soak'

.PHONY: profile
profile: $(BROKER) ## Profile the whole path to a broker; leave flame graphs for the browser in build/profile.
	$(GO) run ./test/e2e/growth -profile $(BUILD)/profile

.PHONY: bench-e2e
bench-e2e: $(PLUGIN) ## Measure against the built-in output in Fluent Bit on real Kafka (without a Fluent Bit: the produce half only); ARGS='-only latency' picks a part.
	$(PRIVATE_BUILD) -o $(BUILD)/speed-private ./test/e2e/speed
	$(GO) run ./test/e2e/speed -plugin $(PLUGIN) -private $(BUILD)/speed-private -out $(BUILD)/speed.json $(ARGS)

.PHONY: bench-e2e-docs
bench-e2e-docs: ## Make docs/throughput.md and its plot from the results of make bench-e2e.
	@mkdir -p docs/throughput
	cp $(BUILD)/speed.json docs/throughput/results.json
	$(GO) test ./test/e2e/speed -run 'TestDocument_IsCurrent$$' -rewrite

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (default 30s).
	packaging/fuzz.sh $(or $(FUZZTIME),30s)

$(LINT): tools/go.mod tools/go.sum
	@mkdir -p $(dir $@)
	cd tools && $(GO) build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: $(LINT) ## Run the linters.
	$(LINT) run ./...

.PHONY: fmt
fmt: $(LINT) ## Format the sources.
	$(LINT) fmt ./...

.PHONY: vet
vet: ## Run go vet.
	$(GO) vet ./...
	$(GO) vet -tags e2e ./test/e2e/...

.PHONY: docs
docs: ## Generate docs/configuration.md, docs/configuration-errors.md, the state table of docs/architecture.md and that of docs/parity.md.
	$(GO) run ./cmd/docgen
	$(GO) test ./plugin/config -run 'TestErrorsDocument_IsCurrent$$' -rewrite
	$(GO) test ./plugin -run 'TestParity$$' -rewrite

.PHONY: docs-check
docs-check: ## Check that the generated documents are current.
	$(GO) run ./cmd/docgen -check
	$(GO) test ./plugin/config -run 'TestErrorsDocument_IsCurrent$$'
	$(GO) test ./plugin -run 'TestParity$$'

.PHONY: tidy
tidy: ## Check that go.mod and go.sum are current.
	$(GO) mod tidy -diff

.PHONY: check
check: vet lint tidy docs-check symbols ## All checks that are no tests.

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BUILD)

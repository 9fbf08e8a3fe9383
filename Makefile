# Needs Go and make. Only `make interop` needs Python 3.11 or newer as well.

GO          ?= go
FUZZTIME    ?= 10s
BENCH       ?= .
STATICCHECK ?= $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: image packages release-check help build test race lint fuzz interop microbench bench bench-peers bench-check check demo clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/ahp-gateway
	$(GO) build -trimpath -o bin/ahp-gateway ./cmd/ahp-gateway

test: ## run the tests
	$(GO) test ./...

race: ## run the tests under the race detector
	$(GO) test -race ./...

lint: ## gofmt, go vet, staticcheck
	@files="$$(gofmt -l .)"; if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...

fuzz: ## run every fuzz target for FUZZTIME each
	@GO="$(GO)" FUZZTIME="$(FUZZTIME)" sh test/fuzz.sh

interop: build ## the official Python SDK before and behind the gateway
	@sh test/interop/run.sh bin/ahp-gateway

microbench: ## run the benchmarks of the packages whose names match BENCH
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

bench: ## measure the gateway in every setting (about half an hour)
	$(GO) run ./bench run

bench-peers: ## measure the gateway beside the proxies that are installed
	$(GO) run ./bench peers

bench-check: ## measure briefly and hold the ratios against bench/thresholds.json
	$(GO) run ./bench check

check: lint test race ## what a change must pass

demo: ## a gateway with two sample policy backends
	$(GO) run ./cmd/ahp-gateway demo

clean: ## remove what make has made
	rm -rf bin dist .cache

# What is released. deploy/release is a module of its own.
image: ## the image into dist/, without a container engine
	$(GO) -C deploy/release run . image --output ../../dist/image --docker ../../dist/image.tar

packages: ## deb and rpm into dist/
	$(GO) -C deploy/release run . packages --output ../../dist

release-check: ## test image, packages, workflows; as root for all of it
	cd deploy/release && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) test ./...

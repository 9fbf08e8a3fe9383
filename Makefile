# Needs Go and make. `make interop` needs Python 3.11 or newer as well, and `make
# examples` what its line says.

GO          ?= go
FUZZTIME    ?= 10s
BENCH       ?= .
STATICCHECK ?= $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help build test race lint fuzz interop microbench bench bench-peers bench-check examples chart chart-api image packages release-check docs check demo clean

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

examples: ## the examples, behind the gateway; needs Python 3.11+, Node.js, Prometheus, Redis as well
	@for module in examples/opa examples/test; do \
		(cd $$module && $(GO) mod tidy -diff && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) test -count=1 ./...) || exit 1; \
	done

chart: ## the Helm chart: render, check and serve what it makes, without a cluster
	cd deploy/helm/test && $(GO) tool -n helm >/dev/null && $(GO) vet ./... && $(GO) test ./...

CONTROLPLANE = $(CURDIR)/.cache/controlplane
KUBERNETES   = $(shell cd deploy/helm/test/controlplane && $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)
KUBEVERSION  = k8s.io/component-base/version

chart-api: ## install the chart in a real API server, which is built first (some minutes)
	cd deploy/helm/test/controlplane && $(GO) build -o $(CONTROLPLANE)/etcd go.etcd.io/etcd/server/v3
	cd deploy/helm/test/controlplane && $(GO) build -o $(CONTROLPLANE)/kube-apiserver -ldflags "-X $(KUBEVERSION).gitVersion=$(KUBERNETES) \
		-X $(KUBEVERSION).gitMajor=$(word 1,$(subst ., ,$(KUBERNETES:v%=%))) -X $(KUBEVERSION).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES:v%=%)))" k8s.io/kubernetes/cmd/kube-apiserver
	cd deploy/helm/test && KUBE_APISERVER=$(CONTROLPLANE)/kube-apiserver ETCD=$(CONTROLPLANE)/etcd $(GO) test -count=1 -run 'TestServer$$' -v ./...

# What is released. deploy/release is a module of its own.
image: ## the image into dist/, without a container engine
	$(GO) -C deploy/release run . image --output ../../dist/image --docker ../../dist/image.tar

packages: ## deb and rpm into dist/
	$(GO) -C deploy/release run . packages --output ../../dist

release-check: ## test image, packages, workflows; as root for all of it
	cd deploy/release && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) test ./...

docs: ## build the documentation site into .cache/site
	@sh docs/build.sh

check: lint test race ## what a change must pass

demo: ## a gateway with two sample policy backends
	$(GO) run ./cmd/ahp-gateway demo

clean: ## remove what make has made
	rm -rf bin dist .cache

# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

# Flags for make run, such as RUN_FLAGS="--secure-port 0".
RUN_FLAGS ?=
# Flags for make cluster, such as CLUSTER_FLAGS="--replicas 3".
CLUSTER_FLAGS ?=
# Flags for make bench, such as BENCH_FLAGS="--policies my-policies.yaml --review my-review.json".
BENCH_FLAGS ?=
# Further flags for go test, such as TEST_FLAGS="-run TestLife -v".
TEST_FLAGS ?=
# What to test, lint or measure.
PACKAGES ?= ./...
# The packages with end-to-end tests. Each runs its clusters on its own; three at a time keep two cores busy.
E2E_PACKAGES ?= ./test/e2e/... ./test/controlplane ./hack/cluster
# How long each fuzz target runs.
FUZZTIME ?= 10s
# Where the recorded cases and their runner are.
CONFORMANCE_DIR ?= ../shared/conformance

# The schemas that the server embeds.
BUILTIN_SCHEMAS := pkg/admission/cluster/internal/builtin/schemas.json.gz

# Which lists of the built-in kinds Kyverno's patches merge.
MERGE_KEYS := pkg/admission/dialect/kyverno/merge/zz_generated.mergekeys.go

# The linter has a module of its own, so that it does not choose the versions of the code generators.
GOLANGCI_LINT := go tool -modfile=hack/tools/lint/go.mod golangci-lint

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the server and the programs of hack/ into bin/.
	go build -o bin/ ./cmd/... ./hack/...

.PHONY: run
run: build ## Run a server, show a verdict, and serve until Ctrl-C; RUN_FLAGS="--secure-port 0" picks a free port.
	@bin/quickstart $(RUN_FLAGS)

.PHONY: cluster
cluster: controlplane build ## Run a cluster with Portcullis in it until Ctrl-C; CLUSTER_FLAGS="--replicas 3". The first build takes minutes.
	@bin/cluster $(CLUSTER_FLAGS)

##@ Test

.PHONY: test
test: ## Run all tests with the race detector; with PACKAGES=./pkg/..., those of some packages and no end-to-end tests.
	hack/test.sh -race $(TEST_FLAGS) $(PACKAGES)
	$(if $(filter ./...,$(PACKAGES)),$(MAKE) --no-print-directory test-e2e)

.PHONY: test-unit
test-unit: ## Run the tests that start no server process, without the race detector.
	hack/test.sh $(TEST_FLAGS) ./cmd/... ./pkg/...

.PHONY: test-e2e
test-e2e: controlplane build ## Run the end-to-end tests, on the control plane and the server that are in bin/.
	hack/test.sh -race -tags e2e -count=1 -p 3 -timeout 45m $(TEST_FLAGS) $(E2E_PACKAGES)

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl into bin/controlplane/, unless they are there.
	hack/controlplane.sh

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME, 10s when not given.
	hack/fuzz.sh $(FUZZTIME)

.PHONY: prove-etcd-outage
prove-etcd-outage: ## Stop etcd for 60 s under 50 reviews a second, and count what goes wrong.
	PORTCULLIS_ETCD_OUTAGE=60s go test -count=1 -v -run '^TestProveEtcdOutage$$' -timeout 10m ./test/process

.PHONY: prove-faults
prove-faults: controlplane ## Kill, hang, restart and replace everything in a cluster under load, and count what goes wrong; takes ten minutes.
	go build -o bin/ ./cmd/...
	PORTCULLIS_FAULTS=full go test -tags e2e -count=1 -v -timeout 60m $(TEST_FLAGS) ./test/e2e/faults

.PHONY: update-faults
update-faults: ## Write docs/faults.md and docs/faults-in-a-cluster.md from the tables of the tests, which verify them.
	go test -count=1 ./test/integration/faults ./test/e2e/faults -update

.PHONY: differential
differential: ## Compare 20,000 random requests with kube-apiserver's plugin, and check that they prove something; takes a minute.
	go test -count=1 -v -run '^TestAsUpstream$$' -timeout 20m $(TEST_FLAGS) ./test/differential

.PHONY: bench
bench: build ## Measure what a verdict over the wire costs, beside a webhook that admits everything; BENCH_FLAGS="--rounds 3".
	@bin/bench $(BENCH_FLAGS)

.PHONY: bench-go
bench-go: ## Run every benchmark of the Go tests.
	go test -run '^$$' -bench . -benchmem $(TEST_FLAGS) $(PACKAGES)

.PHONY: bench-compare
bench-compare: ## Measure the engine beside kube-apiserver's plugin, print the ratios and check their limits; needs 5 GiB and some minutes.
	PORTCULLIS_COMPARE=1 go test -count=1 -v -run '^TestCompare$$' -timeout 30m ./test/bench

.PHONY: conformance
conformance: build ## Judge the recorded cases of CONFORMANCE_DIR and compare with test/conformance/floor.txt.
	@bin/conformance --cases $(CONFORMANCE_DIR)

##@ Verify

.PHONY: verify
verify: verify-scripts verify-boilerplate verify-links verify-tidy verify-codegen verify-openapi verify-mergekeys verify-lint ## Check everything that can be checked without running the code.

.PHONY: lint
lint: verify-lint ## Another name for verify-lint.

.PHONY: verify-lint
verify-lint: ## Check the formatting, the rules of .golangci.yaml and the direction of imports.
	$(GOLANGCI_LINT) run

.PHONY: verify-codegen
verify-codegen: ## Check that the generated code is what the generators make.
	hack/verify-codegen.sh

.PHONY: verify-openapi
verify-openapi: ## Check that the schemas of the built-in kinds are those of kube-apiserver 1.36.3.
	go run ./hack/openapi --verify --file $(BUILTIN_SCHEMAS)

.PHONY: verify-mergekeys
verify-mergekeys: ## Check that patches merge the lists that kyaml would merge.
	go run ./hack/mergekeys --verify --file $(MERGE_KEYS)

.PHONY: verify-tidy
verify-tidy: ## Check that every go.mod is tidy.
	hack/tidy.sh -diff

.PHONY: verify-boilerplate
verify-boilerplate: ## Check that every file of code begins with the license header.
	hack/verify-boilerplate.sh

.PHONY: verify-links
verify-links: ## Check that every link of the documents leads to a file, and to a heading of it.
	go run ./hack/links

.PHONY: verify-scripts
verify-scripts: ## Check that every script is executable, short and stops at the first error.
	hack/verify-scripts.sh

##@ Update

.PHONY: update
update: update-tidy update-codegen update-openapi update-mergekeys update-lint ## Make what verify checks, as far as a program can.

.PHONY: update-codegen
update-codegen: ## Generate the code.
	hack/update-codegen.sh

.PHONY: update-openapi
update-openapi: ## Write the schemas of the built-in kinds.
	go run ./hack/openapi --file $(BUILTIN_SCHEMAS)

.PHONY: update-mergekeys
update-mergekeys: ## Write which lists patches merge, from kyaml's schemas.
	go run ./hack/mergekeys --file $(MERGE_KEYS)

.PHONY: update-tidy
update-tidy: ## Tidy every go.mod.
	hack/tidy.sh

.PHONY: update-lint
update-lint: ## Format the code and fix what the linters can fix.
	$(GOLANGCI_LINT) run --fix

.PHONY: update-floor
update-floor: build ## Raise test/conformance/floor.txt to what passes now.
	@bin/conformance --cases $(CONFORMANCE_DIR) --raise

.PHONY: clean
clean: ## Remove what was built; the data of make run and make cluster stays.
	rm -rf bin

# Every target has one line of help: `make help`.
.DEFAULT_GOAL := help
.PHONY: help test lint explore lab-up lab-down bench bench-policies bench-api bench-dns bench-lb bench-start conformance

N ?= 3
NAME ?= default
ROUNDS ?= 20
RESOLVER ?= atoll
CARGO ?= cargo

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## Run every test: unit and contract tests, then real clusters (SKIPPED where they can't run; a failure with CI=true)
	@tools/test

lint: ## Check formatting, run clippy without warnings, and keep the pure crates pure
	@tools/lint

explore: ## Run the property tests with fresh seeds, ROUNDS=20 times
	@tools/explore $(ROUNDS)

lab-up: ## Start N=3 real clusters on this host and print the kubeconfig (NAME=default)
	@$(CARGO) build --quiet --workspace --bin lab
	@target/debug/lab up --name $(NAME) --clusters $(N)

lab-down: ## Stop the lab and remove it, whatever state it is in (NAME=default)
	@$(CARGO) build --quiet --workspace --bin lab
	@target/debug/lab down --name $(NAME)

bench: ## Measure how fast changes propagate, against a floor in the same run (BENCH="--quick -o json", "--path mcs")
	@$(CARGO) build --quiet --workspace --release --bins
	@target/release/bench propagation $(BENCH)

bench-policies: ## Measure how fast templates in the hub become copies in members, against a floor (BENCH="--objects 100 -o json")
	@$(CARGO) build --quiet --workspace --release --bins
	@target/release/bench policies $(BENCH)

bench-dns: ## Measure atoll dns beside CoreDNS's own option, by dnsperf (BENCH="--rounds 1 -o json")
	@$(CARGO) build --quiet --workspace --release --bins
	@target/release/bench dns $(BENCH)

bench-api: ## Measure the embedded API and kube-apiserver on etcd side by side (BENCH="--objects 1000 -o json")
	@$(CARGO) build --quiet --workspace --release --bins
	@target/release/bench api $(BENCH)

bench-lb: ## Measure atoll lb beside HAProxy, nginx, a bare nftables rule and no balancer; as root (BENCH="--rounds 1 -o json")
	@$(CARGO) build --quiet --workspace --release --bins
	@target/release/bench lb $(BENCH)

bench-start: ## Measure how long clusters take to start, whole and API-only
	@$(CARGO) build --quiet --workspace --release --bin bench
	@target/release/bench start

conformance: ## Run a compiled official MCS suite on two lab clusters: make conformance SUITE=path/to/suite (RESOLVER=multicluster)
	@$(CARGO) build --quiet --workspace --bins
	@target/debug/lab conformance --suite "$(SUITE)" --resolver $(RESOLVER)

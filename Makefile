# Every target has one line of help: `make help`.
.DEFAULT_GOAL := help
.PHONY: help check test test-long lint deny advisories sbom check-commits explore fuzz dist lab-up lab-down bench bench-policies bench-api bench-attack bench-dns bench-lb bench-start conformance

N ?= 3
NAME ?= default
ROUNDS ?= 20
SECONDS ?= 60
TARGETS ?=
RESOLVER ?= atoll
BASE ?= origin/main
CARGO ?= cargo
# Programs with the features that tests turn on, so that nothing is built twice: see CONTRIBUTING.md.
DEBUG = $(CARGO) test --quiet --workspace --no-run
# What is shipped is what is measured.
DIST = $(CARGO) build --quiet --workspace --profile dist --bins

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: ## The inner loop: lint, unit tests and tests in one process; no clusters, no root
	@tools/lint
	@tools/test pure

test: ## The tests that CI runs: unit tests, tests in one process and on real clusters (SKIPPED where they can't run; a failure with CI=true)
	@tools/test

test-long: ## Tests that are too long to wait for at every change; write their result into docs/status.md
	@tools/test long

lint: ## Check formatting, clippy without warnings, pure crates, documentation, and the toolchain's version
	@tools/lint

deny: ## Check dependencies: bans, licences and sources, by cargo-deny (built once, into the lab's cache)
	@tools/deny check bans licenses sources

advisories: ## Check dependencies for known vulnerabilities, by cargo-deny; needs the advisory database from the network
	@tools/deny check advisories

sbom: ## List what the program is made of, as CycloneDX, in target/sbom (cargo-cyclonedx is built once, into the lab's cache)
	@tools/sbom

check-commits: ## Check that every commit since BASE=origin/main compiles
	@tools/check-commits $(BASE)

explore: ## Run the property tests with fresh seeds, ROUNDS=20 times
	@tools/explore $(ROUNDS)

fuzz: ## Coverage-guided fuzzing of everything that reads what others send, SECONDS=60 for each target (TARGETS="dns json")
	@tools/fuzz $(SECONDS) $(TARGETS)

dist: ## Build the program that is shipped, target/dist/atoll, and print its size
	@$(CARGO) build --profile dist --package atoll --bin atoll
	@ls -l target/dist/atoll | awk '{ printf "target/dist/atoll: %.1f MB\n", $$5 / 1000000 }'

lab-up: ## Start N=3 real clusters on this host and print the kubeconfig (NAME=default)
	@$(DEBUG) --test lab
	@target/debug/lab up --name $(NAME) --clusters $(N)

lab-down: ## Stop the lab and remove it, whatever state it is in (NAME=default)
	@$(DEBUG) --test lab
	@target/debug/lab down --name $(NAME)

bench: ## Measure how fast changes propagate, against a floor in the same run (BENCH="--quick -o json", "--path mcs")
	@$(DIST)
	@target/dist/bench propagation $(BENCH)

bench-policies: ## Measure how fast templates in the hub become copies in members, against a floor (BENCH="--objects 100 -o json")
	@$(DIST)
	@target/dist/bench policies $(BENCH)

bench-dns: ## Measure atoll dns beside CoreDNS's own option, by dnsperf (BENCH="--rounds 1 -o json")
	@$(DIST)
	@target/dist/bench dns $(BENCH)

bench-api: ## Measure the embedded API and kube-apiserver on etcd side by side (BENCH="--objects 1000 -o json")
	@$(DIST)
	@target/dist/bench api $(BENCH)

bench-attack: ## Measure what honest users feel of one hostile user and 500 stalled connections (BENCH="--only rules --seconds 2 -o json")
	@$(DIST)
	@target/dist/bench attack $(BENCH)

bench-lb: ## Measure atoll lb beside HAProxy, nginx, a bare nftables rule and no balancer; as root (BENCH="--rounds 1 -o json")
	@$(DIST)
	@target/dist/bench lb $(BENCH)

bench-start: ## Measure how long clusters take to start, whole and API-only
	@$(DIST)
	@target/dist/bench start

conformance: ## Run a compiled official MCS suite on two lab clusters: make conformance SUITE=path/to/suite (RESOLVER=multicluster)
	@$(DEBUG)
	@target/debug/lab conformance --suite "$(SUITE)" --resolver $(RESOLVER)

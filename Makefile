# SPDX-License-Identifier: Apache-2.0
.DEFAULT_GOAL := help
.PHONY: help build deb release demo guest check test test-on-host test-beside test-kernels kernels test-arm64 test-cpus soak soak-vm generate lint picture docs test-docs test-docs-root setup setup-dev clean

BIN := bin/pcn
GUEST := internal/launch/guest/pcn-guest
# On this machine's kernel, where names of congestion controls are global: one at a time. They
# measure rates and times.
ON_HOST := ./loader/... \
	$(addprefix ./tests/,hosts doubt soak testbed boot)
# The longest are the last two, which run at the same time: the first has one microVM, and the other
# begins with tests that leave a CPU idle.
LAST := ./qdisc-npecn ./tests/e2e

help: ## show this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what running needs (apt), and the microVM's kernel
	scripts/setup.sh

setup-dev: ## as setup, and what building the BPF programs and testing need
	scripts/setup.sh --dev

build: guest ## build bin/pcn, static
	scripts/build.sh $(BIN)

guest: # build what microVMs run, which is built into bin/pcn
	scripts/build-guest.sh $(GUEST)

VERSION ?= $(shell scripts/version.sh)
ARCH ?= amd64

deb: guest ## make the Debian package bin/pcn_VERSION_ARCH.deb, ARCH=amd64 or arm64
	scripts/build-deb.sh $(VERSION) $(ARCH)

release: ## make the files of a release: bin/release/VERSION, with VERSION=x.y.z
	scripts/release.sh $(VERSION)

demo: setup build ## run Fig. 2 of the PCN paper: PFC alone and PCN
	rm -rf runs/demo
	$(BIN) run hol --algo pfc,pcn --duration 19ms --out runs/demo

check: guest lint ## lint, and run the tests that need neither root nor the microVM: under 2 minutes
	scripts/unit-tests.sh

# make lint vets, so that the tests need not.
test: setup-dev build ## run all tests, also those in the microVM
	$(MAKE) --no-print-directory --jobs 2 --keep-going test-on-host test-beside

test-on-host: # needs little CPU, but at once; only root can have that, and most of it needs root
	nice -n -10 go test -vet=off -p 1 -timeout 15m $(ON_HOST)

test-beside: # all others, with the CPU that test-on-host leaves
	nice -n 19 go test -vet=off -p 2 -timeout 40m \
		$$(go list ./... | grep -vxF "$$(go list $(ON_HOST) $(LAST))") $(LAST)
	CGO_ENABLED=1 nice -n 19 go test -race -vet=off -run '^(TestTiesInParts|TestRetire)$$' ./internal/sim

test-kernels: setup-dev ## test what works on each kernel, and as root on this machine's own
	PCN_OWN_KERNEL=1 go test -count 1 -v ./tests/kernels

kernels: setup-dev ## try all objects on each of Debian's kernels from 6.12 on, half a CPU minute each: nightly
	scripts/kernels.sh $(KERNELS)

test-cpus: setup-dev ## test the ports on four CPUs of a microVM by the clock: minutes
	go test -count 1 -v -timeout 30m -run '^TestSeveralCPUs$$' ./qdisc-npecn -cpus-for 2m

test-arm64: guest ## test pcn host on Debian's kernel for arm64, which QEMU emulates: a minute or two
	scripts/setup.sh --dev --arm64
	PCN_ARM64=1 go test -count 1 -v -timeout 30m -run '^TestARM64$$' ./tests/kernels

SECONDS ?= 3600
SEED ?= $(shell date +%s)

soak: build ## run pcn host for SECONDS among faults, as root: docs/soak.md
	go build -o bin/soak ./tests/soak
	bin/soak --seconds $(SECONDS) --seed $(SEED) --pcn $(BIN)

ROUND ?= 10m
RATE ?= 50

soak-vm: build ## the same in the microVM, where CPUs and the clock change too; needs no root
	CGO_ENABLED=0 go build -o bin/soak ./tests/soak
	bin/soak --vm --seconds $(SECONDS) --round $(ROUND) --rate $(RATE) --seed $(SEED) --pcn $(BIN)

generate: ## compile the programs again, for BPF and for the simulator, with clang-19
	go generate ./...

lint: ## gofmt, go vet, staticcheck, clang-format, shellcheck, line lengths
	scripts/lint.sh

docs: build ## make the documentation's web site: bin/site/index.html
	scripts/scheme-figures.sh bin/figures
	go run ./docs/site -out bin/site -figures bin/figures

test-docs: build ## run the commands of the documents, also those that take minutes
	PCN_DOCS=minutes go test -count 1 -v -timeout 120m ./tests/docs

test-docs-root: build ## as root, in a network namespace: run the documents' commands that need root
	PCN_DOCS=root go test -count 1 -v -timeout 30m ./tests/docs

picture: ## take the README's picture out of the demo's report
	scripts/picture.sh

clean: ## remove what was built and run
	rm -rf bin runs $(GUEST)

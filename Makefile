# iNOF: see README.md. Everything is built into bin/, nothing is installed.
GO        ?= go
PKGS      ?= ./...
FUZZTIME  ?= 20s
CHAOS     ?= 3m
FAILOVER  ?= .
BFD       ?= 10ms
FENCE     ?= ci
MODEL     ?= 1
SEEDS     ?= 2000
BIN       := bin
VERSION   := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS   := -X github.com/openinof/inof/internal/api.Version=$(VERSION)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

export CGO_ENABLED ?= 0

# What a user's shell sets for daemons would override what tests and labs set.
INOF_KEPT := INOF_BIN_DIR INOF_SONIC_VS INOF_LAB_ROOT INOF_VM_DIR INOF_REQUIRE_NETNS INOF_SKIPPED INOF_MODEL INOF_BENCH_% INOF_FATTREE% INOF_CHAOS_SEED
unexport $(filter-out $(INOF_KEPT),$(filter INOF_%,$(.VARIABLES)))

.PHONY: help needs build tools deb deb-vm image demo vm failover fence test race model sim lint bench fuzz chaos clean

help: ## what each target does
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo test race chaos bench: PROGRAMS := ip
needs:
	@scripts/needs $(GO) $(PROGRAMS)

build: needs ## inofd, inofctl and snsd into bin/
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/inofd ./cmd/inofctl ./cmd/snsd

demo: build ## a lab fabric on real kernel links: hosts register, faults strike, notices arrive
	$(BIN)/inofctl demo

deb: PROGRAMS := dpkg-deb
deb: needs ## Debian packages of inofd and snsd into out (DEB_ARCH=arm64: for another architecture)
	GO=$(GO) scripts/deb out

image: needs ## the tree of the container image in out/image, and with docker, podman or buildah the image inof (LAB=1: inof-lab too)
	GO=$(GO) scripts/image out/image

deb-vm: PROGRAMS := qemu-system-x86_64 ip dpkg-deb mmdebstrap cpio
deb-vm: needs vm ## both packages installed, started, upgraded and purged on a Debian in a virtual machine (needs root)
	scripts/debian out/debian out/vm
	INOF_DEBIAN=$(CURDIR)/out/debian $(GO) test -count 1 -v -timeout 20m -run TestPackagesOnDebian ./testbed/units

vm: PROGRAMS := qemu-system-x86_64 ip
vm: needs ## the kernel of Debian 13 for the virtual machines of labs, from Debian's packages, into out/vm
	scripts/vm out/vm

failover: PROGRAMS := qemu-system-x86_64 ip
failover: needs vm ## how long I/O stands still when a path fails, on Debian's kernel: FAILOVER (default all) is a pattern of "fault/method", BFD its interval
	INOF_FAILOVER='$(FAILOVER)' INOF_FAILOVER_BFD='$(BFD)' $(GO) test -count 1 -v -timeout 0 -run TestFailOver ./testbed/failover

fence: PROGRAMS := qemu-system-x86_64 ip
fence: needs vm ## no acknowledged write is lost when a path fails: a few rounds; FENCE=all: each combination three times and all raw mechanisms, or a pattern of place/cause/policy/by
	INOF_FENCE='$(FENCE)' INOF_FENCE_CASES='$(if $(filter all,$(FENCE)),.)' $(GO) test -count 1 -v -timeout 0 -run '$(if $(filter all,$(FENCE)),.,TestFence$$)' ./testbed/fence

tools: needs ## clients of gNMI that tests run, gnmi_cli and telegraf, built into the user's cache
	GO=$(GO) scripts/tools

# Not from the cache: Go does not see that a program of another project was installed meanwhile.
test: build ## every test; ends with the list of those that this machine cannot run, and what to install for them
	@! command -v qemu-system-x86_64 >/dev/null || scripts/vm out/vm || echo "the tests go on without virtual machines"
	GO=$(GO) scripts/test -count 1 -timeout 10m $(PKGS)

race: needs ## the same under the race detector, but for simulators of one goroutine and whole labs (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -timeout 15m $$($(GO) list $(PKGS) | grep -v -E -e '/model(/(control|report|scenario|storage|workload))?$$' -e /testbed)

model: ## the dataplane model against the published results, and every shipped scenario (MODEL=short: fewer seeds)
	INOF_MODEL=$(MODEL) $(GO) test -count 1 -timeout 30m ./model/...

sim: ## whole fabrics in virtual time under seeded faults: SEEDS (default 2000) with one reflector, half as many with two, a 20th with a cluster, and one of 1,000 devices
	$(GO) test ./testbed/sim -run TestSeeds -count 1 -timeout 1h -v -sim.first 1000 -sim.seeds $(SEEDS)
	$(GO) test ./testbed/sim -run TestSeeds -count 1 -timeout 1h -v -sim.first 1000 -sim.seeds $$(($(SEEDS) / 2)) -sim.reflectors 2
	$(GO) test ./testbed/sim -run TestClusterSeeds -count 1 -timeout 1h -v -sim.first 1000 -sim.seeds $$(($(SEEDS) / 20))
	$(GO) test ./testbed/sim -run TestScale -count 1 -timeout 15m -v -sim.scale

lint: ## gofmt, go vet, staticcheck
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); if [ -n "$$out" ]; then echo "not gofmt'ed:"; echo "$$out"; exit 1; fi
	$(GO) vet $(PKGS)
	$(GO) run $(STATICCHECK) $(PKGS)
	@set -e; for dir in $$(scripts/modules); do echo "== $$dir"; (cd $$dir && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...); done

bench: build ## every benchmark, and fault-to-notice on a real lab beside its bound
	$(GO) test -run '^$$' -bench . -benchmem $(PKGS)
	$(BIN)/inofctl lab bench

fuzz: ## each fuzz target for FUZZTIME (default 20s)
	@set -e; for pkg in $$($(GO) list $(PKGS)); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; done; done

chaos: needs ## random faults on a lab for CHAOS (default 3m), and daemons killed for a minute: no notice wrong or missing
	INOF_CHAOS=$(CHAOS) $(GO) test -count 1 -v -timeout 0 -run 'TestChaos|TestDaemonsKilled' ./testbed/chaos

clean: ## remove what the targets above made
	rm -rf $(BIN) out

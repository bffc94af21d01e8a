# One profile everywhere (`--release`), so that nothing is compiled twice; only `router` has its own.
# Everything is built as the user; root is asked for only where a command needs it.

CARGO  ?= cargo
SUDO   := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -E env PATH=$$PATH")
BUILT  := $(or $(CARGO_TARGET_DIR),target)/release
BIN    := $(BUILT)/hawser
# Packages are installed without a question: tshark's asks one.
APT    := env DEBIAN_FRONTEND=noninteractive apt-get
# Programs that the tests run in their namespaces: package (or several, with +) and command.
TOOLS  := python3:python3 iproute2:ip procps:sysctl iputils-ping:ping ethtool:ethtool nftables:nft openssl:openssl tshark:tshark systemd:systemd-analyze \
	dbus-daemon:dbus-daemon strace:strace dnsmasq-base:dnsmasq busybox:busybox udhcpc:udhcpc udhcpd:udhcpd iperf3:iperf3 chromium:chromium openvpn:openvpn curl:curl \
	prometheus:promtool tmux:tmux nginx-light:/usr/sbin/nginx openssh-client:ssh openssh-server:/usr/sbin/sshd libfaketime:/usr/lib/*/faketime/libfaketime.so.1 etcd-server:etcd etcd-client:etcdctl e2fsprogs:mkfs.ext4 postgresql:/usr/lib/postgresql/*/bin/postgres
# While this stands there, packages of servers are installed without starting them (invoke-rc.d(8)): tests run the
# programs themselves.
POLICY := /usr/sbin/policy-rc.d
# A processor of 32 bits that the product must be right for, too, and the compiler of what it has of C (ring) for that.
CROSS  := armv7-unknown-linux-gnueabihf
CROSS_TOOLS := gcc-arm-linux-gnueabihf+libc6-dev-armhf-cross:arm-linux-gnueabihf-gcc

# The dispatcher bypass's program (docs/scion.md). One version of one compiler, so that the object can be compared byte
# by byte.
BPF         := crates/hawser-scion/bpf
BPF_CLANG   := clang-14
BPF_VERSION := 14.0.6
BPF_FLAGS   := -O2 -target bpf -mcpu=v3 -Wall -Wextra -Werror

.PHONY: name-servers compat dist dist-test dist-tools endure demo hub-test page-test test scion check prose cross cross-tools router bench measure metrics-test results build unit tools fuzz scion-golden bpf bpf-check bpf-tools

build:
	$(CARGO) build --release --workspace

## demo: two links, one cut and brought back under a running transfer (root)
demo:
	$(CARGO) build --release -p hawser
	$(SUDO) $(BIN) demo

## test: everything, in namespaces of the tests' own where it needs root; beside it a command, if one is given
BESIDE ?=
test: tools name-servers
	.ci/tests $(BESIDE)

## unit: the tests that need no root: the core, whole sessions in virtual time, decoding, what the shim and
## configurations decide
unit:
	$(CARGO) test --release -p hawser-core -p hawser-decode -p hawser-etcd -p hawser-hub -p hawser-sim
	$(CARGO) test --release -p hawser-shim --lib
	$(CARGO) test --release -p hawser-config -p hawser-portal -p hawser-shim --test api --test config_golden --test documentation --test web

## scion: the reference services that SCION tests run, into the user's cache (Go; a minute on two idle processors)
scion:
	$(CARGO) build --release -p hawser
	$(BIN) scion net build

## compat: today's portal against another release's, both ways; the last tag's, or that of any tag or commit: make
## compat TAG=...
TAG    ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
COMPAT := $(CURDIR)/target/compat
compat: tools
	@[ -n "$(TAG)" ] || { echo "error: no release has a tag yet: name a commit, as in make compat TAG=main" >&2; exit 1; }
	rm -rf $(COMPAT)/source && mkdir -p $(COMPAT)/source && git archive $(TAG) | tar -x -C $(COMPAT)/source
	cd $(COMPAT)/source && env -u RUSTC_WORKSPACE_WRAPPER CARGO_TARGET_DIR=$(COMPAT)/build $(CARGO) build --release -p hawser --no-default-features
	$(CARGO) test --release -p hawser --features compat --test compat --no-run
	$(SUDO) env HAWSER_OTHER=$(COMPAT)/build/release/hawser $(CARGO) test --release -p hawser --features compat --test compat

## endure: what lasts for hours, and is no part of CI: a soak under faults, an idle bond, restarts, attacks at full
## length; or one case: make endure CASE=soak SOAK_S=7200 SEED=1. The figures are below target/tmp/endure
SOAK_S ?= 7200
IDLE_S ?= 3600
SEED   ?= 1
# What the case suspend boots in QEMU: Debian's kernel for virtual machines, and busybox, unpacked and never installed.
GUEST  := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/guest
endure: tools
	@$(MAKE) --no-print-directory tools TOOLS="qemu-system-x86:qemu-system-x86_64 dpkg:dpkg-deb"
	@[ -e $(GUEST)/bin/busybox ] || { mkdir -p $(GUEST) && cd $(GUEST) && \
	  apt-get download busybox-static $$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: //p') && \
	  for package in *.deb; do dpkg-deb -x $$package . || exit 1; done && rm *.deb; }
	$(CARGO) test --release -p hawser --features endure --test endure --no-run
	$(SUDO) env HAWSER_GUEST=$(GUEST) HAWSER_SOAK_S=$(SOAK_S) HAWSER_IDLE_S=$(IDLE_S) HAWSER_SEED=$(SEED) \
	  $(CARGO) test --release -p hawser --features endure --test endure -- --test-threads 1 --nocapture $(filter-out all,$(CASE))

## hub-test: a hub of real processes, etcd and FRR (root; an hour): members killed, silent, stopped or drained, etcd away,
## under traffic; or one case: make hub-test CASE=killed; or each 20 times, in two and a half hours: make hub-test
## HUB_RUNS=20. Figures: target/tmp/hub-processes.json, and .md
HUB_RUNS ?=
hub-test: tools
	@$(MAKE) --no-print-directory tools TOOLS="frr:/usr/lib/frr/zebra frr:vtysh conntrackd:conntrackd conntrack:conntrack binutils:readelf"
	$(CARGO) test --release -p hawser --features endure --test hub --no-run
	$(SUDO) $(HUB_RUNS:%=env HAWSER_HUB_RUNS=%) $(CARGO) test --release -p hawser --features endure --test hub -- --test-threads 1 --nocapture $(filter-out all,$(CASE))

## page-test: the page at length (root): every story of a link and the time until it is seen, axe-core on every view,
## attacks, cost; and its pictures in docs/pictures, made anew. axe-core comes from npm
AXE         := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/axe
AXE_VERSION := 4.14.1
page-test: tools
	@$(MAKE) --no-print-directory tools TOOLS=npm:npm
	mkdir -p $(AXE) && cd $(AXE) && npm pack --silent axe-core@$(AXE_VERSION) >/dev/null && tar -xzf axe-core-$(AXE_VERSION).tgz
	$(CARGO) test --release -p hawser --features page-test --test page --no-run
	$(SUDO) env HAWSER_AXE=$(AXE)/package/axe.min.js \
	  $(CARGO) test --release -p hawser --features page-test --test page -- --test-threads 1 --nocapture

## metrics-test: a real Prometheus scrapes a bond for five minutes, with a cut in it (root; six minutes)
metrics-test: tools
	$(CARGO) test --release -p hawser --features endure --test tunnel --no-run
	$(SUDO) $(CARGO) test --release -p hawser --features endure --test tunnel -- --nocapture metrics::long

## check: formatting, words, links, lints (the fence around the core among them), documentation; as for another
## processor, if one is named: make check FOR=armv7-unknown-linux-gnueabihf
FOR     ?=
CHECKED := --release --workspace --features hawser/compat,hawser/endure,hawser/page-test $(FOR:%=--target %)
# Lints, and shares with documentation what it compiled.
LINTED  := RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/.ci/lint
DOCUMENTED := $(LINTED) RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links"
check: prose
	$(LINTED) $(CARGO) check $(CHECKED) --all-targets
# With an example, what tests depend on is depended on here, too: so nothing is checked twice.
	$(DOCUMENTED) $(CARGO) doc $(CHECKED) --lib --bins --example hub --no-deps --quiet

## cross: prose, and for a router's processor of 32 bits what a router runs (make router), linted and documented;
## make dist compiles for aarch64
ROUTER := --release -p hawser -p hawser-config -p hawser-core -p hawser-net -p hawser-portal --no-default-features
cross: cross-tools prose
	$(LINTED) $(CARGO) check $(ROUTER) --target $(CROSS)
	$(DOCUMENTED) $(CARGO) doc $(ROUTER) --target $(CROSS) --no-deps --quiet

## prose: formatting, words and links
prose:
	.ci/words && .ci/links
	$(CARGO) fmt --all --check
# No example in documentation is code, so that none is to be compiled and run.
	@awk 'FNR == 1 { inside = 0 } /^ *\/\/[\/!] ```/ { if (!inside && !/```text$$/) { print FILENAME ":" FNR ": not ```text"; bad = 1 } \
	  inside = !inside } END { exit bad }' $$(git ls-files '*.rs')

cross-tools:
	@$(MAKE) --no-print-directory tools TOOLS="$(CROSS_TOOLS)"
	@[ -d "$$(rustc --print target-libdir --target $(CROSS))" ] || rustup target add $(CROSS) \
	|| { echo "error: no standard library for $(CROSS), and no rustup that adds it" >&2; exit 1; }

## bpf: the dispatcher bypass's program, compiled anew; its object is committed, so that nobody else needs the compiler
bpf: bpf-tools
	cd $(BPF) && $(BPF_CLANG) $(BPF_FLAGS) -c dispatch.bpf.c -o dispatch.bpf.o && LC_ALL=C sha256sum *.c *.h *.o > SHA256SUMS

## bpf-check: that the committed object is what its source compiles to
bpf-check: bpf-tools
	cd $(BPF) && $(BPF_CLANG) $(BPF_FLAGS) -c dispatch.bpf.c -o - | cmp - dispatch.bpf.o \
	|| { echo "error: the object differs from its source: run make bpf, and commit what it makes" >&2; exit 1; }

bpf-tools:
	@$(MAKE) --no-print-directory tools TOOLS="$(BPF_CLANG):$(BPF_CLANG)"
	@$(BPF_CLANG) --version | grep -qF "version $(BPF_VERSION)" \
	|| { echo "error: $(BPF_CLANG) $(BPF_VERSION) is needed (Debian 12 has it), not $$($(BPF_CLANG) --version | head -n 1)" >&2; exit 1; }

## dist: what is released, below target/packages: static binaries, Debian packages, an OCI image, SHA256SUMS; for some
## processors alone: make dist PROCESSORS=x86_64. It needs rustup and pip for what Debian does not have
PROCESSORS ?= x86_64 aarch64 armv7
PACKAGES   := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/packages
VERSION    := $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# Zig is the C compiler for musl, of one version: PyPI has it.
ZIG        := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/zig
ZIG_VERSION := 0.17.1
export HAWSER_ZIG := $(ZIG)/bin/python
dist: dist-tools
	for processor in $(PROCESSORS); do \
	  dist/build product $$processor $(PACKAGES) && dist/deb $$processor $(PACKAGES) || exit 1; \
	done
	dist/image $(PACKAGES) $(VERSION) $(PROCESSORS)
	cd $(PACKAGES) && sha256sum $$(ls | grep -v -e SHA256SUMS -e parts) > SHA256SUMS
	ls -l $(PACKAGES)

## router: a small static hawser without demo, lab and SCION, for a router's flash (docs/openwrt.md)
router: dist-tools
	for processor in $(PROCESSORS); do dist/build router $$processor $(PACKAGES) || exit 1; done
	cd $(PACKAGES) && sha256sum $$(ls | grep -v -e SHA256SUMS -e parts) > SHA256SUMS
	ls -l $(PACKAGES)

## dist-test: that what make dist made is small, static, runs on its processor, installs on these systems, and starts
## from the image (root); that the quick start works on booted systems as its pages say, and fail = "closed" holds
## there. Ubuntu's roots need Ubuntu's keyring: make dist-test SUITES="bookworm trixie noble"
SUITES ?= bookworm trixie
DIST_TEST_TOOLS := qemu-user-static:qemu-arm-static file:file mmdebstrap:mmdebstrap umoci:umoci crun:crun \
	systemd-container:systemd-nspawn iproute2:ip nftables:nft curl:curl
dist-test:
	@[ -e $(PACKAGES)/SHA256SUMS ] || { echo "error: nothing was made yet: make dist" >&2; exit 1; }
	@$(MAKE) --no-print-directory tools TOOLS="$(DIST_TEST_TOOLS)"
	dist/test-binaries $(PACKAGES) $(PROCESSORS)
	$(SUDO) dist/test-deb $(PACKAGES) $(SUITES)
	$(SUDO) dist/test-image $(PACKAGES) $(VERSION)
	$(SUDO) dist/test-start $(PACKAGES) $(VERSION) $(SUITES)
	$(SUDO) dist/test-closed $(PACKAGES) $(VERSION) $(firstword $(SUITES))

DIST_TOOLS := dpkg-dev+xz-utils:dpkg-deb zopfli:zopfli qemu-user-static:qemu-arm-static python3-venv+python3:python3 \
	gcc-aarch64-linux-gnu+libc6-dev-arm64-cross:aarch64-linux-gnu-gcc $(CROSS_TOOLS)
dist-tools:
	@[ "$$(uname -m)" = x86_64 ] || { echo "error: packages are made on x86-64, and this is $$(uname -m)" >&2; exit 1; }
	@command -v rustup >/dev/null || { echo "error: no rustup, to add the standard libraries of other processors" >&2; exit 1; }
	@$(MAKE) --no-print-directory tools TOOLS="$(DIST_TOOLS)"
	@. dist/processors.sh && for processor in $(PROCESSORS); do \
	  target=$$(target_of $$processor) && rustup target add $$target $$(shared_target_of $$processor) 2>&1 | grep -v 'up to date' >&2; \
	  [ -d "$$(rustc --print target-libdir --target $$target)" ] || { echo "error: rustup has no standard library for $$target" >&2; exit 1; }; \
	done
	@$(HAWSER_ZIG) -c 'import importlib.metadata as m; assert m.version("ziglang") == "$(ZIG_VERSION)"' 2>/dev/null || { \
	  echo "installing ziglang $(ZIG_VERSION) into $(ZIG)" >&2; \
	  python3 -m venv $(ZIG) && $(ZIG)/bin/pip install --quiet ziglang==$(ZIG_VERSION) \
	  || { echo "error: no ziglang $(ZIG_VERSION) from pip" >&2; exit 1; }; \
	}

## bench: each step of the packet's story; then Hawser beside plain forwarding, wireguard-go and the yardstick
## (15 minutes, root, and Go to build wireguard-go): the lab's group bench, into target/lab/bench.
## Results that were saved before are compared with: make bench SAVED=DIR
RUNS  ?= 3
SAVED ?=
LAB   := target/lab
bench:
	$(CARGO) bench -p hawser-bench --bench seal --bench story
	$(CARGO) build --release --workspace --bins
	$(SUDO) rm -rf $(LAB)/bench
	$(SUDO) $(BIN) lab run bench --reps $(RUNS) --out $(LAB)/bench
	[ -z "$(SAVED)" ] || $(BIN) lab compare $(SAVED) $(LAB)/bench

## measure: the lab's groups bond and shim, or a scenario, or a part of one: make measure CASE=bond-links ONLY=equal.
## CASE=fidelity is the emulated links' own. What target/lab holds is not measured again: an interrupted run goes on
CASE ?= all
ONLY ?=
measure:
ifeq ($(CASE),fidelity)
	$(CARGO) build --release -p hawser-wire --example fidelity
	$(SUDO) $(BUILT)/examples/fidelity
else
	$(CARGO) build --release --workspace --bins
	for case in $(if $(filter all,$(CASE)),bond shim,$(CASE)); do \
	  $(SUDO) $(BIN) lab run $$case $(addprefix --only=,$(ONLY)) --out $(LAB)/$$case || exit 1; \
	done
endif

## results: saved results and their page anew, by group; an interrupted run goes on. It takes days: make results
## GROUPS=bench
GROUPS ?= bond bench watched shim links drives proxy aggregation testbed environments scion shila
results:
	$(CARGO) build --release --workspace --bins
	for group in $(GROUPS); do \
	  $(SUDO) $(BIN) lab run $$group --out $(LAB)/results/$$group || exit 1; \
	  $(BIN) lab save $(LAB)/results/$$group docs/results/runs || exit 1; \
	done
	$(BIN) lab tables
	$(BIN) lab stale docs/results/runs

## fuzz: each decoder for a minute (needs cargo-fuzz and a nightly toolchain)
fuzz:
	for target in $$(cargo +nightly fuzz list); do cargo +nightly fuzz run $$target -- -max_total_time=60; done

## scion-golden: packets of the reference's encoder are made again, and must be those in the repository (needs Go)
SCION_PACKETS := crates/hawser-scion/golden/vectors.json fuzz/seeds/scion_packet
scion-golden:
	cd crates/hawser-scion/golden && go run ./vectors -seeds ../../../fuzz/seeds/scion_packet > vectors.json
	git diff --exit-code -- $(SCION_PACKETS)

tools:
	@packages=$$(for tool in $(TOOLS); do command -v $${tool#*:} >/dev/null || echo $${tool%:*} | tr + ' '; done); \
	[ -n "$$packages" ] || exit 0; \
	echo "installing" $$packages >&2; \
	[ -e $(POLICY) ] || { trap '$(SUDO) rm -f $(POLICY)' EXIT; printf '#!/bin/sh\nexit 101\n' | $(SUDO) install -m 755 /dev/stdin $(POLICY); }; \
	$(SUDO) $(APT) install -y --no-install-recommends $$packages >/dev/null \
	|| { $(SUDO) $(APT) update >/dev/null && $(SUDO) $(APT) install -y --no-install-recommends $$packages >/dev/null; }

# Installed, they would take over this machine's own name servers: tests run them unpacked, in mount namespaces.
NAME_SERVERS := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/name-servers
name-servers:
	@for package in resolvconf openresolv systemd-resolved; do \
	  [ -d $(NAME_SERVERS)/$$package ] && continue; \
	  echo "unpacking $$package below $(NAME_SERVERS)" >&2; \
	  ( rm -rf $(NAME_SERVERS)/$$package.part && mkdir -p $(NAME_SERVERS)/$$package.part && cd $(NAME_SERVERS)/$$package.part \
	    && { apt-get download -q $$package >/dev/null || { $(SUDO) $(APT) update >/dev/null && apt-get download -q $$package >/dev/null; }; } \
	    && dpkg -x $${package}_*.deb . && rm $${package}_*.deb && mv ../$$package.part ../$$package ) || exit 1; \
	done

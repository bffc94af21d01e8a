# One profile everywhere (`--release`), so that nothing is compiled twice.
# Everything is built as the user; root is asked for only where a command needs it.

CARGO  := cargo
SUDO   := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -E env PATH=$$PATH")
BIN    := target/release/hawser
# Programs that the tests run in their namespaces: package and command.
TOOLS  := iproute2:ip iputils-ping:ping

.PHONY: demo test check bench measure build tools fuzz

build:
	$(CARGO) build --release --workspace

## demo: two links, one cut and brought back under a running transfer (root)
demo:
	$(CARGO) build --release -p hawser
	$(SUDO) $(BIN) demo

## test: everything, in namespaces of the tests' own where it needs root
test: tools
	$(CARGO) test --release --workspace --no-run
	$(SUDO) $(CARGO) test --release --workspace

## check: formatting, lints (the fence around the core among them), documentation
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --release --workspace --no-deps --quiet

## bench: the steps of the packet's story, one by one
bench:
	$(CARGO) bench -p hawser-core --bench seal --bench story

## measure: the figures of docs/results, or one case: make measure CASE=equal
CASE ?= all
measure:
	$(CARGO) build --release --workspace --bins
	$(SUDO) target/release/measure $(CASE)

## fuzz: each decoder for a minute (needs cargo-fuzz and a nightly toolchain)
fuzz:
	for target in $$(cargo +nightly fuzz list); do cargo +nightly fuzz run $$target -- -max_total_time=60; done

tools:
	@for tool in $(TOOLS); do \
	  command -v $${tool#*:} >/dev/null && continue; \
	  echo "installing $${tool%:*}, for $${tool#*:}" >&2; \
	  $(SUDO) apt-get install -y --no-install-recommends $${tool%:*} >/dev/null \
	  || { $(SUDO) apt-get update >/dev/null && $(SUDO) apt-get install -y --no-install-recommends $${tool%:*} >/dev/null; } || exit 1; \
	done

# Entry points for people and for CI. Each makes sure first that the machine has what it needs (scripts/setup).
# ARGS is handed on:  make run ARGS="plans/quick-look.toml --seed 7"   make bench ARGS=--help

# Sets CARGO, RUSTC and RUSTDOC for the rest of a recipe line; installs what is missing.
setup = toolchain=$$(scripts/setup $(1)) && eval "$$toolchain" &&

# Cargo counts its own jobs; without this, `make -j` makes it warn about a job server that it cannot reach.
unexport MAKEFLAGS MFLAGS

# Where `make install` puts things; packages set DESTDIR, too.
PREFIX = /usr/local

.PHONY: help build install uninstall dist others image stick run about-run gate check test quick test-host test-field captures bench

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST)

build: ## the static binary, below target/, and its symbols beside it
	@$(call setup) "$$CARGO" build --release && scripts/split-symbols "$$(scripts/install built)"

install: ## binary, man pages and completions, below PREFIX=/usr/local
	@scripts/install built >/dev/null || $(MAKE) build
	@scripts/install add "$(DESTDIR)$(PREFIX)"

uninstall: ## removes what install has put there
	@scripts/install remove "$(DESTDIR)$(PREFIX)"

dist: ## packages for all machines, in target/packages; ARGS="TARGET..." for some
	@$(call setup,dist) scripts/dist $(ARGS)

others: ## the program for other machines, for their guests and boards, beside the one of `make build`
	@scripts/install built >/dev/null || $(MAKE) build
	@$(call setup,dist) scripts/dist others

image: ## container image `punctual`, FROM scratch, with podman
	@scripts/install built >/dev/null || $(MAKE) build
	@scripts/image

# Kernels of the stick, the first one is the default.
KERNELS = debian:6.12-rt debian:6.12

stick: ## image of a USB stick that measures any PC: target/stick.img; KERNELS="debian:6.1-rt ..."
	@scripts/install built >/dev/null || $(MAKE) build
	@"$$(scripts/install built)" stick $(KERNELS:%=--kernel %) -o target/stick.img

# Only the binary's status tells scripts that a limit is violated (2) or undecided (3).
run: about-run build ## measure this machine: punctual run $(ARGS), with status 0 after any verdict
	@"$$(scripts/install built)" run $(ARGS) || case $$? in 2 | 3) ;; *) exit 1 ;; esac

about-run:
	@echo "builds punctual (3 minutes on two cores, the first time), then measures (about a minute): punctual run $(ARGS)"

gate: check test ## both, as before a change lands: 25 minutes from nothing on 2 CPUs

check: ## format, lints, tidy rules, schema, licenses, documentation
	@$(call setup,check) scripts/test check

test: ## the tests that are right on every machine; says at the end what was skipped, and why
	@$(call setup,test) scripts/test

quick: ## while you work: format, tidy rules, and tests without measuring of what you changed
	@$(call setup,check) scripts/test quick

test-host: ## what depends on this machine: series, compared with its last; an hour
	@$(call setup,test) scripts/test host

test-field: ## boards, clusters, servers, browsers, other machines; an hour
	@$(call setup,field) scripts/test field

captures: ## record the faults that tests explain again: all, or those in FAULTS (names of faults, explain)
	@$(call setup,test) PUNCTUAL_CAPTURES="$(or $(FAULTS),all)" PUNCTUAL_ROUNDS=1 PUNCTUAL_HOST_ROWS=target/tmp "$$CARGO" test \
	    --profile gate --package punctual --test cli -- --ignored --test-threads 1 host::captures:: host::explain::

bench: ## what measuring itself costs
	@$(call setup,bench) "$$CARGO" build --release && "$$CARGO" xtask bench $(ARGS)

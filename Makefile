# Every target sets itself up: see "setup" below. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
UV_VERSION := 0.13.9
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
UV := $$(command -v uv || echo $(BIN)/uv)
LOCK := pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	--generate-hashes --no-header --no-emit-index-url --quiet --output-file requirements.lock

export PYTHONSAFEPATH := 1
export UV_PYTHON_DOWNLOADS := never

.PHONY: setup
setup: $(STAMP) ## make .venv with everything that requirements.lock names

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "error: Python 3.11 or newer is needed, '$(PYTHON)' is not; name one: make PYTHON=python3.12" >&2; exit 1; }
	@if command -v uv >/dev/null; then "$(PYTHON)" -m venv --without-pip $(VENV); exit; fi; \
	if ! "$(PYTHON)" -c 'import ensurepip' 2>/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; \
		else \
			echo "error: '$(PYTHON)' cannot make environments; install uv, or the package python3-venv (apt-get install python3-venv)" >&2; exit 1; \
		fi; \
	fi; \
	"$(PYTHON)" -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(STAMP): $(BIN)/python requirements.lock pyproject.toml
	@export VIRTUAL_ENV="$(CURDIR)/$(VENV)"; uv=$(UV); \
	$$uv pip sync --quiet --require-hashes requirements.lock; \
	$$uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: proto
proto: $(STAMP) ## generate the code of the contract
	@$(BIN)/python scripts/proto.py

.PHONY: lock
lock: $(BIN)/python ## renew requirements.lock (LOCK_FLAGS=--upgrade for newer versions)
	@VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(UV) $(LOCK) $(LOCK_FLAGS)
	@! grep -n '://' requirements.lock || { echo "error: requirements.lock names an address" >&2; exit 1; }

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | sort | awk -F ':.*## ' '{ printf "  %-8s %s\n", $$1, $$2 }'

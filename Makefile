# Every target sets itself up: .venv is made from $(PYTHON) and filled with exactly what requirements.lock names.
# WITHOUT=e2e leaves a rung of `make test` out (never in CI). ARGS goes to pytest (unit, e2e) or to the benchmark.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
UV_VERSION := 0.13.9
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
UV := VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/uv

RUNGS := static unit e2e
LEFT_OUT := $(filter $(WITHOUT),$(RUNGS))
TESTS := $(addprefix tests/,$(filter-out $(LEFT_OUT),unit e2e))
TYPED := $(wildcard operator broker sdk proto tests scripts bench examples)

export PYTHONSAFEPATH := 1
export UV_PYTHON_DOWNLOADS := never

.PHONY: help setup run test lint static unit e2e proto lock bench clean

help: ## list these targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | awk -F ':.*## ' '{ printf "  make %-7s %s\n", $$1, $$2 }'

run: $(STAMP) ## start a broker with the embedded store and take a sample job through it
	@PYTHONSAFEPATH= exec $(BIN)/python -m examples.hello

test: rungs $(filter-out $(LEFT_OUT),static) ## everything that gates a change
	@echo "== $(filter-out static $(LEFT_OUT),$(RUNGS))" && $(BIN)/pytest $(TESTS)

lint: static ## the static rung alone: style, types, layers, contract, tree
	@echo "== tree" && $(BIN)/pytest -q tests/unit/repository

unit: $(STAMP) ## tests inside one process (ARGS="-k receipt")
	@$(BIN)/pytest tests/unit $(ARGS)

e2e: $(STAMP) ## tests of real processes
	@$(BIN)/pytest tests/e2e $(ARGS)

proto: $(STAMP) ## generate the code of the contract
	@$(BIN)/python scripts/proto.py

lock: $(BIN)/uv ## renew requirements.lock (ARGS=--upgrade for newer versions)
	@$(UV) pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-emit-index-url --quiet --output-file requirements.lock $(ARGS)
	@! grep -n '://' requirements.lock || { echo "error: requirements.lock names an address" >&2; exit 1; }

bench: $(STAMP) ## measure (ARGS=--help)
	@PYTHONSAFEPATH= $(BIN)/python -m bench $(ARGS)

clean: ## remove what was made, .venv included
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find operator broker sdk proto tests scripts bench examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

setup: $(STAMP) ## make .venv

.PHONY: rungs
rungs: $(STAMP)
	@echo "rungs: $(filter-out $(LEFT_OUT),$(RUNGS)); left out: $(if $(LEFT_OUT),$(LEFT_OUT) (by WITHOUT),none)"
	@if [ -n "$(LEFT_OUT)" ] && [ "$$CI" = true ]; then echo "error: CI leaves no rung out" >&2; exit 1; fi
	@if [ -z "$(TESTS)" ]; then echo "error: nothing to test" >&2; exit 1; fi

static: $(STAMP)
	@echo "== static"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy $(TYPED)
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/buf lint
	@$(BIN)/buf breaking --against proto/baseline.binpb
	@$(BIN)/python scripts/proto.py --check

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "error: '$(PYTHON)' is not Python 3.11 or newer; name one that is: make PYTHON=python3.12 …" >&2; exit 1; }
	@if command -v uv >/dev/null; then exec "$(PYTHON)" -m venv --without-pip $(VENV); fi; \
	if ! "$(PYTHON)" -c 'import ensurepip' 2>/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing python3-venv" && apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; fi; \
	"$(PYTHON)" -c 'import ensurepip' 2>/dev/null || { \
		echo "error: '$(PYTHON)' cannot make environments; remedy: apt-get install python3-venv" >&2; exit 1; }; \
	"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# A uv on the PATH serves as well: then a link stands here.
$(BIN)/uv: $(BIN)/python
	@if uv="$$(command -v uv)"; then ln -sf "$$uv" $@; \
		else $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); fi

$(STAMP): requirements.lock pyproject.toml | $(BIN)/uv
	@echo "installing what requirements.lock names into $(VENV)"
	@$(UV) pip sync --quiet --require-hashes requirements.lock
	@$(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

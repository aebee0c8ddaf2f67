# Everything a person or CI does here. `make` alone lists the targets.

PYTHON ?= python3
# Narrow a test run: make test TESTS=tests/engine
TESTS ?= tests

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
RUNTIME := $(VENV)/.ready-runtime
DEVELOPMENT := $(VENV)/.ready-development
# Two processes keep a small machine busy; more than four PostgreSQL servers side by side only get in each other's way.
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses=4
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
export BENCH
.PHONY: help setup demo up test check lint types arch fmt docs docs-check lock clean bench-engine bench-fairness

help: ## List these targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEVELOPMENT) ## Prepare the environment for development

demo: $(RUNTIME) ## Run a whole export here, from nothing; CRASH=1 kills a worker on the way
	@$(BIN)/tenure demo $(if $(filter-out 0,$(CRASH)),--crash)

up: $(RUNTIME) ## Start PostgreSQL, API and workers here, until Ctrl-C
	@$(BIN)/tenure up

test: $(DEVELOPMENT) ## Run every test
	@$(PYTEST) $(TESTS)

check: lint types arch docs-check test ## Run all that CI runs

lint: $(DEVELOPMENT) ## Look for style and likely mistakes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DEVELOPMENT) ## Check the types
	@$(BIN)/mypy

arch: $(DEVELOPMENT) ## Check the arrows between rooms, and the habits of the tree
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/architecture

fmt: $(DEVELOPMENT) ## Rewrite the code in the common style
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

docs: $(DEVELOPMENT) ## Rewrite the generated parts of docs/
	@$(BIN)/python docs/generate.py

docs-check: $(DEVELOPMENT) ## Check that the generated parts of docs/ are up to date
	@$(BIN)/python docs/generate.py --check

lock: ## Choose the versions of all dependencies anew (needs uv)
	@command -v uv >/dev/null || { echo "This needs uv: https://docs.astral.sh/uv/" >&2; exit 1; }
	@$(COMPILE) --upgrade pyproject.toml --extra all --group build -o requirements.lock
	@$(COMPILE) --upgrade pyproject.toml --extra all --group build --group dev -c requirements.lock -o requirements-dev.lock

bench-engine: $(DEVELOPMENT) ## Measure the job engine beside its peers; BENCH=quick only tries the harness
	@$(BIN)/python bench/engine.py

bench-fairness: $(DEVELOPMENT) ## Measure fair shares and what they cost; BENCH=quick only tries the harness
	@$(BIN)/python bench/fairness.py

clean: ## Remove what can be made again; data in .tenure/ stays
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- the environment: made once, and again when a lock or pyproject.toml changes

$(RUNTIME): requirements.lock pyproject.toml | $(BIN)/python
	$(call prepare,requirements.lock)
	@touch $@

$(DEVELOPMENT): requirements-dev.lock pyproject.toml | $(BIN)/python
	$(call prepare,requirements-dev.lock)
	@touch $@ $(RUNTIME)

# pip's own words are kept aside and shown only when it fails.
define prepare
	@echo "Preparing the environment (once, about a minute) ..."
	@log=$(VENV)/prepare.log; \
	{ $(PIP) install --require-hashes -r $(1) && $(PIP) install --no-deps --no-build-isolation -e .; } >$$log 2>&1 || { \
	    tail -n 40 $$log >&2; \
	    echo "The environment could not be prepared: see above, or all of it in $$log." >&2; \
	    exit 1; }
	@echo "The environment is ready."
endef

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	    echo "There is no $(PYTHON) here. Tenure needs Python 3.11 or later; name one: make PYTHON=/path/to/python3.11" >&2; \
	    exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Tenure needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.12" >&2; \
	    exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; \
	    exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

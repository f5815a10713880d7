# Every target sets up what it needs: on a fresh machine `make demo` or `make test` is all it takes.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip --no-input --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n 2
ZIP    ?= dist/skytide.zip
CACHE  := $(CURDIR)/build/numba

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup tools demo test lint fix test-jit-off test-bounds test-jit bench zip clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv with everything in it (once, and again when pyproject.toml changes)

tools:  ## install Java, Maven and PostgreSQL for the tests that need them, where we may
	@.ci/tools

demo: $(READY)  ## watch the best deals in a Spark stream of invented trades
	$(BIN)/skytide demo

test: tools lint test-jit-off test-bounds test-jit  ## everything CI runs: style, types, imports, all tests

lint: $(READY)  ## check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(READY)  ## repair style where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# numba does not key its cache by NUMBA_BOUNDSCHECK: each mode has a folder of its own, made anew.
test-jit-off: $(READY)  ## the small kernel cases in plain Python
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m kernels tests

test-bounds: $(READY)  ## all but the slow tests, every array index checked
	rm -rf $(CACHE)/bounds
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CACHE)/bounds $(PYTEST) -m "not slow"

test-jit: $(READY)  ## all tests and doctests, kernels as users run them
	rm -rf $(CACHE)/jit
	NUMBA_CACHE_DIR=$(CACHE)/jit $(PYTEST)

bench: $(VENV)/.bench-ready  ## run all benchmarks; QUICK=--quick for small sizes
	set -e; for file in $$(grep -l __main__ benchmarks/*.py); do echo "== $$file"; $(BIN)/python "$$file" $(QUICK); done

zip:  ## make dist/skytide.zip, for spark-submit --py-files
	@mkdir -p $(dir $(ZIP))
	cd src && $(PYTHON) -c 'import glob, sys, zipfile; z = zipfile.ZipFile(sys.argv[1], "w"); \
	  [z.write(f) for e in ("py", "properties") for f in sorted(glob.glob(f"**/*.{e}", recursive=True))]' \
	  '$(abspath $(ZIP))'

clean:  ## remove what was built and cached, but not .venv
	rm -rf build dist .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "skytide needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Hint: make PYTHON=/path/to/python3.12 $(or $(MAKECMDGOALS),setup)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "Hint: this Python cannot make a venv; Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(PIP) install --progress-bar on --editable '.[dev]'
	@touch $@

$(VENV)/.bench-ready: $(READY)
	$(PIP) install --progress-bar on --editable '.[bench]'
	@touch $@
